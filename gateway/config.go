package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"

	"github.com/dibs-dev/dibs/gate"
)

// Claims decides claims: *claims.Claims, or what stands before it.
type Claims interface {
	Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error)
}

// Snapshots tells where campaigns stand: *live.Snapshots.
// Watch returns the snapshot of now, and calls tell with later ones until the
// function that it returns is called.
type Snapshots interface {
	Watch(ctx context.Context, id string, tell func(dibs.Snapshot)) (dibs.Snapshot, func(), error)
}

// Limits bound claims.
type Limits interface {
	// Enter returns a refusal when ok is false. It may wait for the claim's turn.
	Enter(ctx context.Context, req *dibs.ClaimRequest) (res dibs.Result, ok bool)
}

// Config configures a Hub. Claims and Snapshots are required; the zero value of any
// other field means the default named beside it.
type Config struct {
	Claims    Claims
	Snapshots Snapshots
	// Limits hold claims against the limits of the server first, as httpapi does, which may
	// take a while; nil for none. *limit.Limiter.
	Limits Limits
	// Revoked tells tokens that count no longer, by user, jti and time of issue: connections
	// that were opened with one are closed. nil: none does.
	Revoked func(user, id string, issued time.Time) bool
	// Tickets remember the tickets of WebSocket addresses until they are used;
	// default: in this process, which is enough for one node.
	Tickets Tickets
	// Glance tells where a user waits for a campaign with a waiting room, from
	// memory; false when that is not known. nil means that there are no such rooms.
	Glance func(c *dibs.Campaign, user string) (gate.PlaceView, bool)
	// Tracer shows where the time of claims goes, each a trace of its own; nil:
	// nobody looks.
	Tracer dibs.Tracer
	// Logger receives failures inside; default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock of tickets and tokens; default time.Now.
	Now func() time.Time

	// MaxConnections is how many WebSockets and streams there may be, default
	// 50,000; MaxPerUser how many WebSockets one user may have, default 8: a
	// further one takes the place of the oldest.
	MaxConnections, MaxPerUser int
	// MaxPerAddress is how many WebSockets and streams one address may have, or one
	// /64 of IPv6, and a /48 eight times as many: default 1,000, since many people may share one; below 0 without
	// bound, for a server that cannot tell addresses apart. This machine's own are
	// not bounded.
	MaxPerAddress int
	// Epoch rises when tokens that were good may be so no more: those of open
	// connections are checked again then. nil: never.
	Epoch func() uint64
	// MaxMessage is the most bytes of a message, default 4,096.
	MaxMessage int
	// MessageRate is how many messages a second one connection may send on
	// average, default 20, and MessageBurst how many at once, default 40.
	MessageRate, MessageBurst int
	// MaxSubscriptions is how many campaigns one connection may follow, default 20.
	MaxSubscriptions int
	// MaxInFlight is how many claims of one connection may be under way, default 8.
	MaxInFlight int
	// MaxQueued is how many answers may wait for a reader that is slow, default
	// 64; beyond, the connection is cut.
	MaxQueued int
	// Heartbeat is after how long without a sign of life a connection is asked for
	// one, default 25s; ReplyWithin how long it may take to answer, default 10s.
	Heartbeat, ReplyWithin time.Duration
	// WriteWithin is how long a write may take before the reader counts as too
	// slow and is cut, default 10s.
	WriteWithin time.Duration
	// AuthWithin is how soon a connection without a ticket must have sent its
	// token, default 10s.
	AuthWithin time.Duration
	// ClaimWithin bounds a claim, default 15s.
	ClaimWithin time.Duration
	// StockEvery is how often a change of nothing but the stock is told, default 1s.
	StockEvery time.Duration
	// PlaceEvery is how often places in waiting rooms are told, default 2s.
	PlaceEvery time.Duration
	// TicketLife is how long a ticket can be used, default 30s.
	TicketLife time.Duration
	// DrainWithin is the time over which clients are asked to spread their going
	// elsewhere, default 3s.
	DrainWithin time.Duration
}

// WithDefaults returns the config with every zero field set.
func (c Config) WithDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Epoch == nil {
		c.Epoch = func() uint64 { return 0 }
	}
	if c.Tickets == nil {
		c.Tickets = NewMemoryTickets(c.Now)
	}
	c.MaxConnections = cmp.Or(c.MaxConnections, 50_000)
	c.MaxPerUser = cmp.Or(c.MaxPerUser, 8)
	c.MaxPerAddress = cmp.Or(c.MaxPerAddress, 1000)
	c.MaxMessage = cmp.Or(c.MaxMessage, 4096)
	c.MessageRate = cmp.Or(c.MessageRate, 20)
	c.MessageBurst = cmp.Or(c.MessageBurst, 40)
	c.MaxSubscriptions = cmp.Or(c.MaxSubscriptions, 20)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 8)
	c.MaxQueued = cmp.Or(c.MaxQueued, 64)
	c.Heartbeat = cmp.Or(c.Heartbeat, 25*time.Second)
	c.ReplyWithin = cmp.Or(c.ReplyWithin, 10*time.Second)
	c.WriteWithin = cmp.Or(c.WriteWithin, 10*time.Second)
	c.AuthWithin = cmp.Or(c.AuthWithin, 10*time.Second)
	c.ClaimWithin = cmp.Or(c.ClaimWithin, 15*time.Second)
	c.StockEvery = cmp.Or(c.StockEvery, time.Second)
	c.PlaceEvery = cmp.Or(c.PlaceEvery, 2*time.Second)
	c.TicketLife = cmp.Or(c.TicketLife, 30*time.Second)
	c.DrainWithin = cmp.Or(c.DrainWithin, 3*time.Second)
	return c
}

// Validate lists every fault of a config with defaults, naming the fields.
func (c Config) Validate() error {
	var fs faults.List
	fs.Must(c.Claims != nil, "/Claims", "is required")
	fs.Must(c.Snapshots != nil, "/Snapshots", "is required")
	fs.Must(c.MaxConnections >= 1, "/MaxConnections", "must be at least 1")
	fs.Must(c.MaxPerUser >= 1, "/MaxPerUser", "must be at least 1")
	fs.Must(c.MessageRate >= 1, "/MessageRate", "must be at least 1")
	fs.Must(c.MessageBurst >= 1, "/MessageBurst", "must be at least 1")
	fs.Must(c.MaxSubscriptions >= 1, "/MaxSubscriptions", "must be at least 1")
	fs.Must(c.MaxInFlight >= 1, "/MaxInFlight", "must be at least 1")
	fs.Must(c.MaxQueued >= 1, "/MaxQueued", "must be at least 1")
	// A message with a token needs some hundred bytes; above 64 KiB many connections
	// could take all memory.
	fs.Must(c.MaxMessage >= 256 && c.MaxMessage <= 1<<16, "/MaxMessage", "must be from 256 to 65536")
	fs.Must(c.Heartbeat > 0, "/Heartbeat", "must be positive")
	fs.Must(c.ReplyWithin > 0, "/ReplyWithin", "must be positive")
	fs.Must(c.WriteWithin > 0, "/WriteWithin", "must be positive")
	fs.Must(c.AuthWithin > 0, "/AuthWithin", "must be positive")
	fs.Must(c.ClaimWithin > 0, "/ClaimWithin", "must be positive")
	fs.Must(c.StockEvery > 0, "/StockEvery", "must be positive")
	fs.Must(c.PlaceEvery > 0, "/PlaceEvery", "must be positive")
	fs.Must(c.TicketLife > 0, "/TicketLife", "must be positive")
	fs.Must(c.DrainWithin > 0, "/DrainWithin", "must be positive")
	return fs.Err()
}
