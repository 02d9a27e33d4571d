package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/web"
)

// Hub holds the connections of one node. Use New; all methods are safe for
// concurrent use.
//
// mu guards what stands below it up to topicsMu, and topicsMu guards topics and their
// refs. Neither is held while anything is sent, read or decided. leaving is set once;
// from then on count only falls, and empty is closed when it is 0. A connection in conns
// has entered and will exit through forget, once.
type Hub struct {
	cfg Config

	mu      sync.Mutex
	conns   map[*conn]struct{}
	users   map[string][]*conn // in the order in which they came
	streams map[*stream]struct{}
	// count is of all that entered and did not exit; leaving is set when no more
	// may enter, and empty is closed when the last one has left after that.
	count   int
	leaving bool
	empty   chan struct{}
	// addresses counts those of each address.
	addresses web.AddressCounts

	topicsMu sync.Mutex
	topics   map[string]*topic
	tellKick chan struct{}

	// asked are the tickets that users got lately.
	asked asked
	seen  seenEpoch

	// checking is set while tokens are checked again.
	checking atomic.Bool

	stop    chan struct{}
	stopped sync.Once
	// running are the loops, and all goroutines of connections.
	running sync.WaitGroup
	numbers numbers
}

// New returns a hub that takes connections, or lists every fault of the config.
func New(cfg Config) (*Hub, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	h := &Hub{
		cfg: cfg, asked: asked{span: cfg.TicketLife}, seen: seenEpoch{is: cfg.Epoch()}, conns: map[*conn]struct{}{}, users: map[string][]*conn{}, streams: map[*stream]struct{}{},
		topics: map[string]*topic{}, tellKick: make(chan struct{}, 1), stop: make(chan struct{}), empty: make(chan struct{}),
	}
	h.running.Go(h.tellLoop)
	h.running.Go(h.tickLoop)
	return h, nil
}

// enter counts one more connection of an address, if there may be one: an address, and a network of them, has its share.
// Each call that returns nil is followed by one exit. The refusals had no effect, and
// say when to try again.
func (h *Hub) enter(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.leaving:
		return errLeaving
	case h.count >= h.cfg.MaxConnections:
		h.numbers.refused.Add(1)
		return errFull
	case !h.addresses.Enter(address, h.cfg.MaxPerAddress):
		h.numbers.refusedAddress.Add(1)
		return errAddressFull
	}
	h.count++
	// Close waits for it; nothing enters after it has begun to.
	h.running.Add(1)
	return nil
}

// exit undoes enter.
func (h *Hub) exit(address netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	h.addresses.Leave(address)
	if h.leaving && h.count == 0 {
		close(h.empty)
	}
	h.running.Done()
}

// serve serves a connection that has entered.
func (h *Hub) serve(c *conn) {
	h.mu.Lock()
	h.conns[c] = struct{}{}
	leaving := h.leaving
	h.mu.Unlock()
	h.numbers.opened.Add(1)
	if is := c.who(); is.User != "" {
		h.join(c, is.User)
		c.send(h.welcome("", is.User, is.Until))
	}
	// Drain may have listed all connections before this one was there.
	if leaving {
		c.end(closing{code: websocket.StatusServiceRestart, reason: "this node is stopping"})
	}
	h.running.Go(c.read)
}

// join notes whose a connection is. The user's oldest one makes way when there
// are too many.
func (h *Hub) join(c *conn, user string) {
	h.mu.Lock()
	if _, here := h.conns[c]; !here {
		// It was dropped meanwhile.
		h.mu.Unlock()
		return
	}
	all := append(h.users[user], c)
	var oldest *conn
	if len(all) > h.cfg.MaxPerUser {
		oldest = all[0]
		all = slices.Delete(all, 0, 1)
	}
	h.users[user] = all
	h.mu.Unlock()
	if oldest != nil {
		oldest.end(closing{code: CloseReplaced, reason: "too many connections of this user: a newer one took its place", now: true})
	}
}

// forget drops a connection that is closed.
func (h *Hub) forget(c *conn) {
	h.mu.Lock()
	// The user is read under the lock: a token may be taken in this moment, and
	// a call that joins after this finds the connection gone.
	user := c.who().User
	delete(h.conns, c)
	if all := slices.DeleteFunc(h.users[user], func(other *conn) bool { return other == c }); len(all) > 0 {
		h.users[user] = all
	} else {
		delete(h.users, user)
	}
	h.mu.Unlock()
	h.exit(c.address)
}

// Tell sends a message, one JSON object with a member type, to all connections
// of a user on this node, and returns how many there are.
// It does not wait: a connection whose queue is full is cut, and the others get the
// message.
func (h *Hub) Tell(user string, message []byte) int {
	h.mu.Lock()
	all := slices.Clone(h.users[user])
	h.mu.Unlock()
	for _, c := range all {
		c.send(message)
	}
	return len(all)
}

// TellPush tells the followers of an announcement who are connected to this node.
func (h *Hub) TellPush(p *events.Push) {
	for _, user := range p.Users {
		if !h.has(user) {
			continue
		}
		h.Tell(user, h.encode(announced{typeAnnouncement, events.AnnouncedView{
			Announced: p.Announced, DeliveryID: events.DeliveryID(p.AnnouncementID, user),
		}}))
	}
}

// has reports whether a user is connected to this node.
func (h *Hub) has(user string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.users[user]) > 0
}

// everybody returns all connections and streams.
func (h *Hub) everybody() ([]*conn, []*stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.conns)), slices.Collect(maps.Keys(h.streams))
}

// shut refuses all new clients from now on.
func (h *Hub) shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leaving && h.count == 0 {
		close(h.empty)
	}
	h.leaving = true
}

// Drain takes no more connections, asks all clients to go elsewhere, gives them
// DrainWithin for it, then closes what is left, each once its claims are
// answered. It returns when all are gone, or with ctx's error.
// It may be called again after ctx's error.
func (h *Hub) Drain(ctx context.Context) error {
	h.shut()
	conns, streams := h.everybody()
	bye := h.encode(short{Type: typeGoAway, Reason: "restart", WithinMS: h.cfg.DrainWithin.Milliseconds()})
	for _, s := range streams {
		s.leave(bye)
	}
	for _, c := range conns {
		c.send(bye)
	}
	// It may still run when Drain has returned: to end a connection twice does no harm.
	cut := time.AfterFunc(h.cfg.DrainWithin, func() {
		conns, _ := h.everybody()
		for _, c := range conns {
			c.end(closing{code: websocket.StatusServiceRestart, reason: "this node is stopping: connect again, to another one"})
		}
	})
	defer cut.Stop()
	select {
	case <-h.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close cuts whatever connection is left and returns when all that belongs to
// the hub has ended. Claims under way are decided first.
func (h *Hub) Close() {
	h.shut()
	conns, streams := h.everybody()
	for _, s := range streams {
		s.leave(nil)
	}
	for _, c := range conns {
		c.drop()
	}
	h.stopped.Do(func() { close(h.stop) })
	h.running.Wait()
}

// tickEvery is the beat of all that is timed: no connection has a timer.
const tickEvery = time.Second

// tickLoop looks after heartbeats, tokens and places in waiting rooms.
func (h *Hub) tickLoop() {
	// The beat is at least twice as fast as the shortest time that it watches over.
	every := min(tickEvery, h.cfg.Heartbeat/2, h.cfg.AuthWithin/2, h.cfg.PlaceEvery/2)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var places time.Time
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		now := h.cfg.Now()
		conns, streams := h.everybody()
		for _, c := range conns {
			c.look(now)
		}
		for _, s := range streams {
			s.look(now)
		}
		h.recheck(conns)
		if h.cfg.Glance != nil && now.Sub(places) >= h.cfg.PlaceEvery {
			places = now
			for _, c := range conns {
				c.tellPlaces(now)
			}
		}
	}
}

// numbers are what the hub counts.
type numbers struct {
	opened, refused, refusedAddress, cutSlow, cutSilent, faults, claims, replays atomic.Int64
}
