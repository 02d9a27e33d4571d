package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// Shape is how arrivals are spread over the time of a rush.
type Shape string

// The shapes.
const (
	// Even arrivals come at the same rate from the beginning to the end.
	Even Shape = "even"
	// Falling arrivals begin at twice the mean rate and fall to nothing.
	Falling Shape = "falling"
	// AtOnce has every user arrive at the same moment.
	AtOnce Shape = "at-once"
)

// The engines and the ledgers that a plan knows.
const (
	Memory   = "memory"
	Redis    = "redis"
	SQLite   = "sqlite"
	MySQL    = "mysql"
	Postgres = "postgres"
)

// The most of what a plan takes on.
const (
	MaxUsers  = 1_000_000_000
	MaxNodes  = 1_024
	MaxShards = 64
	maxCores  = 1_024
)

// Question is a rush and the deployment that it meets. Zero fields take the
// defaults that are named beside them.
type Question struct {
	// Users arrive over the time Over, in a Shape. Each sends Presses requests;
	// default 1. Without Over they come at once.
	Users   int64         `json:"users"`
	Presses float64       `json:"presses"`
	Over    time.Duration `json:"over"`
	Shape   Shape         `json:"shape"`
	// Wave, when it is not zero, bounds the requests that are under way: the crowd
	// sends so many at once, and the next as many when all of those are answered.
	Wave int64 `json:"wave,omitempty"`
	// Stock is units of the campaign.
	Stock int64 `json:"stock"`

	// Engine is Memory or Redis; default Memory. Ledger is SQLite, MySQL or
	// Postgres; default SQLite with the memory engine, else MySQL. Durability is a
	// level; default dibs.LevelDurable.
	Engine     string `json:"engine"`
	Ledger     string `json:"ledger"`
	Durability string `json:"durability"`
	// Nodes is how many there are; 0 looks for the fewest. Cores is how many each
	// of them has; default 4, and fractions are parts of a shared one.
	Nodes int     `json:"nodes"`
	Cores float64 `json:"cores"`
	// Shards is how many cores of Redis decide, each for a part of the stock;
	// default 1. -1 looks for the fewest.
	Shards int `json:"shards"`
	// Target is the p99 of all answers that the deployment is to keep; default 1s.
	Target time.Duration `json:"target"`
	// Link is the round trip between a node and Redis; default 200µs.
	Link time.Duration `json:"link"`
	// ClientsHere says that the clients share the processors of the node, as those
	// of dibs rehearse do.
	ClientsHere bool `json:"clients_here,omitempty"`
	// Seed spreads the arrivals; default 1.
	Seed uint64 `json:"seed"`
}

// FindShards looks for the fewest shards.
const FindShards = -1

// WithDefaults returns the question with every zero field set.
func (q Question) WithDefaults() Question {
	q.Presses = cmp.Or(q.Presses, 1)
	q.Engine = cmp.Or(q.Engine, Memory)
	q.Durability = cmp.Or(q.Durability, dibs.LevelDurable)
	if q.Engine == Memory {
		q.Nodes = cmp.Or(q.Nodes, 1)
		q.Ledger = cmp.Or(q.Ledger, SQLite)
	}
	q.Ledger = cmp.Or(q.Ledger, MySQL)
	if q.Ledger == SQLite {
		q.Nodes = cmp.Or(q.Nodes, 1)
	}
	q.Cores = cmp.Or(q.Cores, 4)
	q.Shards = cmp.Or(q.Shards, 1)
	q.Target = cmp.Or(q.Target, time.Second)
	q.Link = cmp.Or(q.Link, 200*time.Microsecond)
	q.Seed = cmp.Or(q.Seed, 1)
	if q.Over == 0 {
		q.Shape = cmp.Or(q.Shape, AtOnce)
	}
	q.Shape = cmp.Or(q.Shape, Even)
	return q
}

// Validate lists every fault of a question, as given or with defaults. Its fields
// are named as the flags of `dibs plan` are.
func (q Question) Validate() error {
	var fs []dibs.Fault
	must := func(ok bool, flag, format string, args ...any) {
		if !ok {
			fs = append(fs, dibs.Fault{Field: "/" + flag, Problem: dibs.Text{EN: fmt.Sprintf(format, args...)}})
		}
	}
	q = q.WithDefaults()
	must(q.Users >= 1 && q.Users <= MaxUsers, "users", "must be from 1 to %d", int64(MaxUsers))
	must(q.Presses >= 1 && q.Presses <= 100, "presses", "must be from 1 to 100")
	must(q.Stock >= 1 && q.Stock <= dibs.MaxStock, "stock", "must be from 1 to %d", int64(dibs.MaxStock))
	must(q.Over >= 0 && q.Over <= 24*time.Hour, "over", "must be from 0s to 24h")
	must(q.Wave >= 0, "wave", "must not be negative")
	must(q.Wave == 0 || q.Over == 0, "wave", "cannot be combined with --over: a wave is sent when the one before is answered")
	must(slices.Contains([]Shape{Even, Falling, AtOnce}, q.Shape), "shape", "must be %s, %s or %s", Even, Falling, AtOnce)
	must(q.Over > 0 == (q.Shape != AtOnce), "shape", "%s and --over exclude each other, and the other shapes need --over", AtOnce)
	q.deployment(must)
	if len(fs) > 0 {
		return dibs.Invalid(fs...)
	}
	return nil
}

// deployment judges what meets the crowd.
func (q *Question) deployment(must func(ok bool, flag, format string, args ...any)) {
	must(q.Engine == Memory || q.Engine == Redis, "engine", "must be %s or %s: a plan needs the kind, not the address", Memory, Redis)
	must(slices.Contains([]string{SQLite, MySQL, Postgres}, q.Ledger), "ledger", "must be %s, %s or %s: a plan needs the kind, not the address", SQLite, MySQL, Postgres)
	must(slices.Contains(dibs.Levels(), q.Durability), "durability", "must be one of %s", strings.Join(dibs.Levels(), ", "))
	must(q.Engine != Memory || q.Durability != dibs.LevelReplicated, "durability", "the memory engine has no replicas")
	must(q.Nodes >= 0 && q.Nodes <= MaxNodes, "nodes", "must be from 1 to %d, or 0 for the fewest", MaxNodes)
	must(q.Engine != Memory || q.Nodes == 1, "nodes", "must be 1 with the memory engine, which one node owns")
	must(q.Engine == Memory || q.Ledger != SQLite || q.Nodes <= 1, "nodes", "must be 1 with SQLite, whose file one node owns; several nodes need mysql or postgres")
	must(q.Cores > 0 && q.Cores <= maxCores, "cores", "must be above 0, at most %d", maxCores)
	must(q.Shards == FindShards || q.Shards >= 1 && q.Shards <= MaxShards, "shards", "must be from 1 to %d, or %d for the fewest", MaxShards, FindShards)
	must(q.Engine != Memory || q.Shards == 1, "shards", "must be 1 on the memory engine")
	must(int64(q.Shards) <= max(q.Stock, 1), "shards", "must not be more than the units of the stock")
	must(q.Target >= time.Millisecond && q.Target <= time.Hour, "target", "must be from 1ms to 1h")
	must(q.Link > 0 && q.Link <= time.Second, "link", "must be above 0s, at most 1s")
	must(!q.ClientsHere || q.Nodes == 1, "clients-here", "needs --nodes 1: the clients are on the node's machine")
}

// requests is how many there are in all.
func (q *Question) requests() float64 { return float64(q.Users) * q.Presses }

// durable reports whether an answer waits for a disk.
func (q *Question) durable() bool {
	return q.Durability != dibs.LevelNone && q.Durability != dibs.LevelRelaxed
}
