package web

import (
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/dibs-dev/dibs"
)

// Problems of bodies.
var (
	// ErrNotJSON answers a body of another type than JSON.
	ErrNotJSON = Problem{
		Reason: dibs.InvalidRequest, Status: http.StatusUnsupportedMediaType,
		Detail: dibs.Text{EN: "send the body as Content-Type: application/json", ZH: "请以 Content-Type: application/json 发送请求体"},
	}
	// ErrNotCSV answers a file of another type than CSV.
	ErrNotCSV = Problem{
		Reason: dibs.InvalidRequest, Status: http.StatusUnsupportedMediaType,
		Detail: dibs.Text{EN: "send the file as Content-Type: text/csv", ZH: "请以 Content-Type: text/csv 发送文件"},
	}
	// ErrCutOff answers a body that ends before its length.
	ErrCutOff = dibs.Fail(dibs.InvalidRequest, dibs.Text{EN: "the body did not arrive in full", ZH: "请求体未完整到达"})

	errUTF8 = dibs.Fail(dibs.InvalidRequest, dibs.Text{EN: "the body is not valid UTF-8", ZH: "请求体不是有效的 UTF-8"})
)

// tooLarge is the error of a body of more than most bytes.
func tooLarge(most int64) *dibs.Error {
	return dibs.Fail(dibs.TooLarge, dibs.Textf("the body may have at most %d bytes", "请求体最多 %d 字节", most))
}

// IsJSON reports whether a Content-Type means JSON; none at all does.
func IsJSON(h http.Header) bool {
	v := h["Content-Type"]
	return len(v) == 0 || v[0] == TypeJSON[0] || isType(v[0], TypeJSON[0])
}

// isType reports whether a Content-Type is of a type, whatever its parameters.
func isType(value, want string) bool {
	kind, _, err := mime.ParseMediaType(value)
	return err == nil && kind == want
}

// ReadBody reads a JSON body of at most most bytes. Its errors are answered as
// they are: ErrCutOff, ErrNotJSON, and a *dibs.Error of TooLarge.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			return nil, tooLarge(most)
		}
		return nil, ErrCutOff
	}
	if len(raw) > 0 && !IsJSON(r.Header) {
		return nil, ErrNotJSON
	}
	return raw, nil
}
