package dibs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Event is one event as the world hears of it: a CloudEvent, version 1.0, in
// its JSON form.
type Event struct {
	SpecVersion string `json:"specversion" enum:"1.0"`
	// ID is the same however often the event comes: whoever has handled it
	// ignores it.
	ID string `json:"id"`
	// Source is `/dibs`.
	Source string `json:"source"`
	// Type is one of EventTypes.
	Type string `json:"type"`
	// Subject is the id of the claim, or of the campaign; for a part of an
	// announcement, the event's own. Events of one subject come in order.
	Subject         string          `json:"subject"`
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// ClaimEventData is the data of an event of a claim.
type ClaimEventData struct {
	// Claim is the claim as it was after the step.
	Claim ClaimView `json:"claim"`
	// N counts the claim's steps, from 0, the grant: events of a claim that come
	// twice or late are told by it.
	N int `json:"n"`
	// Step is what happened; absent for the grant.
	Step *EventView `json:"step,omitempty"`
}

const eventSource = "/dibs"

// newEvent makes an event of its data.
func newEvent(id, eventType, subject string, at time.Time, data any) (Event, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("dibs: event %s: %w", id, err)
	}
	return Event{
		SpecVersion: "1.0", ID: id, Source: eventSource, Type: eventType, Subject: subject, Time: at.UTC(),
		DataContentType: "application/json", Data: raw,
	}, nil
}

// Events returns what happened after a row of the feed, in order, as the world
// hears of it: about max events, and the row to go on from.
func (s *Service) Events(ctx context.Context, after int64, max int) (events []Event, last int64, err error) {
	news, last, err := s.ledger.News(ctx, after, max)
	if err != nil {
		return nil, after, asUnavailable(err, EffectNone)
	}
	campaigns := make(map[uint32]*Campaign)
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

// TailEvents is Events for whoever looks on: after -1 it returns no events and
// the feed's last row.
func (s *Service) TailEvents(ctx context.Context, after int64, max int) (events []Event, last int64, err error) {
	if after >= 0 {
		return s.Events(ctx, after, max)
	}
	head, _, err := s.ledger.FeedHead(ctx, 0)
	if err != nil {
		return nil, after, asUnavailable(err, EffectNone)
	}
	return nil, head, nil
}

// eventOf is the event that tells news; campaigns are those read before.
func (s *Service) eventOf(ctx context.Context, n *News, campaigns map[uint32]*Campaign) (Event, error) {
	if n.Campaign != nil {
		return newEvent(n.Campaign.ID+"."+strconv.FormatInt(n.Row, 10), EventTypePrefix+"campaign."+string(n.Campaign.Change),
			n.Campaign.ID, n.At, n.Campaign)
	}
	if n.Push != nil {
		return eventOfPush(n.Push, n.At)
	}
	number := n.Claim.Position.Campaign
	c := campaigns[number]
	if c == nil {
		var err error
		if c, err = s.campaignOf(ctx, number); err != nil {
			return Event{}, err
		}
		campaigns[number] = c
	}
	claim := s.dress(c, n.Claim)
	data, eventType := ClaimEventData{Claim: claim.View(), N: n.N}, EventTypePrefix+"claim.granted"
	if n.N > 0 {
		steps := claim.AdminView().Events
		data.Step = &steps[n.N-1]
		eventType = claimEventType(data.Step.Step)
	}
	return newEvent(claim.ID+"."+strconv.Itoa(n.N), eventType, claim.ID, n.At, data)
}

// feedKeep is how long the feed keeps rows that everybody has taken: whoever
// tails it may look back that far. sinkForget is after how long a sink is
// forgotten that no process has in its configuration any more.
const (
	feedKeep   = 24 * time.Hour
	sinkForget = 7 * 24 * time.Hour
)

// trimFeed drops rows of the feed that nobody needs any more.
func (s *Service) trimFeed(ctx context.Context) {
	if _, err := s.ledger.TrimFeed(ctx, s.cfg.Now().Add(-feedKeep), sinkForget); err != nil && ctx.Err() == nil {
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
func (s *Service) Sinks(ctx context.Context) ([]SinkView, error) {
	sinks, err := s.ledger.Sinks(ctx)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	views := make([]SinkView, 0, len(sinks))
	for i := range sinks {
		sink := &sinks[i]
		head, oldest, err := s.ledger.FeedHead(ctx, sink.Taken)
		if err != nil {
			return nil, asUnavailable(err, EffectNone)
		}
		v := SinkView{
			Name: sink.Name, OK: sink.Failures == 0, Behind: head - sink.Taken, Published: sink.Published,
			Failures: sink.Failures, Problem: sink.Problem, Owner: sink.Owner, SeenAt: sink.SeenAt,
		}
		if !oldest.IsZero() {
			v.LagMS = max(s.cfg.Now().Sub(oldest).Milliseconds(), 0)
		}
		views = append(views, v)
	}
	return views, nil
}

// seeSinksEvery is how many rounds of discovery pass between two looks at the
// sinks, for the metrics.
const seeSinksEvery = 10

// seeSinks notes how far the takers of the events are.
func (s *Service) seeSinks(ctx context.Context) {
	// When the ledger does not answer, others say so.
	if sinks, err := s.Sinks(ctx); err == nil {
		s.sinksSeen.Store(&sinks)
	}
	s.seeWebhooks(ctx)
}

// eventsHealth tells of sinks that do not take events, which makes nobody
// unready: claims go on, and the events are kept. False while there is no sink.
func (s *Service) eventsHealth(ctx context.Context) (DependencyView, bool) {
	sinks, err := s.Sinks(ctx)
	if err != nil || len(sinks) == 0 {
		// That the ledger does not answer is said elsewhere.
		return DependencyView{}, false
	}
	d, bad := DependencyView{OK: true}, 0
	for i := range sinks {
		if !sinks[i].OK || sinks[i].LagMS > lateEvents.Milliseconds() {
			bad++
		}
	}
	if bad > 0 {
		d.Warning = fmt.Sprintf("%d of %d sinks do not take events, which are kept for them: dibs events sinks says which", bad, len(sinks))
	}
	return d, true
}

// lateEvents is how long an event may wait before health tells of it.
const lateEvents = time.Minute

// Each of the methods below is the ledger's of the same name, for whoever
// takes the events.

// HoldSink is Feed.HoldSink.
func (s *Service) HoldSink(ctx context.Context, name, owner string, lease time.Duration) (SinkState, error) {
	return s.ledger.HoldSink(ctx, name, owner, lease)
}

// TakeNews is Feed.TakeNews.
func (s *Service) TakeNews(ctx context.Context, t Taking) error { return s.ledger.TakeNews(ctx, t) }

// SinkFailed is Feed.SinkFailed.
func (s *Service) SinkFailed(ctx context.Context, name, owner, problem string) error {
	return s.ledger.SinkFailed(ctx, name, owner, problem)
}

// LetSinkGo is Feed.LetSinkGo.
func (s *Service) LetSinkGo(ctx context.Context, name, owner string) error {
	return s.ledger.LetSinkGo(ctx, name, owner)
}

// encodeEvent is an event as it travels.
func encodeEvent(e *Event) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("dibs: event %s: %w", e.ID, err)
	}
	return b, nil
}

// Encode returns the event as it travels: its JSON form.
func (e *Event) Encode() ([]byte, error) { return encodeEvent(e) }
