package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/tokens"
)

// overRate counts a message and returns how long to wait when there were too
// many: a bucket that fills at the rate, kept as the time at which it is full.
// Only the reader calls it. A message that comes too early takes nothing from the
// bucket. strikes rise with each such message and fall with each one in time.
func (c *conn) overRate() time.Duration {
	now := time.Now().UnixMicro()
	each := int64(time.Second/time.Microsecond) / int64(c.hub.cfg.MessageRate)
	full := max(c.fullAt, now) + each
	if over := full - now - each*int64(c.hub.cfg.MessageBurst); over > 0 {
		c.strikes++
		return time.Duration(over) * time.Microsecond
	}
	c.fullAt = full
	if c.strikes > 0 {
		c.strikes--
	}
	return 0
}

// tooFast answers a message above the rate; who goes on is cut.
func (c *conn) tooFast(m any, wait time.Duration) *fault {
	why := dibs.Textf("at most %d messages a second", "每秒最多 %d 条消息", c.hub.cfg.MessageRate)
	// A client that waits as it is told never gets here.
	if c.strikes > c.hub.cfg.MessageBurst {
		return &fault{code: CloseTooFast, reason: dibs.RateLimited, detail: why}
	}
	e := &dibs.Error{Reason: dibs.RateLimited, RetryAfter: wait, Detail: why}
	if claim, ok := m.(*claimMessage); ok && claim.ID != "" {
		// The first message of this id will be answered: a refusal beside that answer
		// would contradict it.
		if !c.isUnderWay(claim) {
			c.answer(claim, e)
		}
		return nil
	}
	id, campaign := namesIn(m)
	c.refuse(id, campaign, e)
	return nil
}

// namesIn are the id of a message, and the campaign that it subscribes to.
func namesIn(m any) (id, campaign string) {
	switch m := m.(type) {
	case *authMessage:
		return m.ID, ""
	case *claimMessage:
		return m.ID, ""
	case *topicMessage:
		return m.ID, m.CampaignID
	case *pingMessage:
		return m.ID, ""
	}
	return "", ""
}

var needAuth = dibs.Text{EN: "send a message of type auth with a token first", ZH: "请先发送携带令牌的 auth 消息"}

// act does what a message asks for.
// A nil fault says that the connection goes on, also when the message was refused.
// Only the reader calls it.
func (c *conn) act(m any) *fault {
	is := c.who()
	switch m := m.(type) {
	case *authMessage:
		return c.auth(m, is.User)
	case *pingMessage:
		now := c.hub.cfg.Now().UTC()
		c.send(c.hub.encode(short{Type: typePong, ID: m.ID, At: &now}))
		return nil
	}
	id, _ := namesIn(m)
	if is.User == "" {
		return &fault{code: CloseUnauthenticated, reason: dibs.Unauthenticated, detail: needAuth, id: id}
	}
	// The next beat would find it: until then nothing may be done with it.
	if why := c.void(&is, c.hub.cfg.Now()); why != (dibs.Text{}) {
		return &fault{code: CloseUnauthenticated, reason: dibs.Unauthenticated, detail: why, id: id}
	}
	switch m := m.(type) {
	case *claimMessage:
		return c.claim(m, is)
	case *topicMessage:
		if m.Type == typeUnsubscribe {
			c.unsubscribe(m)
			return nil
		}
		return c.subscribe(m)
	}
	return nil
}

// auth takes a token: the first one says whose the connection is, a later one
// of the same user keeps it open for longer.
// A token of another user ends the connection: answers to claims of the first user
// may still be on their way.
func (c *conn) auth(m *authMessage, before string) *fault {
	ctx, cancel := context.WithTimeout(context.Background(), c.hub.cfg.AuthWithin)
	defer cancel()
	// A change while the token is checked counts.
	epoch := c.hub.cfg.Epoch()
	is, err := c.check(ctx, m.Token)
	if err != nil {
		p := web.ProblemOf(err)
		return &fault{code: CloseUnauthenticated, reason: p.Reason, id: m.ID, detail: p.Text()}
	}
	if before != "" && is.User != before {
		return &fault{code: CloseUnauthenticated, reason: dibs.Forbidden, id: m.ID, detail: dibs.Text{
			EN: "this connection is another user's: open one of your own", ZH: "该连接属于其他用户，请另建连接",
		}}
	}
	c.setToken(m.Token, is, epoch)
	if before == "" {
		c.hub.join(c, is.User)
	}
	c.send(c.hub.welcome(m.ID, is.User, is.Until))
	return nil
}

// welcome is the answer to a good token.
func (h *Hub) welcome(id, user string, until time.Time) []byte {
	w := welcome{
		Type: typeWelcome, ID: id, UserID: user, ServerTime: h.cfg.Now().UTC(), HeartbeatMS: h.cfg.Heartbeat.Milliseconds(),
		MaxMessageBytes: h.cfg.MaxMessage, MessagesPerS: h.cfg.MessageRate,
		MaxSubscriptions: h.cfg.MaxSubscriptions, MaxInFlight: h.cfg.MaxInFlight,
	}
	if !until.IsZero() {
		until = until.UTC()
		w.ExpiresAt = &until
	}
	return h.encode(w)
}

func (m *claimMessage) tap() tap { return tap{id: m.ID, campaign: m.CampaignID} }

// isUnderWay reports whether a claim is one that will be answered.
func (c *conn) isUnderWay(m *claimMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.inFlight, m.tap())
}

// claim has a claim decided, beside the reading. The same id for the same
// campaign again, while the first is under way, is answered by its answer.
func (c *conn) claim(m *claimMessage, as tokens.Token) *fault {
	if m.ID == "" {
		return misfit("", "a claim needs an id, which makes a repeat the same claim", "claim 消息必须有 id，重发时据此识别为同一请求")
	}
	c.mu.Lock()
	switch {
	case slices.Contains(c.inFlight, m.tap()):
		c.mu.Unlock()
		return nil
	// The same claim may have been granted over another connection, so the effect is
	// unknown.
	case c.ending != nil || c.closed:
		c.mu.Unlock()
		c.answer(m, errLeavingTap)
		return nil
	case len(c.inFlight) >= c.hub.cfg.MaxInFlight:
		c.mu.Unlock()
		c.answer(m, &dibs.Error{
			Reason: dibs.RateLimited, RetryAfter: 100 * time.Millisecond,
			Detail: dibs.Textf("at most %d claims of a connection may be under way", "每个连接最多 %d 个并发请求", c.hub.cfg.MaxInFlight),
		})
		return nil
	}
	c.inFlight = append(c.inFlight, m.tap())
	// The connection, which is counted, has not been let go of yet.
	c.hub.running.Add(1)
	c.mu.Unlock()
	go func() {
		defer c.hub.running.Done()
		c.decide(m, as)
	}()
	return nil
}

// decide decides one claim, whatever becomes of the connection meanwhile.
// The context is not the connection's: a claim that was begun is decided, and a
// repeat finds what came of it.
func (c *conn) decide(m *claimMessage, as tokens.Token) {
	var answer []byte
	defer func() {
		if p := recover(); p != nil {
			c.hub.cfg.Logger.Error("panic", "request_id", c.requestID, "panic", p, "stack", string(debug.Stack()))
			answer = c.answerOf(m, fmt.Errorf("panic: %v", p))
		}
		c.finish(m, answer)
	}()
	c.hub.numbers.claims.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), c.hub.cfg.ClaimWithin)
	defer cancel()
	req := dibs.ClaimRequest{
		CampaignID: m.CampaignID, UserID: as.User, Key: m.ID, Reference: m.Reference,
		Address: c.address, Device: m.Device, Ticket: m.Ticket, Admission: m.Admission, Until: as.Until, TokenID: as.ID, Issued: as.Issued,
	}
	if m.Quantity != nil {
		if req.Quantity = *m.Quantity; req.Quantity == 0 {
			// Absent means 1, but 0 is somebody's mistake.
			req.Quantity = -1
		}
	}
	res, err := c.traced(ctx, m, req, &as)
	switch {
	case err != nil:
		answer = c.answerOf(m, err)
	case res.Outcome != dibs.Granted:
		answer = c.hub.encode(c.resultOf(m, web.RefusalOf(&res)))
	default:
		if res.Replayed {
			c.hub.numbers.replays.Add(1)
		}
		view := api.ClaimViewOf(res.Claim)
		answer = c.hub.encode(result{
			Type: typeResult, ID: m.ID, CampaignID: m.CampaignID, Outcome: dibs.Granted.String(), Replayed: res.Replayed, Claim: &view,
		})
	}
}

var errPanic = errors.New("panic")

// traced asks the limits and the service, in a span where those are wanted, which ends
// whatever happens.
func (c *conn) traced(ctx context.Context, m *claimMessage, req dibs.ClaimRequest, as *tokens.Token) (res dibs.Result, err error) {
	in, end := c.trace(ctx, m)
	// A panic leaves this value for the span.
	err = errPanic
	defer func() { end(err) }()
	if c.hub.cfg.Limits != nil {
		if res, ok := c.hub.cfg.Limits.Enter(in, &req); !ok {
			return res, nil
		}
		// It may have waited for its turn.
		if why := c.void(as, c.hub.cfg.Now()); why != (dibs.Text{}) {
			return dibs.Result{}, dibs.Fail(dibs.Unauthenticated, why)
		}
	}
	return c.hub.cfg.Claims.Claim(in, req)
}

// trace begins the span of a claim, where those are wanted.
func (c *conn) trace(ctx context.Context, m *claimMessage) (in context.Context, end func(error)) {
	if c.hub.cfg.Tracer == nil {
		return ctx, func(error) {}
	}
	return c.hub.cfg.Tracer.Begin(ctx, "claim", slog.String("network.protocol.name", "websocket"),
		slog.String("dibs.request_id", c.requestID), slog.String("dibs.campaign", m.CampaignID))
}

// resultOf is the result of a claim that was not granted.
func (c *conn) resultOf(m *claimMessage, p web.Problem) result {
	r := c.refusalOf(&p)
	return result{Type: typeResult, ID: m.ID, CampaignID: m.CampaignID, Outcome: r.Reason, refusal: r}
}

// answerOf is the answer of a claim that was not decided.
func (c *conn) answerOf(m *claimMessage, err error) []byte {
	p := web.ProblemOf(err)
	if p.StatusCode() >= http.StatusInternalServerError && p.Reason != dibs.Overloaded {
		c.hub.cfg.Logger.Error("a claim failed", "request_id", c.requestID, "reason", p.Reason.String(), "err", err)
	}
	return c.hub.encode(c.resultOf(m, p))
}

func (c *conn) answer(m *claimMessage, err error) { c.send(c.answerOf(m, err)) }

// subscribe follows a campaign.
// The topic is followed without a lock, since that may read the ledger. After that the
// connection is looked at again: one that was dropped meanwhile lets the topic go.
func (c *conn) subscribe(m *topicMessage) *fault {
	after, ok := dibs.Mark{Version: -1}, true
	if m.After != "" {
		after, ok = dibs.ParseMark(m.After)
	}
	if !ok {
		return misfit(m.ID, "after must be the mark of a campaign message", "after 必须是 campaign 消息中的 mark")
	}
	refuse := func(err error) *fault {
		c.refuse(m.ID, m.CampaignID, err)
		return nil
	}
	if !dibs.IsID(m.CampaignID) {
		return refuse(dibs.NoSuchCampaign)
	}
	c.mu.Lock()
	n := len(c.subs)
	has := slices.ContainsFunc(c.subs, func(s *sub) bool { return s.topic.id == m.CampaignID })
	c.mu.Unlock()
	ack := c.hub.encode(short{Type: typeSubscribed, ID: m.ID, CampaignID: m.CampaignID})
	switch {
	case has:
		c.send(ack)
		return nil
	case n >= c.hub.cfg.MaxSubscriptions:
		return refuse(&dibs.Error{Reason: dibs.RateLimited, Detail: dibs.Textf(
			"a connection follows at most %d campaigns", "每个连接最多关注 %d 个活动", c.hub.cfg.MaxSubscriptions)})
	}
	t, err := c.hub.follow(m.CampaignID)
	if err != nil {
		return refuse(err)
	}
	c.send(ack)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.hub.leave(t)
		return nil
	}
	// A goroutine that drops the connection from now on finds it there, and lets it go.
	c.subs = append(c.subs, &sub{topic: t, after: after})
	c.mu.Unlock()
	t.add(c)
	c.mu.Lock()
	closed := c.closed
	c.startLocked()
	c.mu.Unlock()
	if closed {
		t.remove(c)
	}
	return nil
}

// It is answered also when there was no subscription, so that a repeat is safe.
func (c *conn) unsubscribe(m *topicMessage) {
	var t *topic
	c.mu.Lock()
	if i := slices.IndexFunc(c.subs, func(s *sub) bool { return s.topic.id == m.CampaignID }); i >= 0 {
		t = c.subs[i].topic
		c.subs = slices.Delete(c.subs, i, i+1)
	}
	c.mu.Unlock()
	if t != nil {
		t.remove(c)
		c.hub.leave(t)
	}
	c.send(c.hub.encode(short{Type: typeUnsubscribed, ID: m.ID, CampaignID: m.CampaignID}))
}

var (
	tokenEnded   = dibs.Text{EN: "the token has expired: send a new one in time, in a message of type auth", ZH: "令牌已过期，请及时发送新令牌"}
	tokenRevoked = dibs.Text{EN: "the token was revoked: connect again with another one", ZH: "令牌已被吊销，请更换令牌后重新连接"}
)

// look ends a connection whose time is over, and asks a silent one for a sign
// of life.
func (c *conn) look(now time.Time) {
	is := c.who()
	why := c.void(&is, now)
	switch silent := now.Sub(time.UnixMilli(c.seen.Load())); {
	case is.User == "" && now.Sub(time.UnixMilli(c.bornAt)) > c.hub.cfg.AuthWithin:
		// Nobody has refused a token: in a crowd that connects at once, or on a slow
		// line, it may be on its way.
		c.expire(true, dibs.Text{EN: "no token came in time", ZH: "未在规定时间内收到令牌"})
	case why != (dibs.Text{}):
		c.expire(false, why)
	case silent > c.hub.cfg.Heartbeat && c.asked.CompareAndSwap(false, true):
		c.hub.running.Go(c.ask)
	}
}

// expire ends a connection that has no token that is good; again says that the
// same one may be sent once more.
func (c *conn) expire(again bool, why dibs.Text) {
	c.mu.Lock()
	ending := c.ending != nil || c.closed
	c.mu.Unlock()
	if !ending {
		c.fail(&fault{code: CloseUnauthenticated, reason: dibs.Unauthenticated, detail: why, again: again})
	}
}

// ask sends a ping and waits for its pong.
func (c *conn) ask() {
	defer c.asked.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), c.hub.cfg.ReplyWithin)
	defer cancel()
	if err := c.ws.Ping(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.hub.numbers.cutSilent.Add(1)
		}
		c.drop()
	}
}

// tellPlaces tells where the user waits, when that has changed, or when an
// admission is to be renewed. Only the hub's tick does this.
func (c *conn) tellPlaces(now time.Time) {
	user := c.who().User
	c.mu.Lock()
	subs := slices.Clone(c.subs)
	c.mu.Unlock()
	for _, s := range subs {
		campaign := s.topic.campaign()
		if campaign.Gate == nil || campaign.Gate.Room == nil {
			continue
		}
		p, ok := c.hub.cfg.Glance(campaign, user)
		if !ok || samePlace(&p, &s.place) && (p.Admission == "" || now.Sub(s.placeAt) < time.Duration(p.AskAfter)) {
			continue
		}
		p.CampaignID = campaign.ID
		s.place, s.placeAt = p, now
		c.send(c.hub.encode(placed{Type: typePosition, PlaceView: p}))
	}
}

// samePlace reports whether two views say the same to who waits.
func samePlace(a, b *gate.PlaceView) bool {
	return a.State == b.State && a.Place == b.Place && a.Position == b.Position
}
