package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/gate"
)

// The types of messages that clients send.
const (
	typeAuth        = "auth"
	typeClaim       = "claim"
	typeSubscribe   = "subscribe"
	typeUnsubscribe = "unsubscribe"
	typePing        = "ping"
)

// The types of messages that the server sends.
const (
	typeWelcome      = "welcome"
	typeResult       = "result"
	typeCampaign     = "campaign"
	typeSubscribed   = "subscribed"
	typeUnsubscribed = "unsubscribed"
	typePosition     = "position"
	typeAnnouncement = "announcement"
	typePong         = "pong"
	typeError        = "error"
	typeGoAway       = "goaway"
)

// The close codes beside those of RFC 6455.
const (
	// CloseUnauthenticated: no token in time, a false one, or one that has expired.
	CloseUnauthenticated websocket.StatusCode = 4401
	// CloseReplaced: the user has opened more connections than there may be.
	CloseReplaced websocket.StatusCode = 4409
	// CloseTooFast: the connection went on sending faster than it may.
	CloseTooFast websocket.StatusCode = 4429
)

// authMessage says who the user is.
type authMessage struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Token string `json:"token"`
}

// claimMessage asks for units. ID is the claim's idempotency key.
type claimMessage struct {
	Type       string `json:"type"`
	ID         string `json:"id"`
	CampaignID string `json:"campaign_id"`
	Quantity   *int64 `json:"quantity"`
	Reference  string `json:"reference"`
	Device     string `json:"device"`
	Ticket     string `json:"ticket"`
	Admission  string `json:"admission"`
}

// topicMessage subscribes to a campaign, or ends that.
type topicMessage struct {
	Type       string `json:"type"`
	ID         string `json:"id"`
	CampaignID string `json:"campaign_id"`
	// After is the mark of what the client has: nothing older is told.
	After string `json:"after"`
}

// pingMessage asks for a pong.
type pingMessage struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// fault is a message that ends its connection, and why.
type fault struct {
	code   websocket.StatusCode
	reason dibs.Reason
	detail dibs.Text
	id     string
	// again is set when the same may be taken another time, whatever is usual for
	// the reason.
	again bool
}

func misfit(id, en, zh string) *fault {
	return &fault{code: websocket.StatusPolicyViolation, reason: dibs.InvalidRequest, detail: dibs.Text{EN: en, ZH: zh}, id: id}
}

// parse reads a message; the result is one of the message types, or a fault.
// The head is read loosely first, so that a fault in the rest can be answered with
// the message's id.
func parse(raw []byte) (any, *fault) {
	var head struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if !utf8.Valid(raw) {
		f := misfit("", "the message is not UTF-8", "消息不是 UTF-8 编码")
		f.code = websocket.StatusInvalidFramePayloadData
		return nil, f
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		f := misfit("", "the message must be one JSON object with string members type and id", "消息必须是 JSON 对象，且 type 与 id 为字符串")
		f.code = websocket.StatusInvalidFramePayloadData
		return nil, f
	}
	if head.ID != "" && !web.IsVisible(head.ID, dibs.MaxKeyLen) {
		return nil, misfit("", "id must be 1-255 visible ASCII characters", "id 必须为 1-255 个可见 ASCII 字符")
	}
	var m any
	switch head.Type {
	case typeAuth:
		m = &authMessage{}
	case typeClaim:
		m = &claimMessage{}
	case typeSubscribe, typeUnsubscribe:
		m = &topicMessage{}
	case typePing:
		m = &pingMessage{}
	default:
		return nil, misfit(head.ID, "type must be auth, claim, subscribe, unsubscribe or ping", "type 必须是 auth、claim、subscribe、unsubscribe 或 ping")
	}
	if err := strict(raw, m); err != nil {
		return nil, misfit(head.ID, "a member is unknown or of the wrong kind: "+memberOf(err), "成员未知或类型错误："+memberOf(err))
	}
	return m, nil
}

// strict decodes one JSON value without unknown members.
// A member that is misspelt must not be ignored: a claim without its ticket would be
// refused for another reason.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// maxMemberShown bounds how much of a message is repeated to its sender.
// The name comes from the sender, and is shown only when it is short and visible.
const maxMemberShown = 40

// memberOf names the member that a decoder found fault with.
func memberOf(err error) string {
	var kind *json.UnmarshalTypeError
	name := ""
	if errors.As(err, &kind) {
		name = kind.Field
	} else if _, after, ok := strings.Cut(err.Error(), "unknown field "); ok {
		name = strings.Trim(after, `"`)
	}
	if !web.IsVisible(name, maxMemberShown) {
		return "?"
	}
	return name
}

// welcome says who the connection is and what its limits are.
type welcome struct {
	Type             string     `json:"type"`
	ID               string     `json:"id,omitempty"`
	UserID           string     `json:"user_id"`
	ExpiresAt        *time.Time `json:"expires_at,omitempty"`
	ServerTime       time.Time  `json:"server_time"`
	HeartbeatMS      int64      `json:"heartbeat_ms"`
	MaxMessageBytes  int        `json:"max_message_bytes"`
	MessagesPerS     int        `json:"messages_per_second"`
	MaxSubscriptions int        `json:"max_subscriptions"`
	MaxInFlight      int        `json:"max_claims_in_flight"`
}

// result answers a claim: granted with the claim, or why not.
type result struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"`
	CampaignID string         `json:"campaign_id"`
	Outcome    string         `json:"outcome"`
	Replayed   bool           `json:"replayed,omitempty"`
	Claim      *api.ClaimView `json:"claim,omitempty"`
	refusal
}

// refusal is a problem as part of a message. Its type is the message's own.
type refusal struct {
	*api.Problem
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// failure tells of a message that was not taken.
type failure struct {
	Type       string `json:"type"`
	ID         string `json:"id,omitempty"`
	CampaignID string `json:"campaign_id,omitempty"`
	refusal
}

// campaignMessage tells where a campaign stands, and what has changed.
type campaignMessage struct {
	Type string `json:"type"`
	api.SnapshotView
}

// short is a message of a type with a few members.
type short struct {
	Type       string     `json:"type"`
	ID         string     `json:"id,omitempty"`
	CampaignID string     `json:"campaign_id,omitempty"`
	At         *time.Time `json:"at,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	WithinMS   int64      `json:"within_ms,omitempty"`
}

// placed tells where a user waits.
type placed struct {
	Type string `json:"type"`
	gate.PlaceView
}

// announced tells a follower of a campaign.
type announced struct {
	Type string `json:"type"`
	events.AnnouncedView
}

// encode is a message as it is sent.
func (h *Hub) encode(m any) []byte {
	raw, err := web.EncodeJSON(m)
	if err != nil {
		// No message has a value that JSON cannot show.
		h.cfg.Logger.Error("a message could not be encoded", "err", err)
		return []byte(`{"type":"error","reason":"internal"}`)
	}
	return raw
}
