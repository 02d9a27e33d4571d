package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/coder/websocket"
)

// renewAhead is how long before its end a token is followed by the next one, at
// most; a fifth of its time, when that is less.
const renewAhead = 30 * time.Second

func authOf(token string) ([]byte, error) {
	return json.Marshal(map[string]string{"type": "auth", "token": token})
}

// renewBefore has the next token sent over a connection before the one in use
// ends; zero for one without an end.
func (k *Conn) renewBefore(ws *websocket.Conn, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.renewal != nil {
		k.renewal.Stop()
		k.renewal = nil
	}
	left := time.Until(until)
	if until.IsZero() || left <= 0 || k.closing {
		return
	}
	k.renewal = time.AfterFunc(left-min(renewAhead, left/5), func() { k.renew(ws) })
}

// renew sends the next token, when there is another one. Without one the
// connection ends with the token that it has, and the next one asks again.
func (k *Conn) renew(ws *websocket.Conn) {
	ctx, cancel := context.WithTimeout(k.life, writeWithin)
	defer cancel()
	token, err := k.opts.Token(ctx)
	k.mu.Lock()
	same := token == k.token || k.ws != ws
	if err == nil && !same {
		k.token = token
	}
	k.mu.Unlock()
	if err != nil || same {
		return
	}
	if raw, err := authOf(token); err == nil {
		// One that does not take it is given up by that.
		_ = k.write(ws, raw)
	}
}
