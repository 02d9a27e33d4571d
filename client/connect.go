package client

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/gate"
)

// ConnOptions configure a connection. The zero value is of use for claims.
type ConnOptions struct {
	// OnCampaign and OnPlace are told of campaigns that are subscribed to. They are
	// called one after the other and hold up what comes after.
	OnCampaign func(api.SnapshotView)
	OnPlace    func(gate.PlaceView)
	// OnAnnouncement is told of campaigns that are announced to the user, as a
	// follower of a merchant.
	OnAnnouncement func(events.AnnouncedView)
	// OnRefused is told of a subscription that the server refuses for good: a campaign that
	// does not exist, or one more than a connection may follow. It is subscribed to no more.
	OnRefused func(campaign string, why *Error)
	// Token returns a token for each connection that is made, and before the one in
	// use ends; default: the client's. A connection whose token ends without another
	// ends, too, and the next one asks again: a token that the server refuses then is
	// the end.
	Token func(ctx context.Context) (string, error)
	// FirstPause and LongestPause bound the random pause before a connection is
	// tried again; default 200ms and 10s.
	FirstPause, LongestPause time.Duration
	// HTTPClient opens the connections; default: the client's.
	HTTPClient *http.Client
}

// Tap is a claim over a connection.
type Tap struct {
	CampaignID string
	// Quantity is how many units; 0 means 1.
	Quantity int64
	// Key identifies the claim; empty makes one up. The same key again, over any
	// connection, is the same claim.
	Key string
	// Reference is the caller's own, and comes back with the claim.
	Reference string
	// Device, Ticket and Admission are what the campaign's gate asks for.
	Device, Ticket, Admission string
}

// Conn is a WebSocket that connects again by itself, subscribes again, and
// sends again what got no answer. It is safe for concurrent use; Close it.
//
// mu guards the fields below it, and is held for no reading or writing of a connection. Only
// run, and Connect before it, sets ws. Each tap in taps waits for its answer; once fatal is
// set, none of them gets one any more, and no tap is added.
type Conn struct {
	c    *Client
	opts ConnOptions
	life context.Context
	end  context.CancelFunc
	done chan struct{}

	mu sync.Mutex
	// ws is nil while there is no connection.
	ws *websocket.Conn
	// taps wait for their answers; marks are those of the campaigns that
	// are subscribed to, with what was heard of each last.
	taps  map[tapID]*waiting
	marks map[string]string
	// pauses are those before the next attempt of subscriptions that were refused.
	pauses map[string]time.Duration
	// fatal is why it does not connect again.
	fatal error
	// closing is set by Close.
	closing bool
	// most is the longest message in bytes that the server takes; 0 when it has not said.
	most int
	// connects counts the connections that were made.
	connects int
	// token is the one in use, and renewal the timer of the next.
	token   string
	renewal *time.Timer
}

// tapID names a claim of a user: a key is one for each campaign.
type tapID struct{ key, campaign string }

// waiting is a tap without an answer yet, for all callers of the same key.
//
// raw does not change. out and again are written while the tap is in Conn.taps or by who took
// it out, and are read after done is closed; once closes it for whoever ends the tap first.
type waiting struct {
	raw  []byte
	once sync.Once
	done chan struct{}
	out  result
	// again says that it was sent on more than one connection, perhaps.
	again bool
	// callers is how many wait for the answer; Conn.mu guards it.
	callers int
}

type result struct {
	Outcome    string        `json:"outcome"`
	Replayed   bool          `json:"replayed"`
	Claim      api.ClaimView `json:"claim"`
	RetryAfter int64         `json:"retry_after_ms"`
	api.Problem
}

// errConnClosed is the error of taps that were not answered before Close.
var errConnClosed = errors.New("client: the connection is closed")

// The close codes after which connecting again is of no use.
const (
	closeReplaced websocket.StatusCode = 4409
	closeMisfit   websocket.StatusCode = websocket.StatusPolicyViolation
)

// Connect opens a WebSocket as the client's user. It returns once the server
// has taken the token; an *Error when it does not, or when there is no gateway.
func (c *Client) Connect(ctx context.Context, opts ConnOptions) (*Conn, error) {
	if opts.Token == nil {
		opts.Token = func(context.Context) (string, error) { return c.opts.Token, nil }
	}
	if opts.FirstPause <= 0 {
		opts.FirstPause = 200 * time.Millisecond
	}
	if opts.LongestPause <= 0 {
		opts.LongestPause = 10 * time.Second
	}
	if opts.HTTPClient == nil {
		opts.HTTPClient = c.http
	} else {
		opts.HTTPClient = notRedirected(opts.HTTPClient)
	}
	life, end := context.WithCancel(context.Background())
	k := &Conn{
		c: c, opts: opts, life: life, end: end, done: make(chan struct{}),
		taps: map[tapID]*waiting{}, marks: map[string]string{}, pauses: map[string]time.Duration{},
	}
	l, err := k.dial(ctx)
	if err != nil {
		end()
		close(k.done)
		return nil, err
	}
	k.adopt(l)
	go k.run(l)
	return k, nil
}

// maxGatewayMessage bounds what is read of one message.
const maxGatewayMessage = 1 << 20

// link is a connection whose token the server has taken.
type link struct {
	ws    *websocket.Conn
	sound *sound
	// until is when the token ends, zero for no end; most is as in Conn.
	until time.Time
	most  int
}

// dial opens a connection and says who the user is.
func (k *Conn) dial(ctx context.Context) (*link, error) {
	token, err := k.opts.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: a token for the connection: %w", err)
	}
	l := &link{sound: &sound{}}
	h := http.Header{}
	setGiven(h, "Accept-Language", k.c.opts.Language)
	//nolint:bodyclose // the library gives no body that would have to be closed
	ws, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(k.c.base, "http")+"/v1/ws",
		&websocket.DialOptions{HTTPHeader: h, HTTPClient: k.opts.HTTPClient, OnPingReceived: l.sound.ping})
	if err != nil {
		return nil, dialFault(resp, err)
	}
	ws.SetReadLimit(maxGatewayMessage)
	raw, err := authOf(token)
	if err == nil {
		err = ws.Write(ctx, websocket.MessageText, raw)
	}
	if err == nil {
		_, raw, err = ws.Read(ctx)
	}
	var first struct {
		Type            string    `json:"type"`
		ExpiresAt       time.Time `json:"expires_at"`
		HeartbeatMS     int64     `json:"heartbeat_ms"`
		MaxMessageBytes int       `json:"max_message_bytes"`
		api.Problem
	}
	if err == nil {
		err = json.Unmarshal(raw, &first)
	}
	if err == nil && first.Type == "error" {
		err = &Error{Problem: problemIn(&first.Problem)}
	} else if err == nil && first.Type != "welcome" {
		err = fmt.Errorf("client: the first message is of type %q", first.Type)
	}
	if err != nil {
		// The first error says more than what closing may add to it.
		_ = ws.CloseNow()
		var e *Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, fmt.Errorf("client: connecting: %w", err)
	}
	k.mu.Lock()
	k.token = token
	k.mu.Unlock()
	l.ws, l.until, l.most = ws, first.ExpiresAt, first.MaxMessageBytes
	l.sound.listen(ws, time.Duration(first.HeartbeatMS)*time.Millisecond)
	return l, nil
}

// problemIn is the refusal in a message, whose type is the message's own: that of
// the refusal is as it is over HTTP.
func problemIn(p *api.Problem) api.Problem {
	refusal := *p
	refusal.Type = "urn:dibs:problem:" + p.Reason
	return refusal
}

// dialFault is why a connection was not made.
func dialFault(resp *http.Response, err error) error {
	if resp == nil {
		return fmt.Errorf("client: connecting: %w", err)
	}
	// The library has read the beginning of the body.
	raw := make([]byte, 1024)
	n := 0
	if resp.Body != nil {
		n, _ = resp.Body.Read(raw)
	}
	return problemOf(resp, raw[:n])
}

// adopt makes a connection the one in use, subscribes, and sends again what got
// no answer.
func (k *Conn) adopt(l *link) {
	k.renewBefore(l.ws, l.until)
	k.mu.Lock()
	k.ws, k.most = l.ws, l.most
	k.connects++
	var again [][]byte
	for campaign, mark := range k.marks {
		again = append(again, subscription(campaign, mark))
	}
	for _, w := range k.taps {
		w.again = true
		again = append(again, w.raw)
	}
	k.mu.Unlock()
	for _, raw := range again {
		if k.write(l.ws, raw) != nil {
			return
		}
	}
}

// writeWithin bounds a write.
const writeWithin = 10 * time.Second

// write sends a message. A connection that does not take it is given up: the
// next one gets it.
func (k *Conn) write(ws *websocket.Conn, raw []byte) error {
	ctx, cancel := context.WithTimeout(k.life, writeWithin)
	defer cancel()
	err := ws.Write(ctx, websocket.MessageText, raw)
	if err != nil {
		_ = ws.CloseNow()
	}
	return err
}

// send sends a message over the connection in use; false when there is none.
func (k *Conn) send(raw []byte) bool {
	k.mu.Lock()
	ws := k.ws
	k.mu.Unlock()
	return ws != nil && k.write(ws, raw) == nil
}

// run reads until Close, over one connection after the other.
func (k *Conn) run(l *link) {
	defer close(k.done)
	for {
		leaveAt, err := k.read(l)
		l.sound.stop()
		_ = l.ws.CloseNow()
		k.mu.Lock()
		k.ws = nil
		closing := k.closing
		k.mu.Unlock()
		if closing || k.life.Err() != nil {
			k.giveUp(errConnClosed)
			return
		}
		switch code := websocket.CloseStatus(err); code {
		case closeReplaced, closeMisfit, websocket.StatusMessageTooBig, websocket.StatusUnsupportedData, websocket.StatusInvalidFramePayloadData:
			k.giveUp(fmt.Errorf("client: the server has closed the connection: %w", err))
			return
		}
		if l = k.again(leaveAt); l == nil {
			return
		}
		k.adopt(l)
	}
}

// again connects again, after a pause, and not before a time that the server
// has asked for; nil when it is of no use.
func (k *Conn) again(notBefore time.Time) *link {
	pause := k.opts.FirstPause
	rest := max(time.Until(notBefore), 0) + rand.N(pause) + 1
	for {
		if !wait.Sleep(k.life, rest) {
			k.giveUp(errConnClosed)
			return nil
		}
		ctx, cancel := context.WithTimeout(k.life, writeWithin)
		l, err := k.dial(ctx)
		cancel()
		if err == nil {
			return l
		}
		var e *Error
		if errors.As(err, &e) && !e.Retryable && e.Reason != "" {
			k.giveUp(err)
			return nil
		}
		pause = min(2*pause, k.opts.LongestPause)
		rest = pause/2 + rand.N(pause/2+1)
	}
}

// giveUp answers all taps that wait, and those to come.
func (k *Conn) giveUp(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fatal == nil {
		k.fatal = why
	}
	for _, w := range k.taps {
		w.once.Do(func() { close(w.done) })
	}
}

// read takes messages until the connection ends; leaveAt is when to make the
// next one when the server asks to go elsewhere.
func (k *Conn) read(l *link) (leaveAt time.Time, err error) {
	ws := l.ws
	for {
		_, raw, err := ws.Read(k.life)
		if err != nil {
			return leaveAt, err
		}
		l.sound.heard()
		var head struct {
			Type       string `json:"type"`
			ID         string `json:"id"`
			CampaignID string `json:"campaign_id"`
			WithinMS   int64  `json:"within_ms"`
			// ExpiresAt is the end of another token.
			ExpiresAt time.Time `json:"expires_at"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return leaveAt, fmt.Errorf("client: a message: %w", err)
		}
		switch head.Type {
		case "welcome":
			k.renewBefore(ws, head.ExpiresAt)
		case "result":
			k.answered(tapID{head.ID, head.CampaignID}, raw)
		case "error":
			k.refused(head.CampaignID, raw)
		case "campaign":
			k.campaign(raw)
		case "position":
			var p gate.PlaceView
			if k.opts.OnPlace != nil && json.Unmarshal(raw, &p) == nil {
				k.opts.OnPlace(p)
			}
		case "announcement":
			var a events.AnnouncedView
			if k.opts.OnAnnouncement != nil && json.Unmarshal(raw, &a) == nil {
				k.opts.OnAnnouncement(a)
			}
		case "goaway":
			// Claims under way are answered before the server closes; new ones wait
			// for the next connection.
			leave := rand.N(time.Duration(max(head.WithinMS, 1)) * time.Millisecond)
			leaveAt = time.Now().Add(leave)
			k.leave(ws, leave)
		}
	}
}

// leave has the connection given up once nothing is under way, after a pause.
func (k *Conn) leave(ws *websocket.Conn, after time.Duration) {
	time.AfterFunc(after, func() {
		k.mu.Lock()
		idle := len(k.taps) == 0
		k.mu.Unlock()
		if idle {
			_ = ws.Close(websocket.StatusGoingAway, "going elsewhere")
		}
	})
}

func (k *Conn) answered(id tapID, raw []byte) {
	var r result
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	k.mu.Lock()
	w := k.taps[id]
	delete(k.taps, id)
	k.mu.Unlock()
	if w != nil {
		w.out = r
		w.once.Do(func() { close(w.done) })
	}
}

func (k *Conn) campaign(raw []byte) {
	var n api.SnapshotView
	if json.Unmarshal(raw, &n) != nil {
		return
	}
	k.mu.Lock()
	_, wanted := k.marks[n.CampaignID]
	if wanted {
		k.marks[n.CampaignID] = n.Mark
		delete(k.pauses, n.CampaignID)
	}
	k.mu.Unlock()
	if wanted && k.opts.OnCampaign != nil {
		k.opts.OnCampaign(n)
	}
}

// Claim sends a tap and waits for its answer, over as many connections as that
// takes. A refusal is an *Error, whose Effect "unknown" asks for the same tap
// again, and which is not sent again by itself. When ctx ends first the claim
// may have been granted: send it again with the same key to find out.
func (k *Conn) Claim(ctx context.Context, t Tap) (claim api.ClaimView, replayed bool, err error) {
	if t.Key == "" {
		t.Key = crand.Text()
	}
	raw, err := json.Marshal(struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		CampaignID string `json:"campaign_id"`
		Quantity   int64  `json:"quantity,omitempty"`
		Reference  string `json:"reference,omitempty"`
		Device     string `json:"device,omitempty"`
		Ticket     string `json:"ticket,omitempty"`
		Admission  string `json:"admission,omitempty"`
	}{"claim", t.Key, t.CampaignID, t.Quantity, t.Reference, t.Device, t.Ticket, t.Admission})
	if err != nil {
		return claim, false, fmt.Errorf("client: a claim: %w", err)
	}
	k.mu.Lock()
	if k.fatal != nil {
		defer k.mu.Unlock()
		return claim, false, k.fatal
	}
	if err := k.misfit(&t, raw); err != nil {
		k.mu.Unlock()
		return claim, false, err
	}
	id := tapID{t.Key, t.CampaignID}
	w := k.taps[id]
	first := w == nil
	if first {
		w = &waiting{raw: raw, done: make(chan struct{})}
		k.taps[id] = w
	}
	w.callers++
	k.mu.Unlock()
	if first {
		// Without a connection the next one sends it.
		k.send(raw)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		k.mu.Lock()
		// The others wait on, and the key may be another tap's by now.
		if w.callers--; w.callers == 0 && k.taps[id] == w {
			delete(k.taps, id)
		}
		k.mu.Unlock()
		return claim, false, fmt.Errorf("client: the claim %s got no answer: %w", t.Key, ctx.Err())
	}
	// A copy: who joined a tap under way has one, too.
	r := w.out
	switch {
	case r.Outcome == "":
		return claim, false, k.unanswered()
	case r.Outcome != dibs.Granted.String():
		if w.again && (r.Reason == dibs.RateLimited.String() || r.Reason == dibs.Forbidden.String()) {
			// A limit of the server, or one who is blocked by now: nobody has looked what
			// the sending before came to.
			r.Effect = dibs.EffectUnknown
		}
		return claim, false, &Error{Problem: problemIn(&r.Problem), RetryAfter: time.Duration(r.RetryAfter) * time.Millisecond}
	}
	// A tap that joined one under way shares its answer.
	return r.Claim, r.Replayed || !first, nil
}

// misfit refuses a tap for which the server would end the connection, and with it everything
// else that it carries. The caller holds mu.
func (k *Conn) misfit(t *Tap, raw []byte) error {
	p := api.Problem{Status: http.StatusBadRequest, Reason: dibs.InvalidRequest.String()}
	invisible := func(r rune) bool { return r < '!' || r > '~' }
	switch {
	case len(t.Key) > dibs.MaxKeyLen || strings.ContainsFunc(t.Key, invisible):
		p.Detail = fmt.Sprintf("a key over a connection must be at most %d visible ASCII characters", dibs.MaxKeyLen)
		p.Errors = []api.ProblemFault{{Pointer: "/key", Detail: p.Detail}}
	case k.most > 0 && len(raw) > k.most:
		p.Status, p.Reason = http.StatusRequestEntityTooLarge, dibs.TooLarge.String()
		p.Detail = fmt.Sprintf("the claim takes %d bytes as a message, and the server takes %d", len(raw), k.most)
	default:
		return nil
	}
	return &Error{Problem: problemIn(&p)}
}

// unanswered is the error of a tap whose answer cannot come any more: it may have been
// sent before.
func (k *Conn) unanswered() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var e *Error
	if !errors.As(k.fatal, &e) {
		return k.fatal
	}
	unsure := *e
	unsure.Effect = dibs.EffectUnknown
	return &unsure
}

// Connects is how many connections were made so far.
func (k *Conn) Connects() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.connects
}

// Close ends the connection. Taps without an answer return an error.
func (k *Conn) Close() {
	k.mu.Lock()
	ws := k.ws
	k.closing = true
	if k.renewal != nil {
		k.renewal.Stop()
	}
	k.mu.Unlock()
	if ws != nil {
		// The reader, which is at work, reads the server's answer.
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}
	k.end()
	<-k.done
}
