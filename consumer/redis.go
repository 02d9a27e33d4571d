package consumer

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// DefaultStream is the stream of an address that names none.
const DefaultStream = "dibs:events"

var redisKind = &kind{stream: DefaultStream, run: runRedis, dead: redisDead, replay: redisReplay}

// group reads one stream for one group.
type group struct {
	cfg    *Config
	client rueidis.Client
	stream string
	// again says that the stream is that of letters that were brought back: the
	// group's own, from which what is done is dropped.
	again bool
	// redone is how far it was looked for entries that are due again.
	redone string
}

// replayed is the stream of dead letters that were brought back for a group.
func replayed(stream, group string) string { return stream + ":" + group + ":again" }

// deadOf is the stream of a group's dead letters.
func deadOf(stream, group string) string { return stream + ":" + group + ":dead" }

// connect opens a client. Its answers are never taken for granted: what was not
// acknowledged comes again.
func connect(at *place) (rueidis.Client, error) {
	opt, err := rueidis.ParseURL(at.url.String())
	if err != nil {
		return nil, errAddress
	}
	opt.DisableCache, opt.DisableRetry = true, true
	opt.Dialer.Timeout = cmp.Or(opt.Dialer.Timeout, 5*time.Second)
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", at.tidied(err))
	}
	return c, nil
}

// runRedis reads until something fails.
func runRedis(ctx context.Context, cfg *Config, at *place) (worked bool, err error) {
	client, err := connect(at)
	if err != nil {
		return false, err
	}
	defer client.Close()
	groups := []*group{
		{cfg: cfg, client: client, stream: cfg.Stream}, {cfg: cfg, client: client, stream: replayed(cfg.Stream, cfg.Group), again: true},
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
		entries = append(entries, read(e.ID, e.FieldValues["subject"], e.FieldValues["event"], 1))
	}
	if len(entries) == 0 {
		return nil
	}
	return g.work(ctx, entries)
}

// keepAll makes entries come again, to whichever consumer, when they are not
// kept any more. Should this process die, that is long before an hour is over.
func (g *group) keepAll(ctx context.Context, entries []*reading) error {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	return g.keep(ctx, kept*g.cfg.Timeout, nil, ids...)
}

// keep makes entries come again after a delay: Redis gives those again that
// nobody touched for maxDelay, so they are said to be untouched for the rest.
func (g *group) keep(ctx context.Context, delay time.Duration, more []string, ids ...string) error {
	idle := maxDelay - min(delay, maxDelay)
	args := append([]string{g.stream, g.cfg.Group, g.cfg.Name, "0"}, ids...)
	args = append(args, "IDLE", strconv.FormatInt(idle.Milliseconds(), 10))
	return g.do(ctx, "XCLAIM", append(append(args, more...), "JUSTID")...).Error()
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
		entries = append(entries, read(e.ID, e.FieldValues["subject"], e.FieldValues["event"], attempt))
	}
	if len(entries) == 0 {
		return nil
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
	b := &batch{cfg: g.cfg, entries: entries, keep: g.keepAll, keptAt: time.Now()}
	if err := g.keepAll(ctx, entries); err != nil {
		return err
	}
	ours := b.handle(ctx)
	// Messages that were handled are noted even when the consumer stops now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var done []string
	for _, e := range entries {
		why, dead := g.cfg.buried(e)
		var err error
		switch {
		case dead:
			err = g.bury(ctx, e, why)
		case !e.decision.later:
			done = append(done, e.id)
		case !ours:
			// Another consumer may have it.
		case e.untried:
			err = g.keep(ctx, 0, []string{"RETRYCOUNT", strconv.Itoa(e.delivery.Attempt - 1)}, e.id)
		default:
			err = g.keep(ctx, e.decision.delay, nil, e.id)
		}
		if err != nil {
			return err
		}
	}
	return g.ack(ctx, done...)
}

// ack ends entries.
func (g *group) ack(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	err := g.do(ctx, "XACK", append([]string{g.stream, g.cfg.Group}, ids...)...).Error()
	if err == nil && g.again {
		err = g.do(ctx, "XDEL", append([]string{g.stream}, ids...)...).Error()
	}
	return err
}

// bury makes an entry a dead letter. When the process dies halfway, it comes
// once more.
func (g *group) bury(ctx context.Context, e *reading, why string) error {
	v := &e.delivery.Event
	args := []string{
		deadOf(g.cfg.Stream, g.cfg.Group), "*", "id", v.ID, "type", v.Type, "subject", e.subject,
		"event", e.event, "attempts", strconv.Itoa(e.delivery.Attempt), "why", why,
	}
	if err := g.do(ctx, "XADD", args...).Error(); err != nil {
		return err
	}
	g.cfg.Logger.Warn("an event is a dead letter", "event", v.ID, "attempts", e.delivery.Attempt, "why", why)
	return g.ack(ctx, e.id)
}
