package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// All of a stream is sent, and a stream that breaks off cuts the answer.
func TestSendPaced(t *testing.T) {
	w := httptest.NewRecorder()
	text := strings.Repeat("an entry\n", 3*pacedPart/9)
	if err := SendPaced(w, iotest.HalfReader(strings.NewReader(text))); err != nil || w.Body.String() != text {
		t.Errorf("%v, %d bytes of %d", err, w.Body.Len(), len(text))
	}
	defer func() {
		if fault := recover(); fault != http.ErrAbortHandler {
			t.Errorf("a stream that breaks off: %v", fault)
		}
	}()
	broken := io.MultiReader(bytes.NewReader(make([]byte, 10)), iotest.ErrReader(errors.New("the disk is gone")))
	t.Errorf("a stream that breaks off is told as whole: %v", SendPaced(httptest.NewRecorder(), broken))
}
