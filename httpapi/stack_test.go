package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/engine/memengine"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/gate/audience"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/redpacket"

	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const (
	adminKey  = "dibs_test_admin_key_0123456789"
	jwtSecret = "a secret of the tests, 32 bytes+"
)

// stack is a whole dibs behind HTTP, in temporary files.
type stack struct {
	t       testing.TB
	service *node.Service
	handler http.Handler
	url     string
	admin   *client.Client
	logs    *lockedBuffer
}

// newStack starts a stack; change may replace services by failing ones.
func newStack(t testing.TB, change func(*httpapi.Services)) *stack {
	t.Helper()
	return newStackAt(t, time.Now, change)
}

// newStackAt is newStack with a clock of the test's.
func newStackAt(t testing.TB, now func() time.Time, change func(*httpapi.Services)) *stack {
	t.Helper()
	svc, lists := newServiceAndLists(t)
	logs := &lockedBuffer{}
	s := httpapi.ServicesOf(svc)
	if change != nil {
		change(&s)
	}
	h, err := httpapi.New(httpapi.Config{
		Services: s, JWTSecret: []byte(jwtSecret), AllowDevTokens: true, Version: "test", Audiences: lists, Gateway: newShortGateway(),
		Meters: oneMeasure{}, Rehearsals: &fakeRehearsals{}, Diagnosis: fakeDiagnosis{}, LoginCodes: &fakeCodes{"once": adminKey},
		Logger: slog.New(slog.NewTextHandler(logs, nil)), Now: now,
	})
	must(t, err)
	st := serve(t, svc, h)
	st.logs = logs
	return st
}

// serve puts a handler behind a server of the tests.
func serve(t testing.TB, svc *node.Service, h http.Handler) *stack {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config = httpapi.NewServer("", h)
	server.Start()
	t.Cleanup(server.Close)
	admin, err := client.New(server.URL, client.Options{AdminKey: adminKey})
	must(t, err)
	t.Cleanup(admin.CloseIdle)
	return &stack{t: t, service: svc, handler: h, url: server.URL, admin: admin, logs: &lockedBuffer{}}
}

// freshFolder is that of a node that has never run, with the ledger's tables.
func freshFolder(t testing.TB) string {
	return fresh.Folder(t, "ledger", func(dir string) error {
		l, err := sqlledger.OpenSQLite(context.Background(), filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		return l.Close()
	})
}

func newService(t testing.TB) *node.Service {
	t.Helper()
	svc, _ := newServiceAndLists(t)
	return svc
}

func newServiceAndLists(t testing.TB) (*node.Service, *audience.Keeper) {
	t.Helper()
	return newServiceWith(t, func(*node.ServiceConfig) {})
}

// newServiceWith starts a service with a config that the test changes.
func newServiceWith(t testing.TB, change func(*node.ServiceConfig)) (*node.Service, *audience.Keeper) {
	t.Helper()
	ctx := context.Background()
	dir := freshFolder(t)
	ledger, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
	must(t, err)
	t.Cleanup(func() { must(t, ledger.Close()) })
	journal, err := sqlledger.OpenSQLiteJournal(ctx, filepath.Join(dir, "journal.db"), sqlledger.Options{Migrate: true})
	must(t, err)
	engine, err := memengine.Open(ctx, memengine.Config{Store: journal, Owner: "test"})
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close(context.Background())) })
	ids, err := idgen.ForClaims(ctx, ledger)
	must(t, err)
	lists := audience.NewKeeper(audience.Config{Store: ledger, Every: 10 * time.Millisecond})
	cfg := node.ServiceConfig{
		Engine: engine, Ledger: ledger.Parts(), IDs: ids, Gates: []dibs.Gate{lists}, Erasers: []erasure.Eraser{lists},
		EraseEvery: 10 * time.Millisecond, EraseRest: time.Millisecond,
		Split: func(p dibs.RedPacketSpec) ([]int64, error) { return redpacket.Split(p, nil) },
	}
	change(&cfg)
	svc, err := node.NewService(cfg)
	must(t, err)
	must(t, svc.Start(ctx))
	t.Cleanup(func() { must(t, svc.Close(context.Background())) })
	lists.Start(ctx, svc.Live.Registry.Held)
	t.Cleanup(lists.Close)
	_, err = svc.Access.EnsureKey(ctx, "tests", adminKey)
	must(t, err)
	return svc, lists
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sale drafts and publishes a campaign that runs now.
func (s *stack) sale(id string, units, limit int64) {
	s.t.Helper()
	s.campaign(id, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), units, limit)
}

func (s *stack) campaign(id string, from, to time.Time, units, limit int64) {
	s.t.Helper()
	_, err := s.admin.Campaigns.Create(context.Background(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: "Test " + id, StartsAt: from, EndsAt: to,
		Stock: dibs.StockSpec{Units: &units}, Limit: &limit,
	}, "")
	must(s.t, err)
	_, err = s.admin.Campaigns.Publish(context.Background(), id)
	must(s.t, err)
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]any
	// ofAPI says that it is of a path of the API, and not of what stands beside it.
	ofAPI bool
}

// ask sends one raw request. Headers are "Name: value" lines.
func (s *stack) ask(method, path, body string, headers ...string) answer {
	s.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, s.url+path, r)
	must(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Log(s.logs.String())
	}
	must(s.t, err)
	raw, err := io.ReadAll(resp.Body)
	must(s.t, err)
	must(s.t, resp.Body.Close())
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(raw), ofAPI: strings.HasPrefix(path, "/v1/")}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") && method != http.MethodHead && len(raw) > 0 {
		must(s.t, json.Unmarshal(raw, &a.json))
	}
	return a
}

const (
	asAdmin = "Authorization: Bearer " + adminKey
	asUser  = "Authorization: Bearer dev_42"
)

// jwtFor is a user's token as an Authorization line.
func jwtFor(t testing.TB, user string, ttl time.Duration) string {
	t.Helper()
	token, err := httpapi.IssueToken([]byte(jwtSecret), user, ttl)
	must(t, err)
	return "Authorization: Bearer " + token
}

// lockedBuffer collects what the handlers log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
