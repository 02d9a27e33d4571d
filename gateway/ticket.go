package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/tokens"
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
// It bounds the memory of this process, which users could fill otherwise.
const maxTickets = 100_000

// sweepEvery is how often tickets that expired are looked for while there are too many:
// looking at each Put would cost a flood's senders nothing and this process much.
const sweepEvery = time.Second

// MemoryTickets are Tickets of one process. mu guards the other fields.
type MemoryTickets struct {
	now     func() time.Time
	mu      sync.Mutex
	all     map[string]kept
	sweptAt time.Time
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

var errTickets = faults.Busy(time.Second, dibs.Text{EN: "too many tickets are waiting to be used", ZH: "待使用的票据过多"})

// Put keeps a value; *dibs.Error of Overloaded when too many are kept.
func (m *MemoryTickets) Put(_ context.Context, name, value string, keep time.Duration) error {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) >= maxTickets && now.Sub(m.sweptAt) >= sweepEvery {
		m.sweptAt = now
		maps.DeleteFunc(m.all, func(_ string, k kept) bool { return !now.Before(k.until) })
	}
	if len(m.all) >= maxTickets {
		return errTickets
	}
	m.all[name] = kept{value: value, until: now.Add(keep)}
	return nil
}

// Take returns a value and forgets it.
// The entry is deleted under the same lock that reads it: of two takers one gets it.
func (m *MemoryTickets) Take(_ context.Context, name string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.all[name]
	delete(m.all, name)
	return k.value, ok && m.now().Before(k.until), nil
}

// maxTicketsPerUser is how many tickets a user gets in the life of one.
// A client needs one for each connection, and some more when its network is bad.
const maxTicketsPerUser = 20

// asked counts the tickets that users got in the present span of time, so that one user
// cannot use up what all share. mu guards the other fields; got has at most maxTickets
// users, since each has a ticket.
type asked struct {
	span  time.Duration
	mu    sync.Mutex
	since time.Time
	got   map[string]int
}

// count adds a ticket of a user. *dibs.Error of RateLimited beyond maxTicketsPerUser.
func (a *asked) count(user string, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if since := now.Sub(a.since); a.got == nil || since >= a.span || since < 0 {
		a.since, a.got = now, map[string]int{}
	}
	if a.got[user] >= maxTicketsPerUser || len(a.got) >= maxTickets && a.got[user] == 0 {
		return &dibs.Error{Reason: dibs.RateLimited, RetryAfter: a.since.Add(a.span).Sub(now), Detail: manyTickets}
	}
	a.got[user]++
	return nil
}

var manyTickets = dibs.Text{EN: "you ask for tickets too often", ZH: "获取票据过于频繁"}

// Ticket makes a ticket for the user of a token: with it in the address, one WebSocket is
// opened as that user, which ends with the token.
func (h *Hub) Ticket(ctx context.Context, of tokens.Token) (ticket string, expires time.Time, err error) {
	if err := h.asked.count(of.User, h.cfg.Now()); err != nil {
		return "", time.Time{}, err
	}
	ticket = ticketName(h.cfg.Now())
	if err := h.cfg.Tickets.Put(ctx, ticket, ticketValue(of), h.cfg.TicketLife); err != nil {
		return "", time.Time{}, fmt.Errorf("gateway: keeping a ticket: %w", err)
	}
	return ticket, h.cfg.Now().Add(h.cfg.TicketLife), nil
}

// ticketName makes a name that nobody can guess. It ends with the time at which it was made, in milliseconds since 1970.
// Nodes of any version look a ticket up by its whole name, so that nobody can change the time.
func ticketName(made time.Time) string {
	return rand.Text() + "-" + strconv.FormatInt(made.UnixMilli(), 36)
}

// outdated reports whether a ticket may be one of a token from before the epoch, which began at a time; zero for none
// that has changed. A node of an older version makes tickets that do not say when: within the life of one after the
// change, they may be.
func (h *Hub) outdated(ticket string, since time.Time) bool {
	if since.IsZero() {
		return false
	}
	_, at, _ := strings.Cut(ticket, "-")
	if made, err := strconv.ParseInt(at, 36, 64); err == nil {
		return made <= since.UnixMilli()
	}
	return h.cfg.Now().Sub(since) <= h.cfg.TicketLife
}

// ticketValue is what a ticket stands for: end and user, and when the token was issued and
// its jti, so that what is revoked opens nothing. Times are in seconds since 1970, 0 for none.
func ticketValue(of tokens.Token) string {
	seconds := func(t time.Time) string {
		if t.IsZero() {
			return "0"
		}
		return strconv.FormatInt(t.Unix(), 10)
	}
	return strings.Join([]string{seconds(of.Until), of.User, seconds(of.Issued), of.ID}, " ")
}

// readTicketValue reads what ticketValue wrote. A node of an older version writes the first
// two words alone.
func readTicketValue(value string) (is tokens.Token, ok bool) {
	words := strings.SplitN(value, " ", 4)
	if len(words) == 2 {
		words = append(words, "0", "")
	}
	if len(words) != 4 || !dibs.IsID(words[1]) {
		return is, false
	}
	is.User, is.ID = words[1], words[3]
	for at, to := range map[int]*time.Time{0: &is.Until, 2: &is.Issued} {
		seconds, err := strconv.ParseInt(words[at], 10, 64)
		if err != nil {
			return is, false
		}
		if seconds > 0 {
			*to = time.Unix(seconds, 0)
		}
	}
	return is, true
}

var (
	errTicket = dibs.Fail(dibs.Unauthenticated, dibs.Text{
		EN: "the ticket is not valid: it was used, or has expired; get another one", ZH: "票据无效：已使用或已过期，请重新获取",
	})
	errTicketValue = errors.New("gateway: a ticket's value is damaged")
)

// maxTicketLen is more than a ticket ever has.
const maxTicketLen = 64

// redeem returns what the token says that a ticket stands for.
func (h *Hub) redeem(ctx context.Context, ticket string) (is tokens.Token, err error) {
	if len(ticket) > maxTicketLen {
		return is, errTicket
	}
	value, ok, err := h.cfg.Tickets.Take(ctx, ticket)
	if err != nil {
		return is, fmt.Errorf("gateway: taking a ticket: %w", err)
	}
	if !ok {
		return is, errTicket
	}
	if is, ok = readTicketValue(value); !ok {
		return is, errTicketValue
	}
	// A ticket does not say by which token it was got.
	if _, since := h.epoch(); h.outdated(ticket, since) {
		return is, dibs.Fail(dibs.Unauthenticated, ticketVoid)
	}
	if h.cfg.Revoked != nil && h.cfg.Revoked(is.User, is.ID, is.Issued) {
		return is, errTicket
	}
	return is, nil
}
