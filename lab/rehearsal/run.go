package rehearsal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/api"
)

// spareFiles are for what is not a connection of the load: databases, listeners,
// the standard streams.
const spareFiles = 128

// goodbye is how long it may take, after the load was stopped, to ask for the
// last numbers and to end the campaign.
const goodbye = 15 * time.Second

// Run rehearses. It returns an error when it could not begin; once requests
// were sent there is a report, also when ctx ended meanwhile. Only one
// rehearsal should run in a process: they share its open files.
func Run(ctx context.Context, cfg Config) (r *Report, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	if cfg.Seed == 0 {
		var b [4]byte
		// crypto/rand.Read never fails: it stops the program instead.
		_, _ = rand.Read(b[:])
		cfg.Seed = uint64(binary.LittleEndian.Uint32(b[:])) + 1
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.MaxTime, fmt.Errorf("it took longer than %s", cfg.MaxTime))
	defer cancel()
	h := &rehearsal{cfg: cfg, run: strings.ToLower(rand.Text()[:6]), progress: progress{cfg.Progress, cfg.Terminal, cfg.On}}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	if err := h.begin(ctx); err != nil {
		return nil, err
	}
	return h.rehearse(ctx)
}

// rehearsal is one run.
// It is used by one goroutine; what runs beside it gets what it needs.
type rehearsal struct {
	cfg      Config
	run      string
	progress progress
	notes    []string

	own         *own
	url         string
	connections int
	conns       *connections
	client      *client.Client
	admin       *client.Client
	chinese     *client.Client
	server      server
	sockets     *sockets
	campaign    string
	ours        bool
	limit       int64
	before      api.StatsView
}

// begin brings server, connections and campaign to where the load can start.
func (h *rehearsal) begin(ctx context.Context) error {
	if err := h.limitFiles(); err != nil {
		return err
	}
	h.url = h.cfg.URL
	key, token := h.cfg.AdminKey, devToken
	if h.url == "" {
		var err error
		if h.own, err = startOwn(ctx, &h.cfg); err != nil {
			return err
		}
		h.url, key = h.own.url, h.own.adminKey
		h.progress.say("an embedded server listens on %s", h.url)
	}
	if h.cfg.JWTSecret != "" {
		token = signedToken(h.cfg.JWTSecret, h.cfg.MaxTime+time.Minute)
	}
	if err := h.dialBoth(key); err != nil {
		return err
	}
	w := &wire{users: h.client, admin: h.admin, chinese: h.chinese, token: token}
	if h.server = w; h.cfg.Through == WebSocket {
		h.sockets = &sockets{wire: w, timeout: h.cfg.Timeout, conns: make(map[string]*client.Conn, h.cfg.Users)}
		h.server = h.sockets
	}
	if err := w.greet(ctx, h.run+"-0"); err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("no server answers at %s: start one with dibs dev or dibs serve, or name another --url", h.url)
		}
		if h.cfg.URL != "" && h.cfg.JWTSecret == "" && errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}) {
			return fmt.Errorf("the server does not take the tokens of `dibs dev`; give --jwt-secret: %w", err)
		}
		return fmt.Errorf("a user's first call: %w", err)
	}
	return h.prepareCampaign(ctx)
}

// adminConnections is how many connections admin calls share at an address of their own.
// They come one after the other; some of a stopped rehearsal may still be under way.
const adminConnections = 4

// dialBoth makes the clients of users and of administrators, which are one where they
// have one address.
func (h *rehearsal) dialBoth(key string) (err error) {
	h.conns = newConnections(h.connections, h.cfg.Timeout)
	options := client.Options{AdminKey: key, HTTPClient: h.conns.client(h.connections, h.cfg.Timeout)}
	h.client, err = client.New(h.url, options)
	if h.admin = h.client; err != nil {
		return err
	}
	address := h.url
	if h.cfg.AdminURL != h.cfg.URL {
		// The connections that are opened before the load lead to the users' address.
		options.HTTPClient = newConnections(0, h.cfg.Timeout).client(adminConnections, h.cfg.Timeout)
		address = h.cfg.AdminURL
		if h.admin, err = client.New(address, options); err != nil {
			return err
		}
	}
	if h.cfg.Chinese {
		options.Language = "zh"
		h.chinese, err = client.New(address, options)
	}
	return err
}

// limitFiles sees to it that the connections can be opened. Each is a file of
// this process, and two when the server is its own.
// The limit of the process is raised as far as the system allows, for all of the
// process.
func (h *rehearsal) limitFiles() error {
	needs := min(h.cfg.Concurrency, mostPorts)
	if h.cfg.Through == WebSocket {
		needs = h.cfg.Users
	}
	h.connections = needs
	each := uint64(1)
	if h.cfg.URL == "" {
		each = 2
	}
	files, err := openFiles(uint64(h.connections)*each + spareFiles)
	if err != nil {
		return fmt.Errorf("asking how many files may be open: %w", err)
	}
	if files < 2*spareFiles {
		return fmt.Errorf("this process may open %d files, too few for any load", files)
	}
	h.connections = min(h.connections, int((files-spareFiles)/each))
	if h.cfg.Through == WebSocket && h.connections < needs {
		return fmt.Errorf("this process may open %d files, too few for a WebSocket of each of %d users", files, needs)
	}
	if h.cfg.Through == HTTP && h.connections < h.cfg.Concurrency {
		h.notes = append(h.notes, fmt.Sprintf(
			"%s requests at once shared %s connections: this process may open %s files. The wait for a connection is part of the latency.",
			thousands(int64(h.cfg.Concurrency)), thousands(int64(h.connections)), thousands(int64(files))))
	}
	return nil
}

// prepareCampaign makes the campaign of this rehearsal, or reads the given one.
func (h *rehearsal) prepareCampaign(ctx context.Context) error {
	h.campaign, h.limit = h.cfg.Campaign, h.cfg.Limit
	if h.campaign == "" {
		h.campaign = "rehearsal-" + h.run
		now := time.Now().UTC()
		_, err := h.admin.Campaigns.Create(ctx, dibs.CampaignSpec{
			ID: h.campaign, Kind: h.cfg.Kind, Title: "Rehearsal " + h.run,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour + h.cfg.MaxTime),
			Stock: h.stock(), Limit: &h.cfg.Limit, Shards: &h.cfg.Shards,
		}, "")
		if err != nil {
			return h.asAdmin("making a campaign", err)
		}
		h.ours = true
		if _, err := h.admin.Campaigns.Publish(ctx, h.campaign); err != nil {
			return fmt.Errorf("publishing the campaign: %w", err)
		}
	} else {
		c, err := h.admin.Campaigns.Get(ctx, h.campaign)
		if err != nil {
			return h.asAdmin("reading the campaign "+h.campaign, err)
		}
		h.limit = c.LimitPerUser
	}
	var err error
	if h.before, err = h.server.stats(ctx, h.campaign); err != nil {
		return fmt.Errorf("reading the campaign's numbers: %w", err)
	}
	h.progress.tell(Event{Campaign: h.campaign})
	return nil
}

// asAdmin is the error of the first admin call. A server whose administrators have an
// address of their own knows neither their calls nor their keys at the users' address.
func (h *rehearsal) asAdmin(doing string, err error) error {
	apart := errors.Is(err, &dibs.Error{Reason: dibs.NotFound}) || errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated})
	if apart && h.cfg.URL != "" && h.cfg.AdminURL == h.cfg.URL {
		return fmt.Errorf("%s: %w (where administrators have an address of their own, give it as --admin-url)", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// stock is what the rehearsal's own campaign has to grant.
func (h *rehearsal) stock() dibs.StockSpec {
	switch h.cfg.Kind {
	case dibs.Coupon:
		return dibs.StockSpec{Codes: &dibs.CodesSpec{Count: h.cfg.Stock}}
	case dibs.RedPacket:
		return dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{
			Total: dibs.Money{Amount: h.cfg.Stock * meanShare, Currency: "CNY"}, Count: h.cfg.Stock,
		}}
	}
	return dibs.StockSpec{Units: &h.cfg.Stock}
}

// connect opens the connections before the load begins.
func (h *rehearsal) connect(ctx context.Context) error {
	u, err := url.Parse(h.url)
	if err != nil {
		return err
	}
	addr := u.Host
	if u.Port() == "" {
		addr += ":" + u.Scheme
	}
	opened := newTally(0)
	defer h.progress.watch("connecting", h.connections, opened.done.Load, none)()
	return h.conns.prepare(ctx, addr, h.connections, func() { opened.done.Add(1) })
}

// rehearse loads the server and judges it.
// The judging goes on when the load was cut short: what was answered must hold all
// the same.
func (h *rehearsal) rehearse(ctx context.Context) (*Report, error) {
	p := newPlan(&h.cfg, h.run)
	l := &load{
		server: h.server, plan: p, campaign: h.campaign, quantity: h.cfg.Quantity,
		atOnce: h.cfg.Concurrency, paced: h.cfg.Rate > 0, tally: newTally(len(p.presses)),
	}
	connect := h.connect
	if h.sockets != nil {
		connect = func(ctx context.Context) error { return h.sockets.open(ctx, p, h.cfg.Users, h.progress) }
	}
	if err := connect(ctx); err != nil {
		return nil, err
	}
	stop := h.progress.watch("pressing", len(p.presses), l.tally.done.Load, l.tally.live)
	start := time.Now()
	err := l.run(ctx)
	took := time.Since(start)
	stop()
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	asked := patient{h.server, newPatience(h.cfg.Patience)}
	r := h.report()
	if p.keys {
		l.askAgain(ctx, asked, h.progress)
	}
	r.fill(l.tally, took)
	e := &evidence{plan: p, ours: h.ours, limit: h.limit, quantity: h.cfg.Quantity, before: h.before, tally: l.tally}
	h.progress.tell(Event{Verdicts: []Verdict{e.oversell(), e.limits(), e.answered()}})
	if p.keys {
		e.repeatAll(ctx, asked, h.campaign, h.progress)
		h.progress.tell(Event{Verdicts: []Verdict{e.repeated()}})
	}
	e.readBack(ctx, asked, h.progress)
	e.ask(ctx, asked, h.campaign)
	h.progress.tell(Event{Verdicts: []Verdict{e.kept(), e.phantoms(), e.undersell(), e.numbers()}})
	if h.cfg.Kind == dibs.RedPacket {
		e.count(ctx, asked, h.campaign, h.progress)
	}
	if ctx.Err() != nil {
		if r.Interrupted, r.Why = true, context.Cause(ctx).Error(); errors.Is(context.Cause(ctx), context.Canceled) {
			r.Why = "it was stopped"
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		e.after, e.statsErr = h.server.stats(last, h.campaign)
	}
	r.conclude(e)
	return r, nil
}

// report is what is known before the load.
func (h *rehearsal) report() *Report {
	r := &Report{
		Scenario: h.cfg.Scenario, Seed: h.cfg.Seed, Run: h.run, Server: h.url, CampaignID: h.campaign,
		Users: h.cfg.Users, Requests: h.cfg.Requests, Concurrency: h.cfg.Concurrency, Connections: h.connections,
		Through: h.cfg.Through, Rate: h.cfg.Rate, Stock: h.before.Remaining, Limit: h.limit, Quantity: h.cfg.Quantity, Notes: h.notes,
	}
	if h.own != nil {
		r.Server += " (embedded)"
	}
	return r
}

// close ends what the rehearsal began, also when ctx has ended.
func (h *rehearsal) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	var errs []error
	if h.ours {
		if err := h.server.end(ctx, h.campaign); err != nil {
			errs = append(errs, fmt.Errorf("ending the campaign %s: %w", h.campaign, err))
		}
	}
	if h.sockets != nil {
		h.sockets.close()
	}
	if h.client != nil {
		h.client.CloseIdle()
		if h.admin != nil {
			h.admin.CloseIdle()
		}
		errs = append(errs, h.conns.close())
	}
	if h.own != nil {
		errs = append(errs, h.own.stop(ctx))
	}
	return errors.Join(errs...)
}
