package rehearsal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/lab/rehearsal"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/api"
)

const adminKey = "dibs_rehearsal_of_a_server_that_may_lie"

// serve starts a dibs behind a handler of the test's own, and returns a small
// rehearsal of it.
func serve(t *testing.T, around func(http.Handler) http.Handler) rehearsal.Config {
	t.Helper()
	dir := t.TempDir()
	empty, err := emptyFolder()
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(empty))
	}
	if err != nil {
		t.Fatal(err)
	}
	nd, err := node.Open(t.Context(), node.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := nd.Close(noContext()); err != nil {
			t.Error(err)
		}
	})
	if _, err := nd.Service.Access.EnsureKey(t.Context(), "test", adminKey); err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(nd.Service), AllowDevTokens: true})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(around(handler))
	t.Cleanup(s.Close)
	return rehearsal.Config{
		URL: s.URL, AdminKey: adminKey, Users: 40, Requests: 120, Stock: 20, Repeats: 0.25, Seed: 1, Patience: 300 * time.Millisecond,
	}
}

// emptyFolder returns the data folder of a node that has done nothing. To make
// one takes most of the time of a small rehearsal: the others are its copies.
var emptyFolder = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "dibs-rehearsal-"); err != nil {
		return "", err
	}
	made = dir
	nd, err := node.Open(context.Background(), node.Config{Dir: dir, Migrate: true})
	if err != nil {
		return "", err
	}
	return dir, nd.Close(context.Background())
})

// made is the folder that TestMain removes.
var made string

// lie changes an answer on its way out: what the request was, its status and
// its body. It returns what is sent instead.
type lie func(r *http.Request, status int, body []byte) (int, []byte)

// liar answers as the handler beneath does, but for one lie at a time.
func liar(tell lie) func(http.Handler) http.Handler {
	return func(honest http.Handler) http.Handler {
		var mu sync.Mutex
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			honest.ServeHTTP(rec, r)
			mu.Lock()
			status, body := tell(r, rec.Code, rec.Body.Bytes())
			mu.Unlock()
			maps.Copy(w.Header(), rec.Header())
			if status != rec.Code {
				w.Header().Del("Idempotent-Replayed")
			}
			w.WriteHeader(status)
			// A client that is gone needs no answer.
			_, _ = w.Write(body)
		})
	}
}

func isClaim(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/claims")
}

func userOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer dev_")
}

// forged is a claim that no server granted.
func forged(r *http.Request) []byte {
	body, err := json.Marshal(api.ClaimView{
		ID: "FORGEDFORGEDFORG", CampaignID: strings.Split(r.URL.Path, "/")[3], UserID: userOf(r), Quantity: 1, Status: "confirmed",
	})
	if err != nil {
		panic(err)
	}
	return body
}

// once lets the first call for which when is true be answered by what.
func once(when func(r *http.Request, status int, body []byte) bool, what lie) lie {
	told := false
	return func(r *http.Request, status int, body []byte) (int, []byte) {
		if told || !when(r, status, body) {
			return status, body
		}
		told = true
		return what(r, status, body)
	}
}

// refusedFor matches a claim refused for a reason.
func refusedFor(reason string) func(*http.Request, int, []byte) bool {
	return func(r *http.Request, _ int, body []byte) bool {
		return isClaim(r) && bytes.Contains(body, []byte(`"reason":"`+reason+`"`))
	}
}

// statusOf matches a claim answered with a status.
func statusOf(want int) func(*http.Request, int, []byte) bool {
	return func(r *http.Request, status int, _ []byte) bool { return isClaim(r) && status == want }
}

func forge(r *http.Request, _ int, _ []byte) (int, []byte) { return http.StatusCreated, forged(r) }

// sameFor lies the same way whenever it is asked about one claim: the first
// that was granted.
func sameFor(what func(id string, r *http.Request, status int, body []byte) (int, []byte)) lie {
	id := ""
	return func(r *http.Request, status int, body []byte) (int, []byte) {
		if id == "" && isClaim(r) && status == http.StatusCreated {
			var v api.ClaimView
			if err := json.Unmarshal(body, &v); err == nil {
				id = v.ID
			}
			return status, body
		}
		if id == "" {
			return status, body
		}
		return what(id, r, status, body)
	}
}

// replaced is a body with one text in place of another.
func replaced(body []byte, old, with string) []byte {
	return bytes.Replace(body, []byte(old), []byte(with), 1)
}

// brokenPromises are those that a report calls broken, with their witnesses.
func brokenPromises(r *rehearsal.Report) map[string]bool {
	broken := map[string]bool{}
	for _, v := range r.Promises {
		if v.Judgement == rehearsal.Broken {
			broken[v.Promise+" by "+v.Witness] = true
		}
	}
	return broken
}

// hanzi matches a Chinese character, and inEnglish four English words in a row.
var (
	hanzi     = regexp.MustCompile(`\p{Han}`)
	inEnglish = regexp.MustCompile(`[A-Za-z]+( [A-Za-z]+){3}`)
)

// TestHonestServer is the control of those below: without a lie nothing is
// broken. What was judged can be read in both languages.
func TestHonestServer(t *testing.T) {
	for _, kind := range []dibs.Kind{dibs.Sale, dibs.Coupon, dibs.RedPacket} {
		cfg := serve(t, liar(func(_ *http.Request, status int, body []byte) (int, []byte) { return status, body }))
		cfg.Kind, cfg.Chinese = kind, true
		r := rehearse(t, cfg)
		if !r.OK {
			t.Errorf("an honest server:\n%s", table(t, r))
		}
		for i, v := range r.In(true).Promises {
			if !hanzi.MatchString(v.Detail) || inEnglish.MatchString(v.Detail) {
				t.Errorf("%q in Chinese: %s", v.Promise, v.Detail)
			}
			if said := r.Promises[i].Detail; hanzi.MatchString(said) || r.In(false).Promises[i].Detail != said {
				t.Errorf("%q in English: %s", v.Promise, said)
			}
		}
	}
}
