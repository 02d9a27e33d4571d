package client

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

func subscription(campaign, mark string) []byte {
	m := map[string]string{"type": "subscribe", "campaign_id": campaign}
	if mark != "" {
		m["after"] = mark
	}
	// Strings can always be shown.
	raw, _ := json.Marshal(m)
	return raw
}

// refused acts on a subscription that the server refuses: one that may be taken later is asked
// for again.
func (k *Conn) refused(campaign string, raw []byte) {
	var e struct {
		RetryAfter int64 `json:"retry_after_ms"`
		api.Problem
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	after := time.Duration(e.RetryAfter) * time.Millisecond
	// A limit that does not say when it ends is that of a connection's subscriptions.
	again := e.Retryable && (after > 0 || e.Reason != dibs.RateLimited.String())
	k.mu.Lock()
	mark, wanted := k.marks[campaign]
	pause := min(max(2*k.pauses[campaign], k.opts.FirstPause), k.opts.LongestPause)
	switch {
	case wanted && again:
		k.pauses[campaign] = pause
	case wanted:
		delete(k.marks, campaign)
		delete(k.pauses, campaign)
	}
	ws := k.ws
	k.mu.Unlock()
	switch {
	case !wanted:
	case again:
		time.AfterFunc(max(after, pause)+rand.N(pause), func() {
			k.mu.Lock()
			_, wanted := k.marks[campaign]
			same := k.ws == ws
			k.mu.Unlock()
			// A connection that was made since has subscribed by itself.
			if wanted && same && ws != nil {
				_ = k.write(ws, subscription(campaign, mark))
			}
		})
	case k.opts.OnRefused != nil:
		k.opts.OnRefused(campaign, &Error{Problem: problemIn(&e.Problem), RetryAfter: after})
	}
}

// Subscribe has OnCampaign and OnPlace told of a campaign, over this connection
// and those after it.
func (k *Conn) Subscribe(campaign string) {
	k.mu.Lock()
	_, has := k.marks[campaign]
	if !has {
		k.marks[campaign] = ""
	}
	k.mu.Unlock()
	if !has {
		k.send(subscription(campaign, ""))
	}
}

// Unsubscribe ends Subscribe.
func (k *Conn) Unsubscribe(campaign string) {
	k.mu.Lock()
	_, has := k.marks[campaign]
	delete(k.marks, campaign)
	delete(k.pauses, campaign)
	k.mu.Unlock()
	if has {
		raw, _ := json.Marshal(map[string]string{"type": "unsubscribe", "campaign_id": campaign})
		k.send(raw)
	}
}
