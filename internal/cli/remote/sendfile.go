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

// sendFile opens a file of lines and has send import it. send tells progress how many
// lines the server has, which sendFile shows on the error output.
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

// countLines counts the lines of a file and goes back to its beginning.
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

// progressEvery is the time between two lines of progress.
const progressEvery = time.Second

// importProgress shows how many lines the server has: by a bar on a terminal, and
// by a line every progressEvery elsewhere. An import goes on when its progress
// cannot be shown.
func importProgress(to io.Writer, lines int64, noun string) (progress func(done int64), end func()) {
	if !cli.IsTerminal(to) {
		last := time.Now()
		return func(done int64) {
			if time.Since(last) >= progressEvery {
				last = time.Now()
				fmt.Fprintf(to, "imported %d of %d %s\n", done, lines, noun)
			}
		}, func() {}
	}
	bar := newBar(to, max(lines, 1), progressbar.OptionSetDescription("importing"), progressbar.OptionShowIts(), progressbar.OptionSetItsString(noun))
	return func(done int64) { _ = bar.Set64(min(done, lines)) }, func() { _ = bar.Exit() }
}

// newBar returns a progress bar that disappears at its end.
func newBar(to io.Writer, most int64, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most, append(more, progressbar.OptionSetWriter(to), progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())...)
}
