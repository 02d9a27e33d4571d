package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// The bounds of an upload: how long a file may take to arrive, the bytes a second that have
// to come once fileGrace is over, so that slow senders do not take the places of others, and
// how long the work on it may take between two reports of progress.
const (
	fileRead     = 10 * time.Minute
	fileGrace    = 30 * time.Second
	fileRate     = 64 << 10
	progressRest = 5 * time.Minute
)

// pacedBody is the body of an upload, whose time to arrive grows with what has come.
type pacedBody struct {
	io.Reader
	rc    *http.ResponseController
	begun time.Time
	got   int64
}

// Read reads what comes in time.
func (b *pacedBody) Read(to []byte) (int, error) {
	if err := b.rc.SetReadDeadline(b.begun.Add(min(fileRead, fileGrace+time.Duration(b.got)*time.Second/fileRate))); err != nil {
		return 0, err
	}
	n, err := b.Reader.Read(to)
	b.got += int64(n)
	return n, err
}

// ReceiveCSV writes the body, a CSV file of at most most bytes, to a temporary file
// without a name, so that no transaction waits for a slow sender. It returns the
// file at its start with the SHA-256 of its bytes; the caller closes it.
func ReceiveCSV(w http.ResponseWriter, r *http.Request, most int64) (file *os.File, sum string, err error) {
	if !isType(r.Header.Get("Content-Type"), "text/csv") {
		return nil, "", ErrNotCSV
	}
	file, err = os.CreateTemp("", "dibs-import-")
	if err != nil {
		return nil, "", dibs.Unavail(dibs.EffectNone, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := os.Remove(file.Name()); err != nil {
		return file, "", err
	}
	hash := sha256.New()
	body := &pacedBody{Reader: http.MaxBytesReader(w, r.Body, most), rc: http.NewResponseController(w), begun: time.Now()}
	// The server's deadline for answers may be over before the file is here. A writer without deadlines needs none.
	_ = body.rc.SetWriteDeadline(body.begun.Add(fileRead + progressRest))
	_, err = io.Copy(io.MultiWriter(file, hash), body)
	var over *http.MaxBytesError
	var disk *os.PathError
	switch {
	case errors.As(err, &over):
		return file, "", tooLarge(most)
	case errors.As(err, &disk):
		return file, "", dibs.Unavail(dibs.EffectNone, err)
	case err != nil:
		return file, "", ErrCutOff
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return file, "", dibs.Unavail(dibs.EffectNone, err)
	}
	return file, hex.EncodeToString(hash.Sum(nil)), nil
}

// Progress returns a function that reports how far an upload is. Each report keeps
// the connection open for a while longer. A client that sends `Prefer: progress`
// receives it too, as the value of a header of an interim answer (102).
func Progress(w http.ResponseWriter, r *http.Request, header string) func(done int64) {
	asked := false
	for _, v := range r.Header["Prefer"] {
		asked = asked || strings.Contains(v, "progress")
	}
	rc := http.NewResponseController(w)
	// A writer without deadlines needs none; only tests have such.
	extend := func() { _ = rc.SetWriteDeadline(time.Now().Add(progressRest)) }
	extend()
	return func(done int64) {
		extend()
		if !asked {
			return
		}
		h := w.Header()
		h.Set(header, strconv.FormatInt(done, 10))
		w.WriteHeader(http.StatusProcessing)
		h.Del(header)
	}
}
