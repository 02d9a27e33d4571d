package web

import (
	"bytes"
	"net/http"
	"time"
)

const (
	// delayedBuffer is how many bytes a DelayedWriter collects before it sends them.
	delayedBuffer = 64 << 10
	// delayedWrite bounds how long one part may take to reach the client.
	delayedWrite = time.Minute
)

// DelayedWriter collects small writes, and sends the answer's headers with the
// first part only: an error before that can still be answered with a problem. Each
// part has a minute to reach the client, however long the whole takes.
type DelayedWriter struct {
	To *Recorder
	// Begin sets the headers, just before they are sent.
	Begin func(http.Header)

	buf bytes.Buffer
}

// Write collects b, and sends what was collected when it is enough for a part.
func (d *DelayedWriter) Write(b []byte) (int, error) {
	d.buf.Write(b)
	if d.buf.Len() < delayedBuffer {
		return len(b), nil
	}
	return len(b), d.Flush()
}

// Flush sends what was collected.
func (d *DelayedWriter) Flush() error {
	if d.To.Status == 0 {
		d.Begin(d.To.Header())
	}
	// A writer without deadlines needs none; only tests have such.
	_ = http.NewResponseController(d.To).SetWriteDeadline(time.Now().Add(delayedWrite))
	_, err := d.To.Write(d.buf.Bytes())
	d.buf.Reset()
	return err
}
