package consumer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// DefaultStream is the stream of an address that names none.
const DefaultStream = "dibs:events"

// How long one read waits for entries, and how often those are looked for that
// are due again.
const (
	readWait = 500 * time.Millisecond
	redoRest = time.Second
)

// group reads one stream for one group.
type group struct {
	cfg    *Config
	client rueidis.Client
	stream string
	// redone is how far it was looked for entries that are due again.
	redone string
}

// replayed is the stream of dead letters that were brought back for a group.
func replayed(stream, group string) string { return stream + ":" + group + ":again" }

// deadOf is the stream of a group's dead letters.
func deadOf(stream, group string) string { return stream + ":" + group + ":dead" }

// connect opens a client. Its answers are never taken for granted: what was not
// acknowledged comes again.
func connect(address string) (rueidis.Client, error) {
	opt, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, errors.New("consumer: the address of Redis cannot be used")
	}
	opt.DisableCache, opt.DisableRetry = true, true
	if opt.Dialer.Timeout == 0 {
		opt.Dialer.Timeout = 5 * time.Second
	}
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return c, nil
}

// Run handles events until ctx ends, whose error it then returns. Errors of
// Redis are logged, and tried again with growing pauses.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	pause := redoRest / 4
	for ctx.Err() == nil {
		worked, err := run(ctx, &cfg)
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("events wait: Redis does not give them", "stream", cfg.Stream, "err", err)
		}
		if pause = min(2*pause, 15*time.Second); worked {
			pause = redoRest / 4
		}
		rest(ctx, pause)
	}
	return ctx.Err()
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// run reads until something fails.
func run(ctx context.Context, cfg *Config) (worked bool, err error) {
	client, err := connect(cfg.URL)
	if err != nil {
		return false, err
	}
	defer client.Close()
	groups := []*group{
		{cfg: cfg, client: client, stream: cfg.Stream}, {cfg: cfg, client: client, stream: replayed(cfg.Stream, cfg.Group)},
	}
	for i, g := range groups {
		if err := g.create(ctx, i > 0 || cfg.FromStart); err != nil {
			return false, err
		}
	}
	looked := time.Time{}
	for ctx.Err() == nil {
		if err := groups[0].fresh(ctx, readWait); err != nil {
			return worked, err
		}
		worked = true
		if time.Since(looked) < redoRest/2 {
			continue
		}
		for _, g := range groups {
			if err := g.redo(ctx); err != nil {
				return worked, err
			}
		}
		if err := groups[1].fresh(ctx, 0); err != nil {
			return worked, err
		}
		looked = time.Now()
	}
	return worked, nil
}

// create makes the group, and the stream, when they are not there.
func (g *group) create(ctx context.Context, fromStart bool) error {
	from := "$"
	if fromStart {
		from = "0"
	}
	err := g.do(ctx, "XGROUP", "CREATE", g.stream, g.cfg.Group, from, "MKSTREAM").Error()
	if err != nil && strings.Contains(err.Error(), "BUSYGROUP") {
		return nil
	}
	return err
}

func (g *group) do(ctx context.Context, command string, args ...string) rueidis.RedisResult {
	cmd := g.client.B().Arbitrary(command).Args(args...)
	if command == "XREADGROUP" {
		return g.client.Do(ctx, cmd.Blocking())
	}
	return g.client.Do(ctx, cmd.Build())
}

// fresh reads entries that nobody has had, and handles them.
func (g *group) fresh(ctx context.Context, wait time.Duration) error {
	args := []string{"GROUP", g.cfg.Group, g.cfg.Name, "COUNT", strconv.Itoa(g.cfg.Batch)}
	if wait > 0 {
		args = append(args, "BLOCK", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	streams, err := g.do(ctx, "XREADGROUP", append(args, "STREAMS", g.stream, ">")...).AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var entries []*reading
	for _, e := range streams[g.stream] {
		entries = append(entries, &reading{id: e.ID, fields: e.FieldValues, delivery: Delivery{Attempt: 1}})
	}
	if len(entries) == 0 {
		return nil
	}
	// Should this process die, they come back long before an hour is over.
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	if err := g.keep(ctx, 4*g.cfg.Timeout, ids...); err != nil {
		return err
	}
	return g.work(ctx, entries)
}

// keep makes entries come again after a delay: Redis gives those again that
// nobody touched for maxDelay, so they are said to be untouched for the rest.
func (g *group) keep(ctx context.Context, delay time.Duration, ids ...string) error {
	idle := maxDelay - min(delay, maxDelay)
	args := append([]string{g.stream, g.cfg.Group, g.cfg.Name, "0"}, ids...)
	return g.do(ctx, "XCLAIM", append(args, "IDLE", strconv.FormatInt(idle.Milliseconds(), 10), "JUSTID")...).Error()
}

// redo handles entries that are due again.
func (g *group) redo(ctx context.Context) error {
	answer, err := g.do(ctx, "XAUTOCLAIM", g.stream, g.cfg.Group, g.cfg.Name,
		strconv.FormatInt(maxDelay.Milliseconds(), 10), cmp.Or(g.redone, "0-0"), "COUNT", strconv.Itoa(g.cfg.Batch)).ToArray()
	if err != nil || len(answer) < 2 {
		return err
	}
	// Redis looks at some of them at a time, and says where to look on.
	if g.redone, err = answer[0].ToString(); err != nil {
		return err
	}
	list, err := answer[1].ToArray()
	if err != nil {
		return err
	}
	var entries []*reading
	for i := range list {
		e, err := list[i].AsXRangeEntry()
		if rueidis.IsRedisNil(err) {
			// The stream was trimmed beyond it, and this server is too old to say so.
			continue
		}
		if err != nil {
			return err
		}
		attempt, err := g.attempt(ctx, e.ID)
		if err != nil {
			return err
		}
		entries = append(entries, &reading{id: e.ID, fields: e.FieldValues, delivery: Delivery{Attempt: attempt}})
	}
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		if err := g.keep(ctx, 4*g.cfg.Timeout, e.id); err != nil {
			return err
		}
	}
	return g.work(ctx, entries)
}

// attempt is how often an entry was given to a consumer.
func (g *group) attempt(ctx context.Context, id string) (int, error) {
	rows, err := g.do(ctx, "XPENDING", g.stream, g.cfg.Group, id, id, "1").ToArray()
	if err != nil || len(rows) == 0 {
		return 1, err
	}
	row, err := rows[0].ToArray()
	if err != nil || len(row) < 4 {
		return 1, err
	}
	n, err := row[3].AsInt64()
	return int(n), err
}

// work handles entries and tells Redis what became of them.
func (g *group) work(ctx context.Context, entries []*reading) error {
	var good []*reading
	for _, e := range entries {
		if err := json.Unmarshal([]byte(e.fields["event"]), &e.delivery.Event); err != nil {
			if err := g.bury(ctx, e, "it is no event: "+err.Error()); err != nil {
				return err
			}
			continue
		}
		good = append(good, e)
	}
	g.cfg.handle(ctx, good)
	// What was handled is noted even when the consumer stops now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	done := []string{g.stream, g.cfg.Group}
	for _, e := range good {
		var err error
		switch {
		case !e.decision.later:
			done = append(done, e.id)
		case e.delivery.Attempt >= g.cfg.MaxAttempts:
			err = g.bury(ctx, e, e.decision.why)
		default:
			err = g.keep(ctx, e.decision.delay, e.id)
		}
		if err != nil {
			return err
		}
	}
	if len(done) == 2 {
		return nil
	}
	return g.do(ctx, "XACK", done...).Error()
}

// bury makes an entry a dead letter. When the process dies halfway, it comes
// once more.
func (g *group) bury(ctx context.Context, e *reading, why string) error {
	args := []string{
		deadOf(g.cfg.Stream, g.cfg.Group), "*", "id", e.fields["id"], "type", e.fields["type"], "subject", e.fields["subject"],
		"event", e.fields["event"], "attempts", strconv.Itoa(e.delivery.Attempt), "why", why,
	}
	if err := g.do(ctx, "XADD", args...).Error(); err != nil {
		return err
	}
	g.cfg.Logger.Warn("an event is a dead letter", "event", e.fields["id"], "attempts", e.delivery.Attempt, "why", why)
	return g.do(ctx, "XACK", g.stream, g.cfg.Group, e.id).Error()
}
