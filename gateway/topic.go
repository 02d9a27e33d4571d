package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/api"
)

// The changes that a campaign's message names. The phase tells what is true.
const (
	eventState    = "state"
	eventOpened   = "opened"
	eventPaused   = "paused"
	eventResumed  = "resumed"
	eventSoldOut  = "sold_out"
	eventReopened = "reopened"
	eventEnded    = "ended"
	eventChanged  = "changed"
	eventStock    = "stock"
)

// listener is told, without detail, that a topic has news.
type listener interface{ nudge() }

// news is what a topic tells, encoded once for all who listen.
type news struct {
	// seq counts the topic's news, from 1.
	seq  uint64
	mark dibs.Mark
	// raw is the message, sse the same as an event of a stream.
	raw, sse []byte
}

// topic is a campaign that somebody on this node follows.
//
// It lives while refs is above 0. ready is closed once; before that err, stop and
// latest are begin's. listeners has what is to be woken, latest what they read
// without a lock. publish is called by begin, then by the hub's teller alone, so seq
// rises by one each time.
type topic struct {
	hub  *Hub
	id   string
	refs int // guarded by hub.topicsMu

	// ready is closed once the campaign is watched, or err says why not.
	ready chan struct{}
	err   error
	stop  func()

	mu        sync.RWMutex
	listeners map[listener]struct{}
	latest    atomic.Pointer[news]

	// waiting is what was heard and is not told yet; toldAt is when the stock was
	// told last. told is what was.
	waitMu  sync.Mutex
	waiting *dibs.Snapshot
	told    dibs.Snapshot
	toldAt  time.Time
	began   bool
}

// watchPatience bounds how long it may take to find a campaign.
const watchPatience = 5 * time.Second

// follow returns a campaign's topic, which has to be let go of. *dibs.Error of
// NotFound, Overloaded or Unavailable.
func (h *Hub) follow(id string) (*topic, error) {
	h.topicsMu.Lock()
	t := h.topics[id]
	first := t == nil
	if first {
		t = &topic{hub: h, id: id, ready: make(chan struct{}), listeners: map[listener]struct{}{}}
		h.topics[id] = t
	}
	t.refs++
	h.topicsMu.Unlock()
	if first {
		t.begin()
	}
	<-t.ready
	if t.err != nil {
		h.leave(t)
		return nil, t.err
	}
	return t, nil
}

// begin watches the campaign.
func (t *topic) begin() {
	defer close(t.ready)
	ctx, cancel := context.WithTimeout(context.Background(), watchPatience)
	defer cancel()
	now, stop, err := t.hub.cfg.Snapshots.Watch(ctx, t.id, t.tell)
	if err != nil {
		t.err = err
		return
	}
	t.stop = stop
	t.publish(now)
}

// leave lets a topic go; the last one ends it.
func (h *Hub) leave(t *topic) {
	h.topicsMu.Lock()
	t.refs--
	over := t.refs == 0
	if over && h.topics[t.id] == t {
		delete(h.topics, t.id)
	}
	h.topicsMu.Unlock()
	if over && t.stop != nil {
		t.stop()
	}
}

func (t *topic) add(l listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listeners[l] = struct{}{}
}

func (t *topic) remove(l listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.listeners, l)
}

// campaign is the definition that was told last.
func (t *topic) campaign() *dibs.Campaign {
	t.waitMu.Lock()
	defer t.waitMu.Unlock()
	return t.told.Campaign
}

// tell takes note of where the campaign stands. The hub's teller does the rest.
// A snapshot that was not told yet is replaced: clients get where the campaign
// stands, not each step.
func (t *topic) tell(now dibs.Snapshot) {
	t.waitMu.Lock()
	t.waiting = &now
	t.waitMu.Unlock()
	wait.Kick(t.hub.tellKick)
}

// due returns what is to be told now; false when nothing is.
// An older snapshot than was told is dropped. A change of the stock alone waits for
// its time; any other change does not.
func (t *topic) due(now time.Time) (dibs.Snapshot, bool) {
	t.waitMu.Lock()
	defer t.waitMu.Unlock()
	if t.waiting == nil {
		return dibs.Snapshot{}, false
	}
	next := *t.waiting
	if old := next.Mark.Compare(t.told.Mark); old < 0 || old == 0 && next.Remaining == t.told.Remaining {
		t.waiting = nil
		return dibs.Snapshot{}, false
	}
	if onlyStock(&t.told, &next) && now.Sub(t.toldAt) < t.hub.cfg.StockEvery {
		return dibs.Snapshot{}, false
	}
	t.waiting = nil
	return next, true
}

func onlyStock(a, b *dibs.Snapshot) bool {
	return a.Phase == b.Phase && a.Mark.Version == b.Mark.Version
}

// eventOf names what has changed between two snapshots.
func eventOf(before, now *dibs.Snapshot) string {
	switch {
	case before.Phase == now.Phase && before.Mark.Version != now.Mark.Version:
		return eventChanged
	case before.Phase == now.Phase:
		return eventStock
	case now.Phase == dibs.PhaseEnded:
		return eventEnded
	case now.Phase == dibs.PhasePaused:
		return eventPaused
	case now.Phase == dibs.PhaseSoldOut:
		return eventSoldOut
	case now.Phase == dibs.PhaseUpcoming:
		return eventChanged
	case before.Phase == dibs.PhasePaused:
		return eventResumed
	case before.Phase == dibs.PhaseSoldOut:
		return eventReopened
	}
	return eventOpened
}

// publish encodes where the campaign stands and tells everybody.
func (t *topic) publish(now dibs.Snapshot) {
	t.waitMu.Lock()
	event := eventState
	if t.began {
		event = eventOf(&t.told, &now)
	}
	t.began, t.told, t.toldAt = true, now, time.Now()
	t.waitMu.Unlock()
	seq := uint64(1)
	if before := t.latest.Load(); before != nil {
		seq = before.seq + 1
	}
	raw := t.hub.encode(campaignMessage{typeCampaign, api.SnapshotViewOf(&now, event)})
	t.latest.Store(&news{seq: seq, mark: now.Mark, raw: raw, sse: frame(now.Mark.String(), event, raw)})
	t.mu.RLock()
	defer t.mu.RUnlock()
	for l := range t.listeners {
		l.nudge()
	}
}

// tellLoop tells what is due, at once when something was heard and a little
// later when it had to wait.
func (h *Hub) tellLoop() {
	const pace = 100 * time.Millisecond
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var all []*topic
	for {
		select {
		case <-h.stop:
			return
		case <-h.tellKick:
		case <-tick.C:
		}
		all = all[:0]
		h.topicsMu.Lock()
		for _, t := range h.topics {
			select {
			case <-t.ready:
				all = append(all, t)
			default:
				// It is told where it stands to begin with first.
			}
		}
		h.topicsMu.Unlock()
		now := time.Now()
		for _, t := range all {
			if s, ok := t.due(now); ok {
				t.publish(s)
			}
		}
	}
}
