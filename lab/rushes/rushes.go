// Package rushes runs rehearsals for a server that is asked to: one at a time, each on a campaign of its own, and
// remembers how the last ones went.
//
// # Basics
//
// A Desk opens a listener on loopback for the time of a rehearsal, where the server's own handler answers, and makes an
// API key that it revokes in the end. So presses come over real connections, whatever stands before the server.
//
// # Caveats
//
// A rehearsal takes what the machine has, beside the users who are there. Its results are kept until the process ends.
package rushes

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

const (
	// maxKept is how many rehearsals are remembered.
	maxKept = 20
	// longest is how long a rehearsal may take, and patience how long the server may put it off.
	longest  = 5 * time.Minute
	patience = 30 * time.Second
	// closing is how long the end may take: revoking the key, closing the listener.
	closing = 15 * time.Second
)

// Keys makes and ends API keys, as access.Access does.
type Keys interface {
	CreateKey(ctx context.Context, name string, role access.Role) (*access.APIKey, string, error)
	RevokeKey(ctx context.Context, id string) error
}

// Config configures a Desk. Keys is required.
type Config struct {
	Keys Keys
	// JWTSecret signs the users' tokens; empty means those of `dibs dev`.
	JWTSecret string
	// Logger receives what goes wrong at the end of a rehearsal; default: nobody.
	Logger *slog.Logger
	// Run replaces rehearsal.Run in tests.
	Run func(context.Context, rehearsal.Config) (*rehearsal.Report, error)
}

// Desk runs rehearsals. Use New; its methods are safe for concurrent use.
type Desk struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	// mu guards what follows. changed is closed and made anew whenever a view has changed.
	mu      sync.Mutex
	handler http.Handler
	views   []*httpapi.RehearsalView
	changed chan struct{}
	closed  bool
}

// New returns a desk. Close it.
func New(cfg Config) *Desk {
	if cfg.Run == nil {
		cfg.Run = rehearsal.Run
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Desk{cfg: cfg, changed: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Serve says which handler is rehearsed: the server's own, with its routes for administrators. Call it before the first
// rehearsal.
func (d *Desk) Serve(handler http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handler = handler
}

// Close stops a rehearsal that runs, and waits for its end.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.group.Wait()
}

var (
	errBusy = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "a rehearsal is running already: wait for its end", ZH: "已有演练正在进行，请等待其结束"})
	errNone = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such rehearsal, or no longer", ZH: "没有该演练，或已不再保留"})
	errGone = dibs.Fail(dibs.Unavailable, dibs.Text{EN: "the server is stopping", ZH: "服务正在停止"})
)

// Start begins a rehearsal. An *Error of InvalidState while another one runs.
func (d *Desk) Start(_ context.Context, req httpapi.RehearsalRequest) (httpapi.RehearsalView, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	v := &httpapi.RehearsalView{ID: newID(), State: httpapi.RehearsalRunning, Request: req, StartedAt: now, Promises: []httpapi.RehearsalVerdict{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return httpapi.RehearsalView{}, errGone
	}
	if slices.ContainsFunc(d.views, func(v *httpapi.RehearsalView) bool { return v.State == httpapi.RehearsalRunning }) {
		return httpapi.RehearsalView{}, errBusy
	}
	if d.views = append(d.views, v); len(d.views) > maxKept {
		d.views = d.views[1:]
	}
	d.group.Go(func() { d.run(v) })
	return *v, nil
}

// Find returns a rehearsal, and a channel that is closed when there is more to say of any. *Error of NotFound.
func (d *Desk) Find(id string) (httpapi.RehearsalView, <-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.views {
		if v.ID == id {
			copied := *v
			copied.Promises = slices.Clone(v.Promises)
			return copied, d.changed, nil
		}
	}
	return httpapi.RehearsalView{}, nil, errNone
}

// change changes a view, and wakes those who wait for that.
func (d *Desk) change(v *httpapi.RehearsalView, f func(*httpapi.RehearsalView)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(v)
	close(d.changed)
	d.changed = make(chan struct{})
}

// run rehearses.
func (d *Desk) run(v *httpapi.RehearsalView) {
	report, err := d.rehearse(v)
	d.change(v, func(v *httpapi.RehearsalView) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		v.EndedAt, v.State, v.Phase = &now, httpapi.RehearsalDone, ""
		if report != nil {
			v.Promises = nil
			take(v, rehearsal.Event{Verdicts: report.Promises})
			for zh, to := range map[bool]*json.RawMessage{false: &v.Report, true: &v.ReportZH} {
				raw, failed := json.Marshal(report.In(zh))
				*to, err = raw, errors.Join(err, failed)
			}
			return
		}
		v.State, v.Error, v.ErrorZH = httpapi.RehearsalFailed, "the rehearsal could not be run", "演练未能进行"
		if err != nil {
			v.Error, v.ErrorZH = err.Error(), v.ErrorZH+"："+err.Error()
		}
	})
	if err != nil {
		d.cfg.Logger.Warn("a rehearsal did not end well", "id", v.ID, "err", err)
	}
}

// rehearse runs a rehearsal against the handler, on a listener of its own.
func (d *Desk) rehearse(v *httpapi.RehearsalView) (report *rehearsal.Report, err error) {
	ctx, cancel := context.WithTimeout(d.ctx, longest)
	defer cancel()
	d.mu.Lock()
	handler := d.handler
	d.mu.Unlock()
	key, secret, err := d.cfg.Keys.CreateKey(ctx, "rehearsal "+v.ID, access.RoleAdmin)
	if err != nil {
		return nil, err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, d.cfg.Keys.RevokeKey(last, key.ID))
	}()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: longest}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() {
		closed := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		err = errors.Join(err, closed)
	}()
	return d.cfg.Run(ctx, rehearsal.Config{
		URL: "http://" + ln.Addr().String(), AdminKey: secret, JWTSecret: d.cfg.JWTSecret,
		Users: v.Request.Users, Requests: v.Request.Requests, Stock: v.Request.Stock, Kind: v.Request.Kind, Through: rehearsal.Through(v.Request.Through),
		Patience: patience, MaxTime: longest - closing, Chinese: true,
		On: func(e rehearsal.Event) { d.change(v, func(v *httpapi.RehearsalView) { take(v, e) }) },
	})
}

// take adds what has happened.
func take(v *httpapi.RehearsalView, e rehearsal.Event) {
	if e.Campaign != "" {
		v.CampaignID = e.Campaign
	}
	if e.Phase != "" {
		v.Phase, v.Did, v.Total = e.Phase, e.Done, e.Total
	}
	for _, p := range e.Verdicts {
		v.Promises = append(v.Promises, httpapi.RehearsalVerdict{Promise: p.Promise, Finding: string(p.Judgement), Witness: p.Witness, Detail: p.Detail, DetailZH: p.DetailZH})
	}
}
