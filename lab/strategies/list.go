package strategies

import (
	"context"
	"slices"

	"github.com/dibs-dev/dibs"
)

// in makes an opener of what needs nothing but its world.
func in(open func(w *World) Attempt) func(context.Context, *World) (Attempt, error) {
	return func(_ context.Context, w *World) (Attempt, error) { return open(w), nil }
}

// onNodes opens local locks of so many processes.
func onNodes(nodes int) func(context.Context, *World) (Attempt, error) {
	return in(func(w *World) Attempt { return &localLock{World: w, nodes: make([]userLocks, nodes)} })
}

// filled opens a way that begins with the packets in their queue.
func filled(open func(p packet) Attempt) func(context.Context, *World) (Attempt, error) {
	return func(ctx context.Context, w *World) (Attempt, error) {
		p := packet{w}
		return open(p), p.fill(ctx)
	}
}

// All returns every strategy, by the ideas that they try, with dibs last. Each call makes a new
// list, which the caller may change.
func All() []Strategy {
	return slices.Concat(inSQL(), withRedis(), packets(), ours())
}

// inSQL are the strategies that need a database alone.
func inSQL() []Strategy {
	return []Strategy{
		{
			Name: "naive", Idea: "read, then write", SQL: true, PerUser: true, Breaks: []Flaw{Oversold, Duplicates},
			Does:    "reads stock and orders, then takes one and writes an order",
			Teaches: "what was read is old before it is used: it sells more than there is, and twice to one user",
			open:    in(func(w *World) Attempt { return naive{World: w} }),
		},
		{
			Name: "row-lock", Idea: "optimistic and row locks", SQL: true, PerUser: true,
			Does:    "SELECT … FOR UPDATE, then the same in one transaction",
			Teaches: "right, and everybody waits for everybody: one commit after another",
			open:    in(func(w *World) Attempt { return rowLock{World: w} }),
		},
		{
			Name: "by-version", Idea: "optimistic and row locks", SQL: true,
			Does:    "takes one if the version is what was read, else reads again",
			Teaches: "right, and most of the work is for nothing: statements per claim grow with the crowd",
			open:    in(func(w *World) Attempt { return byVersion{World: w} }),
		},
		{
			Name: "by-equality", Idea: "optimistic and row locks", SQL: true, Breaks: []Flaw{Undersold},
			Does:    "takes one if the stock is what was read, else refuses",
			Teaches: "people are sent away while stock is left",
			open:    in(func(w *World) Attempt { return byEquality{World: w} }),
		},
		{
			Name: "by-stock", Idea: "optimistic and row locks", SQL: true,
			Does:    "takes one where stock > 0, in one statement",
			Teaches: "the condition belongs into the write: never too much, never too little; one row is still one queue",
			open:    in(func(w *World) Attempt { return byStock{World: w} }),
		},
		{
			Name: "check-then-buy", Idea: "one order per user", SQL: true, PerUser: true, Breaks: []Flaw{Duplicates},
			Does:    "by-stock, after a look whether the user has an order",
			Teaches: "two presses of one user both find no order",
			open:    in(func(w *World) Attempt { return checkThenBuy{World: w} }),
		},
		{
			Name: "local-lock-early", Idea: "one order per user", SQL: true, PerUser: true, Breaks: []Flaw{Duplicates},
			Does:    "a lock of the process for each user, released before the commit",
			Teaches: "the next press finds the lock free and the order not yet there",
			open:    in(func(w *World) Attempt { return &earlyLock{World: w} }),
		},
		{
			Name: "local-lock", Idea: "one order per user", SQL: true, PerUser: true,
			Does:    "a lock of the process for each user, released after the commit",
			Teaches: "right as long as there is one process",
			open:    onNodes(1),
		},
		{
			Name: "local-lock-nodes", Idea: "one order per user", SQL: true, PerUser: true, Breaks: []Flaw{Duplicates},
			Does:    "the same on two nodes behind a load balancer",
			Teaches: "two processes have two locks",
			open:    onNodes(2),
		},
	}
}

// withRedis are the strategies that keep a lock or a count in Redis, before the database.
func withRedis() []Strategy {
	return []Strategy{
		{
			Name: "redis-user-lock", Idea: "lock in Redis", SQL: true, Redis: true, PerUser: true,
			Does:    "SET NX with lifetime and owner's token for each user, then check-then-buy",
			Teaches: "right on all nodes while the work is shorter than the lifetime",
			open:    in(func(w *World) Attempt { return redisUserLock{World: w} }),
		},
		{
			Name: "redis-stock-lock", Idea: "one lock for all", SQL: true, Redis: true,
			Does:    "one lock in Redis around the stock, waited for by asking again",
			Teaches: "the slowest way of all: the pace is that of asking, not of selling",
			open:    in(func(w *World) Attempt { return stockLock{World: w} }),
		},
		{
			Name: "cached-stock", Idea: "stock in Redis", SQL: true, Redis: true,
			Does:    "count in Redis with a lifetime, EXISTS, EXPIRE and INCRBY in one script; the database at once",
			Teaches: "refusals become cheap; a sale still waits for its commit",
			open:    in(func(w *World) Attempt { return &cachedStock{cached: cached{w}} }),
		},
		{
			Name: "cached-queue", Idea: "database behind a queue", SQL: true, Redis: true,
			Does:    "the same, and the database is written behind a queue",
			Teaches: "the answer no longer waits; one consumer writes one commit for each sale, far behind",
			open:    openCachedQueue,
		},
		{
			Name: "cached-sum", Idea: "sums written behind", SQL: true, Redis: true,
			Does:    "the same, added up and written as one deduction",
			Teaches: "batches cost the database next to nothing; what is added up dies with its process",
			open:    openCachedSum,
		},
		{
			Name: "hash-lock", Idea: "campaign in Redis", SQL: true, Redis: true, PerUser: true, Breaks: []Flaw{Unkept},
			Does:    "campaign in a hash, stock by script, a lock for each user; as it is usually written",
			Teaches: "who fails to get the lock is told yes, and has nothing",
			open:    openHashLock(false),
		},
		{
			Name: "hash-lock-repaired", Idea: "campaign in Redis", SQL: true, Redis: true, PerUser: true,
			Does:    "the same, and who fails to get the lock is refused; what fails is given back",
			Teaches: "right while every process lives: a crash between script and order loses one for good",
			open:    openHashLock(true),
		},
	}
}

// packets are the strategies of red packets: Redis decides, and a writer fills the database later.
func packets() []Strategy {
	return []Strategy{
		{
			Name: "multi-exec", Idea: "MULTI and WATCH", SQL: true, Redis: true, PerUser: true,
			Does:    "WATCH, read, MULTI, write, EXEC, and again when somebody was faster",
			Teaches: "right, and in a rush somebody is always faster: commands per claim tell",
			open:    openMultiExec,
		},
		{
			Name: "packet-script", Idea: "script", SQL: true, Redis: true, PerUser: true,
			Does:    "the red packet's script, one call per grab on 20 connections",
			Teaches: "the yardstick: atomic, fast, and kept nowhere but in memory until the writer comes",
			open:    openPacketScript,
		},
		{
			Name: "packet-pipeline", Idea: "script", SQL: true, Redis: true, PerUser: true,
			Does:    "the same calls in a pipeline",
			Teaches: "round trips were the smaller half: the rest is the script, once for each user",
			open:    filled(func(p packet) Attempt { return &packetPipeline{p} }),
		},
		{
			Name: "packet-batch", Idea: "batches", SQL: true, Redis: true, PerUser: true,
			Does:    "one call for all users who came meanwhile",
			Teaches: "a call costs more than what it does: gathering is what makes Redis fast",
			open:    openPacketBatch,
		},
	}
}

// ours are dibs in one process, and on Redis at each level.
func ours() []Strategy {
	list := []Strategy{{
		Name: "dibs-embedded", Idea: "dibs", PerUser: true,
		Does:    "dibs in the process, journal and ledger in SQLite; every yes is on the disk first",
		Teaches: "nothing installed, nothing lost, and faster than any of the above that writes to a disk",
		open:    openDibs(""),
	}}
	for _, l := range []struct{ level, teaches string }{
		{dibs.LevelNone, "what the engine costs when nothing is kept"},
		{dibs.LevelRelaxed, "a log that is synced every second costs little"},
		{dibs.LevelDurable, "thousands share one sync: durable is not slow"},
		{dibs.LevelReplicated, "a replica has every yes before it is said: a round trip more, shared as well"},
		{dibs.LevelLedgered, "the database has every yes before it is said: as slow as its commits, shared by all who wait"},
	} {
		list = append(list, Strategy{
			Name: "dibs-redis-" + l.level, Idea: "dibs", Redis: true, PerUser: true, Level: l.level,
			Does: "dibs on Redis, a yes is " + l.level + "; ledger in the database", Teaches: l.teaches,
			open: openDibs(l.level),
		})
	}
	return list
}
