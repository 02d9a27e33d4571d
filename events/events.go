package events

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/live"
)

// Ledger keeps the feed, and how far each sink has taken it.
type Ledger interface {
	// News returns what happened after a row, in order: whole rows, of about max
	// news together, and the last row that was read; after itself when there is
	// none.
	News(ctx context.Context, after int64, max int) (news []News, last int64, err error)
	// FeedHead returns the number of the last row, and when the oldest row after
	// a place was written; zero when there is none.
	FeedHead(ctx context.Context, after int64) (head int64, oldest time.Time, err error)
	// TrimFeed drops rows written before a time that every sink has taken, and
	// forgets sinks that were not seen for so long.
	TrimFeed(ctx context.Context, before time.Time, forget time.Duration) (dropped int64, err error)
	// Sinks lists the takers of the feed by name.
	Sinks(ctx context.Context) ([]SinkState, error)
	SinkLedger
}

// SinkLedger is what a sink needs of the ledger to take the feed.
type SinkLedger interface {
	// HoldSink makes owner the one that takes the feed for a sink for so long,
	// when nobody else is. A sink that is new begins at the feed's end; WebhookSink
	// is there while there are endpoints, and ErrSinkTaken says that it is not. It
	// returns the sink, whoever holds it. Leases, and how long a sink was not seen,
	// go by one clock, the ledger's: those of processes may be wrong.
	HoldSink(ctx context.Context, name, owner string, lease time.Duration) (SinkState, error)
	// TakeNews notes what the owner has taken. ErrSinkTaken.
	TakeNews(ctx context.Context, t Taking) error
	// SinkFailed notes that the owner could not pass the feed on.
	SinkFailed(ctx context.Context, name, owner, problem string) error
	// LetSinkGo ends the owner's hold.
	LetSinkGo(ctx context.Context, name, owner string) error
}

// Events reads the feed of what happened, for sinks, webhooks and the administrators who
// look on. All methods are safe for concurrent use.
type Events struct {
	registry *live.Registry
	claims   *claims.Claims
	ledger   Ledger
	log      *slog.Logger
	now      func() time.Time
	// sinksSeen are the takers of the events as they were seen last.
	sinksSeen atomic.Pointer[[]SinkView]
}

// New returns the Events of a ledger; claims shows claims as they are.
func New(live *live.Node, claims *claims.Claims, ledger Ledger, log *slog.Logger, now func() time.Time) *Events {
	return &Events{registry: live.Registry, claims: claims, ledger: ledger, log: log, now: now}
}

// After returns what happened after a row of the feed, in order, as it is
// published: about max events, and the row to go on from.
func (s *Events) After(ctx context.Context, after int64, max int) (events []Event, last int64, err error) {
	news, last, err := s.ledger.News(ctx, after, max)
	if err != nil {
		return nil, after, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	campaigns := make(map[uint32]*dibs.Campaign)
	events = make([]Event, 0, len(news))
	for i := range news {
		e, err := s.eventOf(ctx, &news[i], campaigns)
		if err != nil {
			return nil, after, err
		}
		events = append(events, e)
	}
	return events, last, nil
}

// Tail is After for a caller that only looks on: after -1 it returns no events and
// the feed's last row.
func (s *Events) Tail(ctx context.Context, after int64, max int) (events []Event, last int64, err error) {
	if after >= 0 {
		return s.After(ctx, after, max)
	}
	head, _, err := s.ledger.FeedHead(ctx, 0)
	if err != nil {
		return nil, after, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return nil, head, nil
}

// eventOf is the event that tells news; campaigns are those read before.
func (s *Events) eventOf(ctx context.Context, n *News, campaigns map[uint32]*dibs.Campaign) (Event, error) {
	if n.Campaign != nil {
		return NewEvent(n.Campaign.ID+"."+strconv.FormatInt(n.Row, 10), EventTypePrefix+"campaign."+string(n.Campaign.Change),
			n.Campaign.ID, n.At, n.Campaign)
	}
	if n.Push != nil {
		return eventOfPush(n.Push, n.At)
	}
	number := n.Claim.Position.Campaign
	c := campaigns[number]
	if c == nil {
		var err error
		if c, err = s.registry.GetByNumber(ctx, number); err != nil {
			return Event{}, err
		}
		campaigns[number] = c
	}
	claim := s.claims.Fill(c, n.Claim)
	data, eventType := ClaimEventData{Claim: api.ClaimViewOf(claim), N: n.N}, EventTypePrefix+"claim.granted"
	if n.N > 0 {
		steps := api.AdminClaimViewOf(claim).Events
		data.Step = &steps[n.N-1]
		eventType = claimEventType(data.Step.Step)
	}
	return NewEvent(claim.ID+"."+strconv.Itoa(n.N), eventType, claim.ID, n.At, data)
}

// feedKeep is how long the feed keeps rows that everybody has taken: whoever
// tails it may look back that far. sinkForget is after how long a sink is
// forgotten that no process has in its configuration any more.
const (
	feedKeep   = 24 * time.Hour
	sinkForget = 7 * 24 * time.Hour
)

// Trim drops rows of the feed that nobody needs any more.
func (s *Events) Trim(ctx context.Context) {
	if _, err := s.ledger.TrimFeed(ctx, s.now().Add(-feedKeep), sinkForget); err != nil && ctx.Err() == nil {
		s.log.Warn("trimming the feed of events failed", "err", err)
	}
}

// SinkView is how far one taker of the events is.
type SinkView struct {
	// Name is the sink's: the address without user, password and options.
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Behind is how many rows of the feed wait; a row tells up to 512 events.
	Behind int64 `json:"behind"`
	// LagMS is how long the oldest of them has waited.
	LagMS     int64     `json:"lag_ms"`
	Published int64     `json:"published"`
	Failures  int       `json:"failures"`
	Problem   string    `json:"problem,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	SeenAt    time.Time `json:"seen_at"`
}

// Sinks tells how far each taker of the events is.
func (s *Events) Sinks(ctx context.Context) ([]SinkView, error) {
	sinks, err := s.ledger.Sinks(ctx)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	views := make([]SinkView, 0, len(sinks))
	for i := range sinks {
		sink := &sinks[i]
		head, oldest, err := s.ledger.FeedHead(ctx, sink.Taken)
		if err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectNone)
		}
		v := SinkView{
			Name: sink.Name, OK: sink.Failures == 0, Behind: head - sink.Taken, Published: sink.Published,
			Failures: sink.Failures, Problem: sink.Problem, Owner: sink.Owner, SeenAt: sink.SeenAt,
		}
		if !oldest.IsZero() {
			v.LagMS = max(s.now().Sub(oldest).Milliseconds(), 0)
		}
		views = append(views, v)
	}
	return views, nil
}

// See notes how far the takers of the events are, for the metrics.
func (s *Events) See(ctx context.Context) {
	// When the ledger does not answer, others say so.
	if sinks, err := s.Sinks(ctx); err == nil {
		s.sinksSeen.Store(&sinks)
	}
}

// Health tells of sinks that do not take events, which makes nobody
// unready: claims go on, and the events are kept. False while there is no sink.
func (s *Events) Health(ctx context.Context) (api.DependencyView, bool) {
	sinks, err := s.Sinks(ctx)
	if err != nil || len(sinks) == 0 {
		// That the ledger does not answer is said elsewhere.
		return api.DependencyView{}, false
	}
	d, bad := api.DependencyView{OK: true}, 0
	for i := range sinks {
		if !sinks[i].OK || sinks[i].LagMS > lateEvents.Milliseconds() {
			bad++
		}
	}
	if bad > 0 {
		d.Warn(dibs.Text{
			EN: fmt.Sprintf("%d of %d sinks do not take events, which are kept for them: dibs events sinks says which", bad, len(sinks)),
			ZH: fmt.Sprintf("%[2]d 个事件下游中有 %[1]d 个未接收事件，事件会为其保留：dibs events sinks 可查看是哪些", bad, len(sinks)),
		})
	}
	return d, true
}

// lateEvents is how long an event may wait before health tells of it.
const lateEvents = time.Minute

// SinksSeen are the sinks as they were when See looked last.
func (s *Events) SinksSeen() []SinkView {
	if sinks := s.sinksSeen.Load(); sinks != nil {
		return *sinks
	}
	return nil
}
