//go:build unix

package rehearsal

import "syscall"

// openFiles asks for the right to hold n files open (connections are files),
// and returns how many this process may hold, at least as far as it asked.
func openFiles(n uint64) (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	if count(limit.Cur) >= n {
		return count(limit.Cur), nil
	}
	// Only the privileged may raise the ceiling; up to it, everyone may go.
	for _, most := range []uint64{n, min(n, count(limit.Max))} {
		wanted := limit
		setTo(&wanted.Cur, most)
		setTo(&wanted.Max, max(most, count(limit.Max)))
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &wanted) == nil {
			return most, nil
		}
	}
	return count(limit.Cur), nil
}

// count and setTo read and set a limit, whose type differs between systems.
func count[T int64 | uint64](n T) uint64 { return uint64(n) }

func setTo[T int64 | uint64](field *T, n uint64) { *field = T(n) }
