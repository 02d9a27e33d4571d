package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
)

// gateway is a server whose connections a test serves; a token named "bad" is
// refused, and one named "slow" comes too late. It asks the user "quiet" for a sign of life after each
// 50 ms, and takes 300 bytes in a message of "narrow".
func gateway(t *testing.T, serve func(token string, in <-chan map[string]string, ws *websocket.Conn)) *client.Client {
	t.Helper()
	var served sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		defer served.Done()
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.CloseNow() }()
		in := make(chan map[string]string)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		served.Go(func() {
			defer close(in)
			for {
				_, raw, err := ws.Read(ctx)
				var m map[string]string
				if err != nil || json.Unmarshal(raw, &m) != nil {
					return
				}
				select {
				case in <- m:
				case <-ctx.Done():
					return
				}
			}
		})
		token := (<-in)["token"]
		switch token {
		case "bad":
			say(ws, `{"type":"error","reason":"unauthenticated","retryable":false}`)
			return
		case "slow":
			say(ws, `{"type":"error","reason":"unauthenticated","retryable":true}`)
			return
		}
		welcome := map[string]string{"quiet": `{"type":"welcome","heartbeat_ms":50}`, "narrow": `{"type":"welcome","max_message_bytes":300}`}[token]
		if welcome == "" {
			welcome = `{"type":"welcome"}`
		}
		say(ws, welcome)
		serve(token, in, ws)
	}))
	t.Cleanup(func() { s.Close(); served.Wait() })
	c, err := client.New(s.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// say sends a message; a connection that is gone hears nothing.
func say(ws *websocket.Conn, raw string) {
	_ = ws.Write(context.Background(), websocket.MessageText, []byte(raw))
}

// granted answers a claim.
func granted(m map[string]string) string {
	return fmt.Sprintf(`{"type":"result","id":%q,"campaign_id":%q,"outcome":"granted","claim":{"id":%q}}`, m["id"], m["campaign_id"], "of-"+m["campaign_id"])
}

func connect(t *testing.T, c *client.Client, tokens ...string) *client.Conn {
	t.Helper()
	var calls atomic.Int64
	k, err := c.Connect(t.Context(), client.ConnOptions{FirstPause: time.Millisecond, Token: func(context.Context) (string, error) {
		return tokens[min(int(calls.Add(1)), len(tokens))-1], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// A connection whose token has ended is followed by one with the next token,
// which sends the tap again, also when the first one came too late. A token that
// is refused is the end.
func TestConnTakesTheNextToken(t *testing.T) {
	c := gateway(t, func(token string, in <-chan map[string]string, ws *websocket.Conn) {
		for m := range in {
			if token == "old" {
				go func() {
					for range in { //nolint:revive // the reader has to hear the answer to the close
					}
				}()
				_ = ws.Close(4401, "the token has expired")
				return
			}
			say(ws, granted(m))
		}
	})
	k := connect(t, c, "old", "new")
	claim, _, err := k.Claim(t.Context(), client.Tap{CampaignID: "c", Key: "tap"})
	if err != nil || claim.ID != "of-c" || k.Connects() != 2 {
		t.Errorf("%v %v after %d connections", claim, err, k.Connects())
	}
	k = connect(t, c, "old", "slow", "new")
	if claim, _, err = k.Claim(t.Context(), client.Tap{CampaignID: "c", Key: "tap"}); err != nil || claim.ID != "of-c" {
		t.Errorf("%v %v after a token that came too late", claim, err)
	}
	k = connect(t, c, "old", "bad")
	_, _, err = k.Claim(t.Context(), client.Tap{CampaignID: "c", Key: "tap"})
	var e *client.Error
	if !errors.As(err, &e) || e.Reason != dibs.Unauthenticated.String() || e.Type != "urn:dibs:problem:unauthenticated" {
		t.Fatalf("with a token that is refused: %v", err)
	}
	// It was sent while the old one was good.
	if e.Effect != dibs.EffectUnknown {
		t.Errorf("the effect of a tap whose answer cannot come any more is %q", e.Effect)
	}
	if _, _, err = k.Claim(t.Context(), client.Tap{CampaignID: "c", Key: "late"}); !errors.As(err, &e) || e.Effect != "" {
		t.Errorf("a tap that is not sent any more: %v", err)
	}
}

// A refusal over a connection is what it is over HTTP: its type is the problem's,
// not the message's.
func TestConnRefusal(t *testing.T) {
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		for m := range in {
			say(ws, fmt.Sprintf(`{"type":"result","id":%q,"campaign_id":%q,"outcome":"overloaded","reason":"overloaded","retryable":true,"effect":"none","retry_after_ms":1000}`,
				m["id"], m["campaign_id"]))
		}
	})
	_, _, err := connect(t, c, "good").Claim(t.Context(), client.Tap{CampaignID: "c", Key: "tap"})
	var e *client.Error
	if !errors.As(err, &e) || e.Type != "urn:dibs:problem:overloaded" || !e.Retryable || e.RetryAfter != time.Second || e.Effect != dibs.EffectNone {
		t.Errorf("%+v", err)
	}
}

// A tap that was sent twice and is refused by a limit, or because its device was
// blocked meanwhile, may have been granted by the first sending, which nobody looks
// for; one that was sent once was not.
func TestConnSentTwiceAndLimited(t *testing.T) {
	for _, reason := range []dibs.Reason{dibs.RateLimited, dibs.Forbidden} {
		var broken atomic.Bool
		c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
			for m := range in {
				if m["id"] == "twice" && !broken.Swap(true) {
					_ = ws.CloseNow()
					continue
				}
				say(ws, fmt.Sprintf(`{"type":"result","id":%q,"campaign_id":"c","outcome":%q,"reason":%q}`, m["id"], reason, reason))
			}
		})
		k := connect(t, c, "token")
		for key, want := range map[string]dibs.Effect{"twice": dibs.EffectUnknown, "once": ""} {
			_, _, err := k.Claim(t.Context(), client.Tap{CampaignID: "c", Key: key})
			var e *client.Error
			if !errors.As(err, &e) || e.Reason != reason.String() || e.Effect != want {
				t.Errorf("sent %s: %v, want the effect %q", key, err, want)
			}
		}
		if k.Connects() != 2 {
			t.Errorf("%d connections", k.Connects())
		}
	}
}

// The next token is sent before the one in use ends, over the same connection.
func TestConnRenewsItsToken(t *testing.T) {
	renewed := make(chan map[string]string, 1)
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		say(ws, fmt.Sprintf(`{"type":"welcome","expires_at":%q}`, time.Now().Add(500*time.Millisecond).Format(time.RFC3339Nano)))
		for m := range in {
			if m["type"] == "auth" {
				renewed <- m
				say(ws, `{"type":"welcome"}`)
				continue
			}
			say(ws, granted(m))
		}
	})
	k := connect(t, c, "old", "new")
	select {
	case m := <-renewed:
		if m["token"] != "new" {
			t.Errorf("the token sent is %q", m["token"])
		}
	case <-time.After(time.Minute):
		t.Fatal("no token was sent")
	}
	if claim, _, err := k.Claim(t.Context(), client.Tap{CampaignID: "c", Key: "tap"}); err != nil || claim.ID != "of-c" || k.Connects() != 1 {
		t.Errorf("%v %v after %d connections", claim, err, k.Connects())
	}
}

// The same key for two campaigns at once is two taps.
func TestConnOneKeyForTwoCampaigns(t *testing.T) {
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		var both []map[string]string
		for m := range in {
			if both = append(both, m); len(both) == 2 {
				say(ws, granted(both[1]))
				say(ws, granted(both[0]))
			}
		}
	})
	k := connect(t, c, "token")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var taps sync.WaitGroup
	for _, campaign := range []string{"one", "two"} {
		taps.Go(func() {
			claim, replayed, err := k.Claim(ctx, client.Tap{CampaignID: campaign, Key: "tap"})
			if err != nil || replayed || claim.ID != "of-"+campaign {
				t.Errorf("%s: %v %t %v", campaign, claim, replayed, err)
			}
		})
	}
	taps.Wait()
}

// watched is a context that tells when somebody waits for its end.
type watched struct {
	context.Context
	once   sync.Once
	waited chan struct{}
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waited) })
	return w.Context.Done()
}

// Of two callers with one key, the first goes away: the second gets the answer all the same.
func TestConnFirstCallerLeaves(t *testing.T) {
	arrived, answer := make(chan struct{}, 2), make(chan struct{})
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		for m := range in {
			arrived <- struct{}{}
			<-answer
			say(ws, granted(m))
		}
	})
	k := connect(t, c, "token")
	tap := client.Tap{CampaignID: "c", Key: "tap"}
	short, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := k.Claim(short, tap)
		left <- err
	}()
	<-arrived
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	second := &watched{Context: within, waited: make(chan struct{})}
	got := make(chan error)
	go func() {
		claim, replayed, err := k.Claim(second, tap)
		if err == nil && (claim.ID != "of-c" || !replayed) {
			err = fmt.Errorf("the claim is %+v, a repeat: %t", claim, replayed)
		}
		got <- err
	}()
	<-second.waited
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}
	close(answer)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// A claim that the server would end the connection for is refused before it is sent.
func TestConnRefusesWhatDoesNotFit(t *testing.T) {
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		for m := range in {
			say(ws, granted(m))
		}
	})
	k := connect(t, c, "narrow")
	for what, tap := range map[string]client.Tap{
		"too long": {CampaignID: "a", Reference: strings.Repeat("r", 300)}, "a key with a space": {CampaignID: "a", Key: "a b"},
		"a long key": {CampaignID: "a", Key: strings.Repeat("k", 256)},
	} {
		var e *client.Error
		if _, _, err := k.Claim(t.Context(), tap); !errors.As(err, &e) || e.Detail == "" || e.Retryable {
			t.Errorf("%s: %v", what, err)
		}
	}
	if claim, _, err := k.Claim(t.Context(), client.Tap{CampaignID: "a", Key: "k"}); err != nil || claim.ID != "of-a" || k.Connects() != 1 {
		t.Errorf("after that: %+v, %v, %d connections", claim, err, k.Connects())
	}
}

// A message that the server does not take is sent once: connecting again is of no use.
func TestConnEndsAtWhatIsTooLong(t *testing.T) {
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		<-in
		_ = ws.Close(websocket.StatusMessageTooBig, "")
	})
	k := connect(t, c, "good")
	if _, _, err := k.Claim(t.Context(), client.Tap{CampaignID: "a"}); websocket.CloseStatus(err) != websocket.StatusMessageTooBig || k.Connects() != 1 {
		t.Errorf("%v after %d connections", err, k.Connects())
	}
}

// A subscription that is refused for a while is asked for again on the same connection; one that
// is refused for good is told of.
func TestConnSubscriptionIsRefused(t *testing.T) {
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		asked := map[string]int{}
		for m := range in {
			id := m["campaign_id"]
			switch asked[id]++; {
			case id == "many":
				say(ws, `{"type":"error","campaign_id":"many","reason":"rate_limited","detail":"too many","retryable":true}`)
			case id == "none":
				say(ws, `{"type":"error","campaign_id":"none","reason":"not_found","detail":"no such campaign","retryable":false}`)
			case asked[id] == 1:
				say(ws, `{"type":"error","campaign_id":"busy","reason":"unavailable","retryable":true,"retry_after_ms":1}`)
			default:
				say(ws, `{"type":"campaign","campaign_id":"busy","mark":"1"}`)
			}
		}
	})
	refused, told := make(chan error, 1), make(chan string, 1)
	k, err := c.Connect(t.Context(), client.ConnOptions{
		FirstPause: time.Millisecond, Token: func(context.Context) (string, error) { return "good", nil },
		OnRefused:  func(campaign string, why *client.Error) { refused <- fmt.Errorf("%s: %w", campaign, why) },
		OnCampaign: func(n api.SnapshotView) { told <- n.CampaignID },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	k.Subscribe("none")
	if err := <-refused; !errors.Is(err, dibs.ErrNotFound) || !strings.HasPrefix(err.Error(), "none: ") {
		t.Error(err)
	}
	k.Subscribe("many")
	if err := <-refused; !strings.HasPrefix(err.Error(), "many: rate_limited") {
		t.Error(err)
	}
	k.Subscribe("busy")
	if id := <-told; id != "busy" || k.Connects() != 1 {
		t.Errorf("told of %q after %d connections", id, k.Connects())
	}
}

// A connection of which nothing is heard is given up, and what waits is sent over the next one.
func TestConnNothingIsHeard(t *testing.T) {
	var links atomic.Int64
	c := gateway(t, func(_ string, in <-chan map[string]string, ws *websocket.Conn) {
		first := links.Add(1) == 1
		for m := range in {
			if !first {
				say(ws, granted(m))
			}
		}
	})
	// The second one may be quiet: a slow machine answers late.
	k := connect(t, c, "quiet", "good")
	if claim, _, err := k.Claim(t.Context(), client.Tap{CampaignID: "a"}); err != nil || claim.ID != "of-a" || k.Connects() != 2 {
		t.Errorf("%+v, %v, after %d connections", claim, err, k.Connects())
	}
}
