package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var natsKind = &kind{stream: "DIBS", run: runNATS, dead: natsDead, replay: natsReplay}

// The headers of messages. Messages of dibs have the first; dead letters have
// all.
const (
	headerSubject  = "Ce-Subject"
	headerID       = "Ce-Id"
	headerType     = "Ce-Type"
	headerAttempts = "Dibs-Attempts"
	headerWhy      = "Dibs-Why"
)

// natsName is what a group may be called: a consumer in the server has its name.
var natsName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// js is a connection to JetStream, and where a group's events are.
type js struct {
	jetstream.JetStream
	conn *nats.Conn
	at   *place
}

// connectJS opens a connection; close ends it.
func connectJS(at *place, more ...nats.Option) (*js, error) {
	if !natsName.MatchString(at.group) {
		return nil, errors.New("consumer: with NATS, a group's name is of letters, digits, - and _")
	}
	plain := *at.url
	plain.Path, plain.RawQuery = "", ""
	conn, err := nats.Connect(plain.String(), append(more,
		nats.Name("dibs consumer "+at.group), nats.Timeout(5*time.Second), nats.MaxReconnects(-1))...)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", at.tidied(err))
	}
	j, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return &js{JetStream: j, conn: conn, at: at}, nil
}

// side is the name of a stream of the group's own beside that of the events,
// and its subject.
func (j *js) side(what string) (stream, subject string) {
	return j.at.stream + "-" + j.at.group + "-" + what, "dibs-" + what + "." + j.at.stream + "." + j.at.group
}

// The group's own streams: dead letters, and those that were brought back.
const (
	sideDead  = "dead"
	sideAgain = "again"
)

// ensureSide makes a stream of the group's own, as safe as that of the events.
func (j *js) ensureSide(ctx context.Context, what string) (jetstream.Stream, error) {
	name, subject := j.side(what)
	s, err := j.Stream(ctx, name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return s, err
	}
	main, err := j.Stream(ctx, j.at.stream)
	if err != nil {
		return nil, fmt.Errorf("the stream %s: %w", j.at.stream, err)
	}
	cfg := jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage, Replicas: main.CachedInfo().Config.Replicas}
	if what == sideAgain {
		// Messages that were acknowledged are gone.
		cfg.Retention = jetstream.WorkQueuePolicy
	}
	return j.CreateOrUpdateStream(ctx, cfg)
}

// The pauses between two signs of life that are asked for. A third one that does not
// come ends the connection.
const (
	leastPing = time.Second
	mostPing  = 10 * time.Second
)

// minded are the options of a connection that is read from: the library connects again
// by itself, and reading fails of neither a loss nor a server that says nothing.
func minded(cfg *Config, at *place) []nats.Option {
	return []nats.Option{
		// Before what was lost with it comes again.
		nats.PingInterval(min(max(cfg.Timeout/kept, leastPing), mostPing)),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			// Without an error, it was closed here.
			if err != nil {
				cfg.Logger.Warn("events wait: the connection to the broker is lost", "stream", cfg.Stream, "err", at.tidied(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			cfg.Logger.Info("the connection to the broker is back", "stream", cfg.Stream)
		}),
	}
}

// runNATS reads until something fails.
func runNATS(ctx context.Context, cfg *Config, at *place) (worked bool, err error) {
	j, err := connectJS(at, minded(cfg, at)...)
	if err != nil {
		return false, err
	}
	defer j.conn.Close()
	prefix := cmp.Or(strings.Trim(at.url.Path, "/"), "dibs")
	main, err := j.Stream(ctx, at.stream)
	if err != nil {
		return false, fmt.Errorf("the stream %s: %w", at.stream, err)
	}
	fresh, err := ensureConsumer(ctx, cfg, main, prefix+".>", cfg.FromStart)
	if err != nil {
		return false, err
	}
	side, err := j.ensureSide(ctx, sideAgain)
	if err != nil {
		return false, err
	}
	_, subject := j.side(sideAgain)
	again, err := ensureConsumer(ctx, cfg, side, subject, true)
	if err != nil {
		return false, err
	}
	for looked := (time.Time{}); ctx.Err() == nil; worked = true {
		some, err := fresh.Fetch(cfg.Batch, jetstream.FetchMaxWait(readWait))
		if err == nil {
			err = j.work(ctx, cfg, some)
		}
		if err != nil {
			return worked, err
		}
		if time.Since(looked) < redoRest/2 {
			continue
		}
		if some, err = again.FetchNoWait(cfg.Batch); err == nil {
			err = j.work(ctx, cfg, some)
		}
		if err != nil {
			return worked, err
		}
		looked = time.Now()
	}
	return worked, nil
}

// ensureConsumer makes the group in the server.
func ensureConsumer(ctx context.Context, cfg *Config, s jetstream.Stream, subject string, fromStart bool) (jetstream.Consumer, error) {
	want := jetstream.ConsumerConfig{
		Durable: cfg.Group, FilterSubject: subject, AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverNewPolicy,
		// A message that comes again later counts as pending too: it must not stop the rest.
		AckWait: kept * cfg.Timeout, MaxDeliver: -1, MaxAckPending: -1,
	}
	if fromStart {
		want.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	c, err := s.Consumer(ctx, cfg.Group)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		c, err = s.CreateConsumer(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("the consumer %s: %w", cfg.Group, err)
	}
	if is := c.CachedInfo().Config; is.AckWait != want.AckWait {
		is.AckWait = want.AckWait
		return s.UpdateConsumer(ctx, is)
	}
	return c, nil
}

// work handles messages and tells the server what became of them.
func (j *js) work(ctx context.Context, cfg *Config, some jetstream.MessageBatch) error {
	byEntry := make(map[*reading]jetstream.Msg)
	// The server keeps each from when it was sent.
	b := &batch{cfg: cfg, keptAt: time.Now()}
	for m := range some.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if len(b.entries) == 0 {
			b.keptAt = time.Now()
		}
		e := read(strconv.FormatUint(meta.Sequence.Stream, 10), m.Headers().Get(headerSubject), string(m.Data()), int(min(meta.NumDelivered, 1<<30)))
		byEntry[e] = m
		b.entries = append(b.entries, e)
	}
	if err := some.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, jetstream.ErrNoMessages) {
		return err
	}
	if len(b.entries) == 0 {
		return nil
	}
	b.keep = func(ctx context.Context, entries []*reading) error {
		for _, e := range entries {
			if err := byEntry[e].InProgress(); err != nil {
				return err
			}
		}
		return j.conn.FlushWithContext(ctx)
	}
	ours := b.handle(ctx)
	// Messages that were handled are noted even when the consumer stops now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, e := range b.entries {
		m := byEntry[e]
		why, dead := cfg.buried(e)
		var err error
		switch {
		case dead:
			if err = j.bury(ctx, cfg, e, why); err == nil {
				err = m.Ack()
			}
		case !e.decision.later:
			err = m.Ack()
		case !ours:
			// Another consumer may have it.
		case e.untried:
			// The server counts it as a delivery all the same.
			err = m.Nak()
		default:
			err = m.NakWithDelay(e.decision.delay)
		}
		if err != nil {
			return err
		}
	}
	return j.conn.FlushWithContext(ctx)
}

// bury makes a message a dead letter. When the process dies halfway, it comes
// once more.
func (j *js) bury(ctx context.Context, cfg *Config, e *reading, why string) error {
	if _, err := j.ensureSide(ctx, sideDead); err != nil {
		return err
	}
	_, subject := j.side(sideDead)
	v := &e.delivery.Event
	m := nats.NewMsg(subject)
	m.Data = []byte(e.event)
	for name, value := range map[string]string{
		headerID: v.ID, headerType: v.Type, headerSubject: e.subject, headerAttempts: strconv.Itoa(e.delivery.Attempt),
		// A header is one line.
		headerWhy: strings.Join(strings.Fields(why), " "),
	} {
		m.Header.Set(name, value)
	}
	if _, err := j.PublishMsg(ctx, m); err != nil {
		return err
	}
	cfg.Logger.Warn("an event is a dead letter", "event", v.ID, "attempts", e.delivery.Attempt, "why", why)
	return nil
}

// letters calls do with the group's dead letters from a sequence on, until it
// says that it has enough.
func (j *js) letters(ctx context.Context, from uint64, do func(s jetstream.Stream, m *jetstream.RawStreamMsg) (enough bool, err error)) error {
	name, subject := j.side(sideDead)
	s, err := j.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// Nothing has died yet.
		return nil
	}
	for err == nil {
		var m *jetstream.RawStreamMsg
		m, err = s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			break
		}
		enough, doErr := do(s, m)
		if enough || doErr != nil {
			return doErr
		}
		from = m.Sequence + 1
	}
	return fmt.Errorf("consumer: %w", err)
}

// sequence reads the name of an entry.
func sequence(entry string) (uint64, error) {
	n, err := strconv.ParseUint(entry, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("consumer: there is no entry %q: it is a number", entry)
	}
	return n, nil
}

func natsDead(ctx context.Context, at *place, after string, max int) ([]DeadLetter, error) {
	from := uint64(1)
	if after != "" {
		n, err := sequence(after)
		if err != nil {
			return nil, err
		}
		from = n + 1
	}
	j, err := connectJS(at)
	if err != nil {
		return nil, err
	}
	defer j.conn.Close()
	letters := []DeadLetter{}
	if max <= 0 {
		return letters, nil
	}
	err = j.letters(ctx, from, func(_ jetstream.Stream, m *jetstream.RawStreamMsg) (bool, error) {
		attempts, err := strconv.Atoi(m.Header.Get(headerAttempts))
		if err != nil {
			return false, fmt.Errorf("consumer: the dead letter %d: %w", m.Sequence, err)
		}
		letters = append(letters, DeadLetter{
			Entry: strconv.FormatUint(m.Sequence, 10), EventID: m.Header.Get(headerID), Type: m.Header.Get(headerType),
			Subject: m.Header.Get(headerSubject), Attempts: attempts, Why: m.Header.Get(headerWhy), Event: string(m.Data),
		})
		return len(letters) >= max, nil
	})
	return letters, err
}

func natsReplay(ctx context.Context, at *place, entry string) (n int, err error) {
	from := uint64(1)
	if entry != "" {
		if from, err = sequence(entry); err != nil {
			return 0, err
		}
	}
	j, err := connectJS(at)
	if err != nil {
		return 0, err
	}
	defer j.conn.Close()
	if _, err := j.ensureSide(ctx, sideAgain); err != nil {
		return 0, fmt.Errorf("consumer: %w", err)
	}
	_, subject := j.side(sideAgain)
	_, dead := j.side(sideDead)
	end := from
	err = j.letters(ctx, from, func(s jetstream.Stream, m *jetstream.RawStreamMsg) (bool, error) {
		if entry == "" && n == 0 {
			last, err := s.GetLastMsgForSubject(ctx, dead)
			if err != nil {
				return false, fmt.Errorf("consumer: %w", err)
			}
			// What is buried again from now on comes after it, and stays.
			end = last.Sequence
		}
		if m.Sequence > end {
			return true, nil
		}
		back := nats.NewMsg(subject)
		back.Data = m.Data
		back.Header.Set(headerSubject, m.Header.Get(headerSubject))
		if _, err := j.PublishMsg(ctx, back); err != nil {
			return false, fmt.Errorf("consumer: %w", err)
		}
		if err := s.DeleteMsg(ctx, m.Sequence); err != nil {
			return false, fmt.Errorf("consumer: %w", err)
		}
		n++
		return entry != "", nil
	})
	return n, err
}
