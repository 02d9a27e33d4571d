package redisengine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// lookEvery is how often each process asks Redis whether it gives the level: three
// times in the second within which claims are refused when it does not.
const lookEvery = 300 * time.Millisecond

// level is whether Redis gives the configured level, as it was found last. Settings
// change while a server runs, and replicas go; nothing else would tell: a grant is
// answered with the same word whether the disk has it or not.
type level struct {
	// lost is set while claims are refused. It is all that they look at.
	lost atomic.Bool
	// settings are the findings, one for each setting.
	settings atomic.Pointer[[]dibs.Finding]

	// mu lets one look at a time be taken, so that an older one has not the last word,
	// and guards what follows.
	mu sync.Mutex
	// unsaved are the servers whose append-only file was off, until it is whole.
	unsaved map[string]bool
	// said is what was logged of the settings that take the level away, and advised is
	// set once it was logged what else could be better.
	said    string
	advised bool
}

// watchLevel looks until ctx ends, with the engine.
func (e *Engine) watchLevel(ctx context.Context, at server) {
	defer e.running.Done()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.lookOnce(ctx, at)
	}
}

// lookOnce looks for as long as an answer is worth waiting for. A server that does
// not answer decides nothing: what was found last stands.
func (e *Engine) lookOnce(ctx context.Context, at server) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Deadline)
	defer cancel()
	if _, err := e.look(ctx, at); err != nil {
		e.log.Debug("Redis was asked for its level", "err", err)
	}
}

// look asks the servers whether they give the configured level, and has claims
// refused or decided accordingly. It returns why they cannot be used, and how many
// replicas all of them have.
func (e *Engine) look(ctx context.Context, at server) (replicas int, err error) {
	l := &e.level
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes, silent := at.nodes(ctx)
	if len(nodes) == 0 {
		return 0, silent
	}
	l.noteUnsaved(nodes)
	l.advise(e, nodes)
	given, replicas, err := inspect(nodes, &e.cfg, at.isCluster())
	e.durability.Store(&given)
	if !slices.ContainsFunc(nodes, func(f facts) bool { return f.role != "master" }) {
		// Of a server that has been demoted claims hear so themselves, and wait for the
		// next master.
		e.judge(nodes)
	}
	if silent != nil {
		return replicas, silent
	}
	return replicas, err
}

// advise logs, once, what the engine works in spite of.
func (l *level) advise(e *Engine, nodes []facts) {
	if l.advised {
		return
	}
	l.advised = true
	for i := range nodes {
		for _, f := range nodes[i].findings(&e.cfg, len(nodes) > 1) {
			if f.Standing == dibs.StandingWarn {
				e.log.Warn("Redis is not as it should be", "finding", f.String())
			}
		}
	}
}

// noteUnsaved marks the servers whose append-only file was off and is being written
// for the first time since: what is decided meanwhile is in no file that a restart
// would read.
func (l *level) noteUnsaved(nodes []facts) {
	for i := range nodes {
		f := &nodes[i]
		switch {
		case !f.aof:
			if l.unsaved == nil {
				l.unsaved = make(map[string]bool)
			}
			l.unsaved[f.addr] = true
		case !f.rewriting:
			delete(l.unsaved, f.addr)
		}
		f.unsaved = f.aof && l.unsaved[f.addr]
	}
}

// judge compares the settings with the level, and says what has changed.
func (e *Engine) judge(nodes []facts) {
	settings := settingsOf(nodes, &e.cfg)
	var lost []dibs.Finding
	for _, f := range settings {
		if !f.OK() {
			lost = append(lost, f)
		}
	}
	refuses := slices.ContainsFunc(lost, e.refusesFor)
	e.level.settings.Store(&settings)
	e.level.lost.Store(refuses)
	e.level.tell(e, lost, refuses)
}

// refusesFor reports whether claims are refused for a setting that is wrong. What
// would have units sold twice is never gone on with.
func (e *Engine) refusesFor(f dibs.Finding) bool {
	return e.cfg.DurabilityLost != dibs.WarnLost || !slices.Contains(tolerable, f.Subject)
}

// tolerable are the settings whose loss takes safety from a yes, and nothing else.
var tolerable = []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "aof_last_write_status", "replicas"}

// tell logs a change, once.
func (l *level) tell(e *Engine, lost []dibs.Finding, refuses bool) {
	var all []string
	for _, f := range lost {
		all = append(all, f.String())
	}
	now := strings.Join(all, "; ")
	if now == l.said {
		return
	}
	l.said = now
	switch {
	case now == "":
		e.log.Info("Redis gives its level again: claims are decided", "level", e.cfg.Durability)
	case refuses:
		e.log.Error("Redis does not give its level: claims are refused until it does", "level", e.cfg.Durability, "settings", now)
	default:
		e.log.Warn("Redis does not give its level: claims are granted all the same", "level", e.cfg.Durability, "settings", now)
	}
}

// settingsOf are the findings of all servers, the worst for each setting, without
// their addresses: they are shown to people who may not know those.
func settingsOf(nodes []facts, cfg *Config) []dibs.Finding {
	var all []dibs.Finding
	for i := range nodes {
		for at, f := range nodes[i].named(nodes[i].settings(cfg), false) {
			switch {
			case i == 0:
				all = append(all, f)
			case all[at].OK() && !f.OK():
				all[at] = f
			}
		}
	}
	return all
}

// Level returns the configured level and the settings that it depends on; see
// dibs.LevelKeeper.
func (e *Engine) Level() (string, []dibs.Finding) {
	return e.cfg.Durability, *e.level.settings.Load()
}

// Durability is the level that Redis gave when it was last asked: dibs.LevelNone to
// dibs.LevelReplicated.
func (e *Engine) Durability() string { return *e.durability.Load() }
