package redisengine

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
)

// lookEvery is how often each process asks Redis whether it gives the level: three
// times in the second within which claims are refused when it does not.
const lookEvery = 300 * time.Millisecond

// level is whether Redis gives the configured level, as it was found last. Settings
// change while a server runs, and replicas go; nothing else would tell: a grant is
// answered with the same word whether the disk has it or not.
//
// lost and settings are written under mu and read without it: a claim looks at lost
// alone, and takes no lock. A look replaces what the one before has found, so that
// looks never overlap. cfg and log do not change once the engine is open.
type level struct {
	cfg *Config
	log *slog.Logger
	// given is the level that Redis gave when it was last asked.
	given atomic.Pointer[string]
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

// watch looks until ctx ends, with the engine.
func (l *level) watch(ctx context.Context, at conn.Server) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.lookOnce(ctx, at)
	}
}

// lookOnce looks for as long as an answer is worth waiting for. A server that does
// not answer decides nothing: what was found last stands.
func (l *level) lookOnce(ctx context.Context, at conn.Server) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Deadline)
	defer cancel()
	if _, err := l.look(ctx, at); err != nil {
		l.log.Debug("Redis was asked for its level", "err", err)
	}
}

// look asks the servers whether they give the configured level, and has claims
// refused or decided accordingly. It returns why they cannot be used, and how many
// replicas all of them have.
func (l *level) look(ctx context.Context, at conn.Server) (replicas int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes, silent := at.Nodes(ctx)
	if len(nodes) == 0 {
		return 0, silent
	}
	l.noteUnsaved(nodes)
	l.advise(nodes)
	given, replicas, err := inspect(nodes, l.cfg, at.IsCluster())
	l.given.Store(&given)
	if !slices.ContainsFunc(nodes, func(f conn.Facts) bool { return f.Role != "master" }) {
		// A server that has been demoted tells so to each claim, which then waits for the
		// next master.
		l.judge(nodes)
	}
	if silent != nil {
		return replicas, silent
	}
	return replicas, err
}

// advise logs, once, what the engine works in spite of.
func (l *level) advise(nodes []conn.Facts) {
	if l.advised {
		return
	}
	l.advised = true
	for i := range nodes {
		for _, f := range findingsOf(&nodes[i], l.cfg, len(nodes) > 1) {
			if f.Standing == dibs.StandingWarn {
				l.log.Warn("Redis is not as it should be", "finding", f.String())
			}
		}
	}
}

// noteUnsaved marks the servers whose append-only file was off and is being written
// for the first time since: what is decided meanwhile is in no file that a restart
// would read.
func (l *level) noteUnsaved(nodes []conn.Facts) {
	for i := range nodes {
		f := &nodes[i]
		switch {
		case !f.AOF:
			if l.unsaved == nil {
				l.unsaved = make(map[string]bool)
			}
			l.unsaved[f.Addr] = true
		case !f.Rewriting:
			delete(l.unsaved, f.Addr)
		}
		f.Unsaved = f.AOF && l.unsaved[f.Addr]
	}
}

// judge compares the settings with the level, and says what has changed.
func (l *level) judge(nodes []conn.Facts) {
	settings := worstOf(nodes, l.cfg)
	lost := slices.DeleteFunc(slices.Clone(settings), dibs.Finding.OK)
	refuses := slices.ContainsFunc(lost, l.refusesFor)
	l.settings.Store(&settings)
	l.lost.Store(refuses)
	l.tell(lost, refuses)
}

// refusesFor reports whether claims are refused for a setting that is wrong. They always are
// for one by which units would be sold twice.
func (l *level) refusesFor(f dibs.Finding) bool {
	return l.cfg.DurabilityLost != dibs.WarnLost || !slices.Contains(tolerable, f.Subject)
}

// tolerable are the settings whose loss takes safety from a yes, and nothing else.
var tolerable = []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "aof_last_write_status", "replicas"}

// tell logs a change, once.
func (l *level) tell(lost []dibs.Finding, refuses bool) {
	now := inWords(lost)
	if now == l.said {
		return
	}
	l.said = now
	switch {
	case now == "":
		l.log.Info("Redis gives its level again: claims are decided", "level", l.cfg.Durability)
	case refuses:
		l.log.Error("Redis does not give its level: claims are refused until it does", "level", l.cfg.Durability, "settings", now)
	default:
		l.log.Warn("Redis does not give its level: claims are granted all the same", "level", l.cfg.Durability, "settings", now)
	}
}

// worstOf are the findings of all servers, the worst for each setting, without
// their addresses: they are shown to people who may not know those.
func worstOf(nodes []conn.Facts, cfg *Config) []dibs.Finding {
	var all []dibs.Finding
	for i := range nodes {
		for at, f := range named(&nodes[i], settingsOf(&nodes[i], cfg), false) {
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

// now returns the configured level and the settings that it depends on; see
// dibs.Abilities.
func (l *level) now() (string, []dibs.Finding) { return l.cfg.Durability, *l.settings.Load() }

// CheckError is why a Redis cannot give what is configured. It names all that
// is wrong at once, and never a password.
type CheckError struct{ Findings []dibs.Finding }

// Error lists the findings.
func (e *CheckError) Error() string {
	return "redisengine: Redis cannot be used as configured: " + inWords(e.Findings)
}

func inWords(findings []dibs.Finding) string {
	all := make([]string, len(findings))
	for i, f := range findings {
		all[i] = f.String()
	}
	return strings.Join(all, "; ")
}

// inspect compares the servers with what is configured: a CheckError when they
// cannot give it. It returns the level that they give, and the replicas that all
// of them have.
func inspect(nodes []conn.Facts, cfg *Config, cluster bool) (level string, replicas int, err error) {
	bad := &CheckError{}
	level, replicas = dibs.LevelDurable, nodes[0].Replicas
	if f := modeOf(nodes, cluster); !f.OK() {
		bad.Findings = append(bad.Findings, f)
	}
	for i := range nodes {
		for _, f := range findingsOf(&nodes[i], cfg, len(nodes) > 1) {
			if f.Standing == dibs.StandingFail {
				bad.Findings = append(bad.Findings, f)
			}
		}
		if given := nodes[i].Level(); slices.Index(levels, given) < slices.Index(levels, level) {
			level = given
		}
		replicas = min(replicas, nodes[i].Replicas)
	}
	if level == dibs.LevelDurable && cfg.Durability == dibs.LevelReplicated && replicas >= max(cfg.Replicas, 1) {
		level = dibs.LevelReplicated
	}
	if len(bad.Findings) > 0 {
		return level, replicas, bad
	}
	return level, replicas, nil
}
