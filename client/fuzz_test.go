package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/api"
)

// FuzzEvents: whatever comes as a stream of events, it ends, each id is one line, nothing is told after the caller has
// heard enough, and the pause that is asked for is neither in the past nor longer than a day.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"", "retry: 1000\n\n", "id: 3.1.200.1\nevent: snapshot\ndata: {\"campaign_id\":\"c\",\"phase\":\"open\"}\n\n", "event: goaway\ndata: {}\n\n",
		": still here\n\n", "data: {\n\n", "data: {}\r\n\r\n", "retry: -5\n\n", "retry: 9223372036854775807\n\n", "id\ndata\n\n", "data: {}\n\ndata: {}\n\n",
	} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, text string, most int) {
		told := 0
		wait, err := readEvents(strings.NewReader(text), func(id string, _ api.SnapshotView) bool {
			if told++; strings.Contains(id, "\n") {
				t.Errorf("the id %q", id)
			}
			return told < most
		})
		if wait < 0 || wait > longestWait {
			t.Errorf("%q asks to wait for %s", text, wait)
		}
		if stopped := errors.Is(err, errStop); stopped != (told > 0 && told >= most) || told > max(most, 1) {
			t.Errorf("of %q %d are told, at most %d: %v", text, told, most, err)
		}
	})
}

// FuzzProblem: whatever an answer is, it is an error that says something, of the status that the answer has.
func FuzzProblem(f *testing.F) {
	for _, seed := range []string{
		"", "<html>", `{"reason":"sold_out","detail":"x","status":200}`, `{"reason":""}`, `{"errors":[{"pointer":"/a","detail":"b"}],"reason":"invalid_request"}`, `[]`, `{"reason":7}`,
	} {
		f.Add(503, seed, "5")
		f.Add(302, seed, "-1")
		f.Add(429, seed, "99999999999999999999")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		err := problemOf(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}, "Location": {after}}}, []byte(body))
		var e *Error
		if !errors.As(err, &e) || e.Status != status || e.RetryAfter < 0 || e.RetryAfter > longestWait || len(err.Error()) < len(": ") {
			t.Errorf("%d %q, Retry-After %q: %+v", status, body, after, err)
		}
	})
}
