package plan

import (
	"fmt"

	"github.com/dibs-dev/dibs"
)

// The names of the parts.
const (
	nodesName  = "nodes"
	redisName  = "Redis"
	ledgerName = "ledger"
	// journalName is the journal of the memory engine.
	journalName = "journal"
)

// parts measures the resources.
func (r *run) parts() []Part {
	part := func(name string, u *usage, format string, args ...any) Part {
		busy := u.between(0, r.record.lastAnswer) / max(r.record.lastAnswer, leastWidth) / u.servers
		return Part{Name: name, Busy: min(1, busy), Busiest: u.busiest(), What: fmt.Sprintf(format, args...)}
	}
	parts := []Part{part(nodesName, r.record.node, "%d × %g cores", r.q.Nodes, r.q.Cores)}
	if r.q.Engine == Redis {
		parts = append(parts, part(redisName, r.record.engine, "%d × 1 core, beside its disk", r.q.Shards))
	} else {
		parts = append(parts, part(journalName, r.record.engine, "one commit at a time, beside its disk"))
	}
	where := "one transaction at a time"
	if r.q.Ledger == SQLite {
		where = "on the node's processors"
	}
	return append(parts, part(ledgerName, r.record.ledger, "%s, %.0f grants a second at most", where, r.settleRate()))
}

// always is the busy share from which a part has no moment to spare.
const always = 0.99

// slowest names the part that parcels waited for longest in all. Users do not wait for
// the ledger, except at the level dibs.LevelLedgered. A journal whose commits wait for
// the node's processors is not to blame.
func (r *run) slowest() string {
	name, most := nodesName, r.record.node.waited
	starved := r.q.Engine == Memory && r.record.node.busiest() > always
	if r.record.engine.waited > most && !starved {
		name, most = r.parts()[1].Name, r.record.engine.waited
	}
	if r.q.Durability == dibs.LevelLedgered && r.record.ledger.waited > most {
		name = ledgerName
	}
	return name
}

// settleRate is how many grants the ledger takes in a second, in full batches.
func (r *run) settleRate() float64 {
	return 1 / ((r.ledgerCost.RowUS + r.ledgerCost.CommitUS/settleBatch) * micro)
}

// overloadTarget is what --overload-target is by default, in milliseconds.
const overloadTarget = 500

// note says what a reader has to know beside the figures.
func (a *Answer) note() {
	say := func(when bool, format string, args ...any) {
		if when {
			a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
		}
	}
	q := &a.Question
	say(a.Source == embedded, "the costs are those of the project's own machine: measure yours with dibs plan --measure")
	say(!a.Keeps, "the target is not kept: p99 is %.0f ms, and %s is wanted", a.All.P99, q.Target)
	say(a.Keeps && a.All.P99 > overloadTarget, "users wait longer than a node's --overload-target of %d ms: it may refuse some claims as overloaded, to be sent again", overloadTarget)
	say(q.Shards > 1, "create the campaign with --shards %d, on as many masters of a Redis Cluster", q.Shards)
	say(a.Lag.Most > maxBacklog, "more than %d grants wait for the ledger: a node refuses claims then, unless --max-backlog is raised", maxBacklog)
	say(q.ClientsHere, "the clients use the processors of the node")
}
