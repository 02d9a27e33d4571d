package web

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// pacedPart is how many bytes SendPaced sends at a time.
	pacedPart = 64 << 10
	// pacedWrite is how long one part may take to be accepted: a client that reads less
	// than 13 kB a second is cut.
	pacedWrite = 5 * time.Second
)

// SendPaced sends all of from to a client, however long the whole takes while the client
// keeps the pace. The error is one of sending: an error of reading panics with
// http.ErrAbortHandler, since a part must not look like the whole.
func SendPaced(to http.ResponseWriter, from io.Reader) error {
	part := make([]byte, pacedPart)
	rc := http.NewResponseController(to)
	for {
		n, err := from.Read(part)
		if n > 0 {
			// A writer without deadlines needs none; only tests have such.
			_ = rc.SetWriteDeadline(time.Now().Add(pacedWrite))
			if _, err := to.Write(part[:n]); err != nil {
				return err
			}
			if err := rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}
