package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

const (
	// hangTimeout is the ledger's timeout in these tests, hangSlack what a busy machine
	// may add, and hangSlow what it may add to the quickest of hangTries answers.
	hangTimeout = time.Second
	hangSlack   = 15 * time.Second
	hangSlow    = 2 * time.Second
	hangTries   = 4
	hangDrain   = 5 * time.Second
)

// hangKinds are the databases that are frozen. With every change it is the named one, in
// long campaigns each.
func hangKinds(named string) map[string]func() (*servers.Server, error) {
	kinds := map[string]func() (*servers.Server, error){"mysql": servers.MariaDB, "postgres": servers.Postgres}
	if os.Getenv("SOAK") == "" {
		maps.DeleteFunc(kinds, func(kind string, _ func() (*servers.Server, error)) bool { return kind != named })
	}
	return kinds
}

// route is one operation of the served document, with a request for it.
type route struct {
	// name is method and path as the document has them.
	name, method, path string
	// as is the bearer, key the idempotency key, kind the body's media type.
	as, key, kind string
	body          []byte
}

// answered is the answer to a route.
type answered struct {
	route
	status     int
	took       time.Duration
	retryAfter string
	body       string
	problem    struct{ Reason, Effect string }
}

// brief is the beginning of the body.
func (a *answered) brief() string { return a.body[:min(len(a.body), 400)] }

// frozen is a node whose database can be frozen.
type frozen struct {
	*testing.T
	db         *servers.Server
	node       *process
	url, claim string
	routes     []route
	client     *http.Client
}

// newFrozen prepares a node that was started: a campaign, a claim, and the routes of
// the document that it serves.
func newFrozen(t *testing.T, db *servers.Server, node *process, url string) *frozen {
	t.Helper()
	f := &frozen{T: t, db: db, node: node, url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(f.client.CloseIdleConnections)
	clitest.Publish(t, clitest.Admin(t, url), "noon", 1000)
	for _, gated := range []string{
		`{"id":"queued","kind":"sale","title":"Q","starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",` +
			`"stock":{"units":3},"gate":{"room":{"mode":"fifo","rate":10},"ticket":{"lifetime":"2m"}}}`,
		`{"id":"drawn","kind":"sale","title":"L","starts_at":"2035-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z",` +
			`"stock":{"units":3},"gate":{"room":{"mode":"lottery","registration_closes_at":"2034-01-01T00:00:00Z"}}}`,
	} {
		f.must(http.StatusCreated, route{method: http.MethodPost, path: "/v1/campaigns", as: clitest.Key, kind: "application/json", body: []byte(gated)})
	}
	for _, path := range []string{"/v1/campaigns/queued/publish", "/v1/campaigns/drawn/publish"} {
		f.must(http.StatusOK, route{method: http.MethodPost, path: path, as: clitest.Key})
	}
	granted := f.claims("first")
	var claim struct{ ID string }
	if err := json.Unmarshal([]byte(granted.body), &claim); err != nil {
		t.Fatal(err)
	}
	f.claim = claim.ID
	f.routes = f.document()
	eventually(t, clitest.Patience, "the node knows by itself what is left", func(context.Context) bool {
		return strings.Contains(f.ask(route{method: http.MethodGet, path: "/metrics"}).body, `dibs_campaign_remaining{campaign="noon"} 999`)
	})
	f.ready()
	return f
}

// must sends a request that has to be answered with a status.
func (f *frozen) must(status int, r route) {
	f.Helper()
	if a := f.ask(r); a.status != status {
		f.Fatalf("%s %s: %d %s", r.method, r.path, a.status, a.body)
	}
}

// token is a user's token.
func (f *frozen) token(user string) string {
	f.Helper()
	token, err := httpapi.IssueToken([]byte(clitest.Secret), user, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	return token
}

// claims has a user claim a unit.
func (f *frozen) claims(user string) answered {
	return f.ask(route{method: http.MethodPost, path: "/v1/campaigns/noon/claims", as: f.token(user), key: "key-" + user, kind: "application/json", body: []byte(`{}`)})
}

// ask sends a request, the same again as often as it is asked.
func (f *frozen) ask(r route) answered {
	f.Helper()
	// Some answers are streams: what there is of one is enough.
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, f.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		f.Error(err)
		return answered{route: r}
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.as != "" {
		req.Header.Set("Authorization", "Bearer "+r.as)
	}
	if len(r.body) > 0 {
		req.Header.Set("Content-Type", r.kind)
	}
	begun := time.Now()
	resp, err := f.client.Do(req)
	a := answered{route: r, took: time.Since(begun)}
	if err != nil {
		f.Errorf("%s after %s: %v", r.name, a.took, err)
		return a
	}
	defer resp.Body.Close()
	a.status, a.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return a
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.Errorf("%s: %v", r.name, err)
	}
	a.took, a.body = time.Since(begun), string(body)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		if err := json.Unmarshal(body, &a.problem); err != nil {
			f.Errorf("%s: %v", r.name, err)
		}
	}
	return a
}

// all asks every route at once, and returns the answers in the document's order.
func (f *frozen) all() []answered {
	answers := make([]answered, len(f.routes))
	var wait sync.WaitGroup
	for i, r := range f.routes {
		wait.Go(func() { answers[i] = f.ask(r) })
	}
	wait.Wait()
	return answers
}

// document makes a request for each operation of the document that the node serves,
// of the document's own examples: one that is new is there by itself.
func (f *frozen) document() []route {
	f.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Security    []map[string][]string
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal([]byte(f.ask(route{method: http.MethodGet, path: "/openapi.json"}).body), &doc); err != nil {
		f.Fatal(err)
	}
	var routes []route
	for path, operations := range doc.Paths {
		for method, op := range operations {
			r := route{method: strings.ToUpper(method), path: f.filled(path)}
			r.name = r.method + " " + path
			for _, who := range op.Security {
				if _, ok := who["apiKey"]; ok {
					r.as = clitest.Key
				}
				if _, ok := who["userToken"]; ok {
					r.as = f.token("first")
				}
			}
			for kind, content := range op.RequestBody.Content {
				var csv string
				if r.kind, r.body = kind, content.Example; json.Unmarshal(r.body, &csv) == nil {
					r.body = []byte(csv)
				}
			}
			if slices.ContainsFunc(op.Security, func(who map[string][]string) bool { return len(who) == 0 }) && r.as != "" {
				open := r
				open.name, open.as = r.name+" by anybody", ""
				routes = append(routes, open)
			}
			routes = append(routes, r)
		}
	}
	slices.SortFunc(routes, func(a, b route) int { return strings.Compare(a.name, b.name) })
	if len(routes) < 70 {
		f.Fatalf("the document has only %d operations", len(routes))
	}
	return routes
}

// filled is a path of the document with names of things in it.
func (f *frozen) filled(path string) string {
	id := "noon"
	switch {
	case strings.HasPrefix(path, "/v1/claims/"):
		id = f.claim
	case strings.Contains(path, "/queue"), strings.Contains(path, "/tickets"):
		id = "queued"
	case strings.Contains(path, "/lottery"):
		id = "drawn"
	}
	return strings.NewReplacer("{id}", id, "{user}", "42", "{shard}", "0").Replace(path)
}

// withoutLedger are the operations that do not have to ask the ledger, with the
// statuses of their answers while it hangs. All others are unavailable.
var withoutLedger = map[string][]int{
	"GET /healthz": {200}, "GET /readyz": {503}, "GET /metrics": {200}, "GET /openapi.json": {200}, "GET /docs": {200}, "GET /v1/time": {200},
	// Pages, and the key of the command line, are the program's own.
	"GET /": {200}, "GET /console": {200}, "GET /v1/session": {200}, "GET /v1/settings": {200},
	// The examination says that the ledger does not answer.
	"GET /v1/doctor": {200},
	// What a stream shows follows when there is an answer.
	"GET /v1/campaigns/{id}/stats/stream": {200},
	// This node holds the campaign, which is no red packet.
	"GET /v1/campaigns/{id}/luck": {404}, "GET /v1/campaigns/{id}/luck by anybody": {404},
	// The public view of a campaign that this node holds.
	"GET /c/{id}": {200}, "GET /v1/campaigns/{id} by anybody": {200}, "GET /v1/campaigns/{id}/events": {200},
	// The user of the request has a claim already; others are granted theirs.
	"POST /v1/campaigns/{id}/claims": {409},
	// Waiting rooms and tickets are in the engine; a place may be left meanwhile.
	"POST /v1/campaigns/{id}/queue": {200}, "GET /v1/campaigns/{id}/queue": {200, 404}, "DELETE /v1/campaigns/{id}/queue": {200},
	"POST /v1/campaigns/{id}/tickets": {200}, "POST /v1/campaigns/{id}/tickets/challenge": {200},
	// A node may have read of a lottery before what is asked for.
	"GET /v1/campaigns/{id}/lottery": {200, 503}, "GET /v1/campaigns/{id}/lottery/entries": {409, 503},
	// No connection is asked for in the right way.
	"GET /v1/ws": {400}, "POST /v1/ws-tickets": {201},
}

// TestHangingDatabase freezes the database under a node on Redis: every route of the
// document answers in time, as one that did nothing or without the ledger, and claims are
// granted. When the database goes on, everything does, with nothing restarted. A node
// that is stopped while the database is frozen ends within its drain.
func TestHangingDatabase(t *testing.T) {
	for name, get := range hangKinds("postgres") {
		t.Run(name, func(t *testing.T) {
			db, ledger, _ := servers.Database(t, get)
			c := clusterOn(t, ledger, 1, "--ledger-timeout", hangTimeout.String(), "--drain", hangDrain.String())
			f := newFrozen(t, db, c.nodes[0].process, c.nodes[0].url())
			db.Freeze(t)
			var claiming sync.WaitGroup
			claiming.Go(func() {
				for i := range 20 {
					if a := f.claims(fmt.Sprint("during", i)); a.status != http.StatusCreated || a.took > hangTimeout+hangSlack {
						t.Errorf("a claim after %s: %d %s", a.took, a.status, a.body)
					}
				}
			})
			// What a check found before counts for a moment.
			eventually(t, hangTimeout+hangSlack, "the node is not ready", func(context.Context) bool {
				return f.ask(route{method: http.MethodGet, path: "/readyz"}).status == http.StatusServiceUnavailable
			})
			for _, a := range f.all() {
				f.hung(&a, withoutLedger)
			}
			claiming.Wait()
			db.Thaw(t)
			f.goesOn()
			f.freezesUnderWay()
			c.verify()
			f.stopsFrozen()
		})
	}
}

// TestHangingJournal freezes the database that has the journal of a memory engine
// beside the ledger: claims are unavailable in time, too, and the same again is granted
// when the database goes on.
func TestHangingJournal(t *testing.T) {
	for name, get := range hangKinds("mysql") {
		t.Run(name, func(t *testing.T) {
			db, ledger, _ := servers.Database(t, get)
			p := start(t, append([]string{"DIBS_LEDGER=" + ledger}, clitest.Secrets...), "serve", "--listen", "127.0.0.1:0",
				"--ledger-timeout", hangTimeout.String(), "--drain", hangDrain.String())
			f := newFrozen(t, db, p, p.await(t, p.err, `msg=serving url=(\S+)`)[1])
			db.Freeze(t)
			f.unavailable("none", "unknown")
			db.Thaw(t)
			f.goesOn()
			f.stopsFrozen()
		})
	}
}

// TestHangingLedgered: where a yes waits for the ledger, a claim may be granted while the
// ledger hangs, and the same again finds it.
func TestHangingLedgered(t *testing.T) {
	db, ledger, _ := servers.Database(t, servers.Postgres)
	c := clusterOn(t, ledger, 1, "--ledger-timeout", hangTimeout.String(), "--durability", "ledgered")
	f := newFrozen(t, db, c.nodes[0].process, c.nodes[0].url())
	db.Freeze(t)
	f.unavailable("unknown")
	db.Thaw(t)
	f.goesOn()
	c.verify()
	c.drain()
}

// unavailable makes users claim, and each receives in time that the outcome is unknown.
func (f *frozen) unavailable(effects ...string) {
	f.Helper()
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			a := f.claims(fmt.Sprint("during", i))
			if a.status != http.StatusServiceUnavailable || !slices.Contains(effects, a.problem.Effect) || a.retryAfter == "" || a.took > 2*hangTimeout+hangSlack {
				f.Errorf("a claim after %s: %d %s", a.took, a.status, a.body)
			}
		})
	}
	wait.Wait()
}

// asks is how often a route asks the ledger at most, though there was no answer before.
func (a *answered) asks() time.Duration {
	if a.name == "GET /v1/doctor" {
		// Each of its findings is a question of its own.
		return 4
	}
	return 1
}

// hung checks an answer of a node whose database hangs.
func (f *frozen) hung(a *answered, without map[string][]int) {
	f.Helper()
	quickest := a.took
	for n := 1; n < hangTries && quickest > a.asks()*hangTimeout+hangSlow; n++ {
		again := f.ask(a.route)
		quickest = min(quickest, again.took)
	}
	if quickest > a.asks()*hangTimeout+hangSlow || a.took > a.asks()*hangTimeout+hangSlack {
		f.Errorf("%s answers after %s, at best after %s", a.name, a.took, quickest)
	}
	want, known := without[a.name]
	switch {
	case known && !slices.Contains(want, a.status):
		f.Errorf("%s: %d, want %v: %s", a.name, a.status, want, a.brief())
	case !known && (a.status != http.StatusServiceUnavailable || a.problem.Reason != "unavailable" || a.problem.Effect != "none" || a.retryAfter == ""):
		f.Errorf("%s: %d, Retry-After %q: %s", a.name, a.status, a.retryAfter, a.brief())
	}
	if a.name == "GET /readyz" && !strings.Contains(a.body, "the ledger does not answer") {
		f.Errorf("%s does not name the ledger: %s", a.name, a.body)
	}
}

// freezesUnderWay freezes the database while every route is asked: wherever that finds
// them, they end. To verify is left out: its statements may take long.
func (f *frozen) freezesUnderWay() {
	f.Helper()
	f.routes = slices.DeleteFunc(f.routes, func(r route) bool { return r.path == "/v1/verify" })
	answers := make(chan []answered)
	go func() { answers <- f.all() }()
	f.db.Freeze(f.T)
	for _, a := range <-answers {
		// What was changed before is noted after it, which has a time of its own.
		if a.took > (1+a.asks())*hangTimeout+hangSlack || a.status >= http.StatusInternalServerError && a.status != http.StatusServiceUnavailable {
			f.Errorf("%s on the way: %d after %s: %s", a.name, a.status, a.took, a.brief())
		}
	}
	f.db.Thaw(f.T)
	f.ready()
}

// stopsFrozen freezes the database and stops the node.
func (f *frozen) stopsFrozen() {
	f.Helper()
	f.db.Freeze(f.T)
	begun := time.Now()
	f.node.signal(f.T, syscall.SIGTERM)
	code := f.node.code(f.T)
	if took := time.Since(begun); code != cli.ExitOK || took > hangDrain+hangSlack {
		f.Errorf("the node ends after %s with %d:\n%s", took, code, f.node.err)
	}
	f.db.Thaw(f.T)
}

// ready waits until the node says that it is, and the ledger has every claim.
func (f *frozen) ready() {
	f.Helper()
	eventually(f.T, clitest.Patience, "the node is ready and has settled everything", func(context.Context) bool {
		a := f.ask(route{name: "readyz", method: http.MethodGet, path: "/readyz"})
		var health struct {
			Backlog int64 `json:"journal_backlog"`
		}
		return a.status == http.StatusOK && json.Unmarshal([]byte(a.body), &health) == nil && health.Backlog == 0
	})
}

// goesOn checks that a node works again when its database does, and that users that
// claimed meanwhile have what they were told, or get it now.
func (f *frozen) goesOn() {
	f.Helper()
	f.ready()
	for _, r := range f.routes {
		if r.method != http.MethodGet {
			continue
		}
		// A busy machine may take longer than the ledger has.
		a := f.ask(r)
		for n := 0; a.status == http.StatusServiceUnavailable && n < 20; n++ {
			a = f.ask(r)
		}
		if a.status >= http.StatusInternalServerError {
			f.Errorf("%s afterwards: %d %s", r.name, a.status, a.brief())
		}
	}
	for _, user := range []string{"first", "during0", "during9", "after"} {
		if a := f.claims(user); a.status != http.StatusCreated && a.status != http.StatusOK {
			f.Errorf("the claim of %s afterwards: %d %s", user, a.status, a.body)
		}
	}
	f.ready()
}
