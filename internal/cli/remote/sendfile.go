package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/dibs-dev/dibs/internal/cli"
)

// sendFile opens a file of lines and has send import it in one request, whose body is the file: the
// server checks and stores all lines or none. send tells progress how many lines the server has,
// which sendFile shows on the error output. A file that cannot be opened is a fault of the command
// line, with exit code 2. The file must not change while it is sent: its lines were counted before.
func sendFile[T any](s *session, name, noun string, send func(file *os.File, progress func(int64)) (T, error)) (v T, err error) {
	file, err := os.Open(name)
	if err != nil {
		return v, cli.Usage(err)
	}
	defer file.Close()
	lines, err := countLines(file)
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	progress, end := importProgress(s.cmd.ErrOrStderr(), lines, noun)
	defer end()
	return send(file, progress)
}

// countLines counts the lines of a file and goes back to its beginning. It holds one megabyte at a
// time, since files have millions of lines. A last line without a line feed counts. A pipe cannot go
// back, and is refused.
func countLines(file *os.File) (lines int64, err error) {
	in, last := bufio.NewReaderSize(file, 1<<20), byte('\n')
	for {
		chunk, err := in.ReadSlice('\n')
		if len(chunk) > 0 {
			last = chunk[len(chunk)-1]
		}
		switch {
		case err == nil:
			lines++
		case errors.Is(err, io.EOF):
			if last != '\n' {
				lines++
			}
			_, err = file.Seek(0, io.SeekStart)
			return lines, err
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
		// A line longer than the buffer comes in several chunks.
	}
}

// progressEvery is the time between two lines of progress where there is no terminal, as in logs.
const progressEvery = time.Second

// importProgress shows how many lines the server has: by a bar on a terminal, and by a line every
// progressEvery elsewhere. The client calls progress from one goroutine, which need not be the
// verb's; the caller calls end once, after the import. An import goes on when its progress cannot be
// shown, and lines may count what is no item, such as a head: so the bar may end below its length.
func importProgress(to io.Writer, lines int64, noun string) (progress func(done int64), end func()) {
	if !cli.IsTerminal(to) {
		last := time.Now()
		return func(done int64) {
			// The client tells more often than a log should have lines.
			if time.Since(last) >= progressEvery {
				last = time.Now()
				fmt.Fprintf(to, "imported %d of %d %s\n", done, lines, noun)
			}
		}, func() {}
	}
	// At least 1: a bar needs a length.
	bar := newBar(to, max(lines, 1), progressbar.OptionSetDescription("importing "+noun))
	return func(done int64) { _ = bar.Set64(min(done, lines)) }, func() { _ = bar.Exit() }
}

// newBar returns a progress bar that disappears at its end, so that the answer stands alone.
func newBar(to io.Writer, most int64, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most, append(more, progressbar.OptionSetWriter(to), progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())...)
}
