package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

const (
	// askEvery is how often a node asks the database whether it keeps what it commits.
	askEvery = time.Second
	// askFor is how long an answer is worth waiting for.
	askFor = 2 * time.Second
)

// errForgetful: the database may lose what it commits.
var errForgetful = errors.New("node: the database does not keep what it commits")

// committedEngine is an engine whose yes waits for a commit of a database: that of the
// journal, or at ledgered that of the ledger. While the settings of the database do not
// let it keep what it commits, nothing new is granted, as by redisengine while Redis does
// not give its level.
//
// lost and settings are written by one goroutine and read without a lock: a claim looks at
// lost alone. said is that goroutine's own.
type committedEngine struct {
	dibs.Engine
	ask  func(context.Context) ([]dibs.Finding, error)
	warn bool
	log  *slog.Logger
	// troubles are what keeps the database from being asked.
	troubles *trouble.Log

	lost     atomic.Bool
	settings atomic.Pointer[[]dibs.Finding]
	// said is what was logged of the settings that are wrong.
	said string

	stop    context.CancelFunc
	running sync.WaitGroup
}

// watchDatabase puts a committedEngine before the node's engine where a yes waits for a
// commit of a server. A file is written by this process, which has SQLite put each commit on
// the disk: nobody else changes how.
func (n *Node) watchDatabase(ctx context.Context, cfg *Config) {
	if !sqlledger.InServer(cfg.Ledger) || cfg.Engine != Memory && cfg.Durability != dibs.LevelLedgered {
		return
	}
	n.Engine = watchCommits(ctx, n.Engine, n.Ledger.Durable, cfg.DurabilityLost == dibs.WarnLost, cfg.Service.Logger)
}

// watchCommits asks once, and then every askEvery until the engine is closed.
func watchCommits(ctx context.Context, engine dibs.Engine, ask func(context.Context) ([]dibs.Finding, error), warn bool, log *slog.Logger) *committedEngine {
	e := &committedEngine{Engine: engine, ask: ask, warn: warn, log: log, troubles: trouble.New(log, slog.LevelWarn)}
	e.settings.Store(new([]dibs.Finding))
	e.look(ctx)
	ctx, e.stop = context.WithCancel(context.Background())
	e.running.Go(func() {
		for wait.Sleep(ctx, askEvery) {
			e.look(ctx)
		}
	})
	return e
}

// look asks for the settings, and has claims refused or decided accordingly. A database
// that does not answer decides nothing: it commits nothing either.
func (e *committedEngine) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	settings, err := e.ask(within)
	if err != nil {
		if ctx.Err() == nil {
			e.troubles.Is("ask", "the database does not say whether it keeps what it commits", err)
		}
		return
	}
	e.troubles.Over("ask", "the database says again whether it keeps what it commits")
	var wrong []string
	for _, f := range settings {
		if !f.OK() {
			wrong = append(wrong, f.String())
		}
	}
	e.settings.Store(&settings)
	e.lost.Store(len(wrong) > 0 && !e.warn)
	e.tell(strings.Join(wrong, "; "))
}

// tell logs a change, once.
func (e *committedEngine) tell(wrong string) {
	if wrong == e.said {
		return
	}
	e.said = wrong
	switch {
	case wrong == "":
		e.log.Info("the database keeps what it commits again: claims are decided")
	case e.warn:
		e.log.Warn("the database does not keep what it commits: claims are granted all the same", "settings", wrong)
	default:
		e.log.Error("the database does not keep what it commits: claims are refused until it does", "settings", wrong)
	}
}

// Claim implements Engine. While the database is not to be relied on, only a yes that was
// given is found.
func (e *committedEngine) Claim(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	if !e.lost.Load() || req.OnlyRepeat {
		return e.Engine.Claim(ctx, req)
	}
	if req.Key == 0 {
		return dibs.Decision{Outcome: dibs.Unavailable}, nil
	}
	req.OnlyRepeat = true
	d, err := e.Engine.Claim(ctx, req)
	if d.Outcome == dibs.Overloaded {
		d.Outcome = dibs.Unavailable
	}
	return d, err
}

// Ping implements Engine.
func (e *committedEngine) Ping(ctx context.Context) error {
	return errors.Join(e.forgetful(), e.Engine.Ping(ctx))
}

// forgetful is errForgetful while claims are refused.
func (e *committedEngine) forgetful() error {
	if e.lost.Load() {
		return errForgetful
	}
	return nil
}

// Abilities implements Engine: the level depends on the database's settings too.
func (e *committedEngine) Abilities() dibs.Abilities {
	a := e.Engine.Abilities()
	if level := a.Level; level != nil {
		a.Level = func() (string, []dibs.Finding) {
			name, found := level()
			return name, slices.Concat(found, *e.settings.Load())
		}
	}
	if all := a.Deployments; all != nil {
		a.Deployments = func(ctx context.Context) map[int]error {
			answers := all(ctx)
			for number, err := range answers {
				answers[number] = errors.Join(e.forgetful(), err)
			}
			return answers
		}
	}
	return a
}

// Close implements Engine.
func (e *committedEngine) Close(ctx context.Context) error {
	e.stop()
	e.running.Wait()
	return e.Engine.Close(ctx)
}
