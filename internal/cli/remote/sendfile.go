package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
)

// countLines counts a file's lines and goes back to its beginning.
func countLines(file *os.File) (lines int64, err error) {
	in := bufio.NewReaderSize(file, 1<<20)
	for {
		chunk, err := in.ReadSlice('\n')
		if len(chunk) > 0 && chunk[len(chunk)-1] == '\n' {
			lines++
		} else if len(chunk) > 0 && errors.Is(err, io.EOF) {
			lines++
		}
		if errors.Is(err, io.EOF) {
			_, err = file.Seek(0, io.SeekStart)
			return lines, err
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
	}
}

// importProgress shows how far an import is: by a bar on a terminal, by a line
// now and then elsewhere. What cannot be shown keeps nobody from importing.
func importProgress(to io.Writer, lines int64, what string) (told func(written int64), end func()) {
	if !cli.IsTerminal(to) {
		last := time.Now()
		return func(n int64) {
			if time.Since(last) >= progressLine {
				last = time.Now()
				fmt.Fprintf(to, "imported %d of %d %s\n", n, lines, what)
			}
		}, func() {}
	}
	bar := progressbar.NewOptions64(max(lines, 1),
		progressbar.OptionSetWriter(to), progressbar.OptionSetDescription("importing"), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString(what), progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	return func(n int64) { _ = bar.Set64(min(n, lines)) }, func() { _ = bar.Exit() }
}

// progressLine is the time between two lines of progress.
const progressLine = time.Second

// sendFile has a file of lines imported, and shows how far that is.
func sendFile[T any](cmd *cobra.Command, name, what string, send func(file *os.File, told func(int64)) (T, error)) (v T, err error) {
	file, err := os.Open(name)
	if err != nil {
		return v, cli.Usage(err)
	}
	defer file.Close()
	lines, err := countLines(file)
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	told, end := importProgress(cmd.ErrOrStderr(), lines, what)
	defer end()
	return send(file, told)
}
