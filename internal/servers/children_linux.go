package servers

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children returns the processes that a process has begun.
// The list is of one moment: a process that begins later is not in it.
func children(parent int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			// It ended meanwhile.
			continue
		}
		// The name of the program is in parentheses and may have any text; its state
		// and its parent follow.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
