package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// Tickets remember small values under names until they are taken, once, or
// until their time is over. Names are secrets. Implementations are safe for
// concurrent use; those that several nodes share give a value to one of them.
type Tickets interface {
	// Put keeps a value under a name for a time.
	Put(ctx context.Context, name, value string, keep time.Duration) error
	// Take returns the value and forgets it; false when there is none.
	Take(ctx context.Context, name string) (value string, ok bool, err error)
}

// maxTickets bounds the tickets that wait to be used.
const maxTickets = 100_000

// MemoryTickets are Tickets of one process.
type MemoryTickets struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]kept
}

type kept struct {
	value string
	until time.Time
}

// NewMemoryTickets returns none yet. now is the clock, nil for time.Now.
func NewMemoryTickets(now func() time.Time) *MemoryTickets {
	if now == nil {
		now = time.Now
	}
	return &MemoryTickets{now: now, all: map[string]kept{}}
}

var errTickets = &dibs.Error{
	Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second,
	Detail: dibs.Text{EN: "too many tickets are waiting to be used", ZH: "待使用的票据过多"},
}

// Put keeps a value; *dibs.Error of Overloaded when too many are kept.
func (m *MemoryTickets) Put(_ context.Context, name, value string, keep time.Duration) error {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) >= maxTickets {
		for n, k := range m.all {
			if !now.Before(k.until) {
				delete(m.all, n)
			}
		}
		if len(m.all) >= maxTickets {
			return errTickets
		}
	}
	m.all[name] = kept{value: value, until: now.Add(keep)}
	return nil
}

// Take returns a value and forgets it.
func (m *MemoryTickets) Take(_ context.Context, name string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.all[name]
	delete(m.all, name)
	return k.value, ok && m.now().Before(k.until), nil
}

// Ticket makes a ticket for a user whose token is valid until then, zero for
// no end: with it in the address, one WebSocket is opened as that user.
func (h *Hub) Ticket(ctx context.Context, user string, until time.Time) (ticket string, expires time.Time, err error) {
	ticket = rand.Text()
	var end int64
	if !until.IsZero() {
		end = until.Unix()
	}
	if err := h.cfg.Tickets.Put(ctx, ticket, strconv.FormatInt(end, 10)+" "+user, h.cfg.TicketLife); err != nil {
		return "", time.Time{}, fmt.Errorf("gateway: keeping a ticket: %w", err)
	}
	return ticket, h.cfg.Now().Add(h.cfg.TicketLife), nil
}

var (
	errTicket = dibs.Fail(dibs.Unauthenticated, dibs.Text{
		EN: "the ticket is not valid: it was used, or has expired; get another one", ZH: "票据无效：已使用或已过期，请重新获取",
	})
	errTicketValue = errors.New("gateway: a ticket's value is damaged")
)

// maxTicketLen is more than a ticket ever has.
const maxTicketLen = 64

// redeem returns whose a ticket is.
func (h *Hub) redeem(ctx context.Context, ticket string) (user string, until time.Time, err error) {
	if len(ticket) > maxTicketLen {
		return "", until, errTicket
	}
	value, ok, err := h.cfg.Tickets.Take(ctx, ticket)
	if err != nil {
		return "", until, fmt.Errorf("gateway: taking a ticket: %w", err)
	}
	if !ok {
		return "", until, errTicket
	}
	end, user, ok := strings.Cut(value, " ")
	seconds, err := strconv.ParseInt(end, 10, 64)
	if !ok || err != nil || !dibs.ValidID(user) {
		return "", until, errTicketValue
	}
	if seconds > 0 {
		until = time.Unix(seconds, 0)
	}
	return user, until, nil
}
