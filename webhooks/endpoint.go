package webhooks

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
)

// WebhookEndpoint is an address that events are posted to.
type WebhookEndpoint struct {
	ID          string
	URL         string
	Description string
	// Types are the events that it wants; empty for all.
	Types []string
	// Secret signs what is posted. OldSecret does too until OldUntil, so that a
	// receiver can change over.
	Secret, OldSecret string
	OldUntil          time.Time
	// Disabled endpoints get nothing; what happens meanwhile is not kept for them.
	Disabled       bool
	DisabledReason string
	// FailingSince is when the first attempt failed since the last that did not;
	// zero while they do not fail. A disabled endpoint that is enabled begins anew.
	FailingSince time.Time
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Wants reports whether an endpoint is to get events of a type.
func (e *WebhookEndpoint) Wants(eventType string) bool {
	return !e.Disabled && (len(e.Types) == 0 || slices.Contains(e.Types, eventType))
}

// DeliveryStatus is how a delivery stands.
type DeliveryStatus string

// The statuses of deliveries.
const (
	// DeliveryPending waits for its first or next attempt.
	DeliveryPending DeliveryStatus = "pending"
	// DeliveryDelivered was answered by 2xx.
	DeliveryDelivered DeliveryStatus = "delivered"
	// DeliveryFailed was given up.
	DeliveryFailed DeliveryStatus = "failed"
)

// WebhookDelivery is one event for one endpoint.
type WebhookDelivery struct {
	ID       int64
	Endpoint string
	// EventID is the webhook-id header too: the same at each attempt.
	EventID, Type, Subject string
	// Body is what is posted, always the same bytes.
	Body     []byte
	Status   DeliveryStatus
	Attempts int
	// NextAt is when the next attempt is due.
	NextAt time.Time
	// Answer is the last answer's HTTP status; 0 for none. Problem is what went
	// wrong the last time.
	Answer    int
	Problem   string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Limits of webhooks.
const (
	MaxEndpoints  = 100
	MaxURLLen     = 2048
	MaxWebhookDoc = 1024
	// WebhookSink is the name under which webhooks take the feed.
	WebhookSink = "webhooks"
)

// EndpointSpec describes a new endpoint.
type EndpointSpec struct {
	URL         string   `json:"url" doc:"where events are posted to: https; http only where the server allows private addresses"`
	Description string   `json:"description,omitempty" doc:"up to 1024 bytes"`
	Types       []string `json:"types,omitempty" doc:"the events that it wants, dev.dibs.claim.granted say; absent for all"`
}

// EndpointPatch changes an endpoint; nil fields stay.
type EndpointPatch struct {
	URL         *string   `json:"url,omitempty"`
	Description *string   `json:"description,omitempty"`
	Types       *[]string `json:"types,omitempty" doc:"an empty list for all"`
	Disabled    *bool     `json:"disabled,omitempty" doc:"what happens while it is disabled is not delivered later"`
}

// RotateSpec asks for another secret.
type RotateSpec struct {
	KeepOldFor *dibs.Duration `json:"keep_old_for,omitempty" doc:"how long the old secret signs too, default 24h, at most 168h"`
}

// EndpointView is an endpoint as shown; Secret is there when it was made.
type EndpointView struct {
	ID             string     `json:"id"`
	URL            string     `json:"url"`
	Description    string     `json:"description"`
	Types          []string   `json:"types"`
	Disabled       bool       `json:"disabled"`
	DisabledReason string     `json:"disabled_reason,omitempty"`
	Secret         string     `json:"secret,omitempty"`
	OldSecretUntil *time.Time `json:"old_secret_until,omitempty"`
	FailingSince   *time.Time `json:"failing_since,omitempty" doc:"every attempt has failed since then"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
}

// View returns the endpoint as shown, without its secret.
func (e *WebhookEndpoint) View() EndpointView {
	v := EndpointView{
		ID: e.ID, URL: e.URL, Description: e.Description, Types: e.Types, Disabled: e.Disabled, DisabledReason: e.DisabledReason,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
	if v.Types == nil {
		v.Types = []string{}
	}
	if !e.OldUntil.IsZero() {
		v.OldSecretUntil = &e.OldUntil
	}
	if !e.FailingSince.IsZero() && !e.Disabled {
		v.FailingSince = &e.FailingSince
	}
	return v
}

// Remembered is the answer without the secret: what is kept of it, to be the
// answer to a repeat, has none.
func (v EndpointView) Remembered() any {
	v.Secret = ""
	return v
}

// DeliveryView is a delivery as shown.
type DeliveryView struct {
	EventID  string         `json:"event_id"`
	Type     string         `json:"type"`
	Subject  string         `json:"subject"`
	Status   DeliveryStatus `json:"status" enum:"pending,delivered,failed"`
	Attempts int            `json:"attempts"`
	// NextAt is there while the delivery is pending.
	NextAt    *time.Time      `json:"next_at,omitempty"`
	Answer    int             `json:"answer,omitempty"`
	Problem   string          `json:"problem,omitempty"`
	Event     json.RawMessage `json:"event"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// View returns the delivery as shown.
func (d *WebhookDelivery) View() DeliveryView {
	v := DeliveryView{
		EventID: d.EventID, Type: d.Type, Subject: d.Subject, Status: d.Status, Attempts: d.Attempts, Answer: d.Answer,
		Problem: d.Problem, Event: d.Body, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	if d.Status == DeliveryPending {
		v.NextAt = &d.NextAt
	}
	return v
}

// SecretPrefix begins a webhook's secret; what follows is base 64.
const SecretPrefix = "whsec_"

// newWebhookSecret makes a secret of 32 random bytes.
func newWebhookSecret() string {
	var b [32]byte
	// It cannot fail: it ends the program first.
	_, _ = rand.Read(b[:])
	return SecretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// faults lists what is wrong with an endpoint.
func (e *WebhookEndpoint) faults(private bool) []dibs.Fault {
	fs := append(dibs.TextFault("/url", e.URL, true, MaxURLLen), dibs.TextFault("/description", e.Description, false, MaxWebhookDoc)...)
	if problem := webhookURLProblem(e.URL, private); len(fs) == 0 && problem.EN != "" {
		fs = append(fs, dibs.Fault{Field: "/url", Problem: problem})
	}
	for _, t := range e.Types {
		if !slices.Contains(events.EventTypes(), t) {
			return append(fs, dibs.Fault{Field: "/types", Problem: dibs.Textf("%q is no type of event such as %s", "%q 不是事件类型（例如 %s）", t, events.EventTypes()[0])})
		}
	}
	return fs
}

func webhookURLProblem(address string, private bool) dibs.Text {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return dibs.Text{EN: "must be an address such as https://shop.example/hooks", ZH: "必须是形如 https://shop.example/hooks 的地址"}
	case u.User != nil || u.Fragment != "":
		return dibs.Text{EN: "must have no user, password or fragment", ZH: "不能包含用户、密码或片段"}
	case private:
		return dibs.Text{}
	case u.Scheme != "https":
		return dibs.Text{EN: "must be https", ZH: "必须使用 https"}
	}
	ip, err := netip.ParseAddr(u.Hostname())
	// A dot at the end is part of no name: localhost. is this machine, too.
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	// A number without dots is an address to some resolvers.
	odd := err != nil && net.ParseIP(u.Hostname()) == nil && strings.Trim(u.Hostname(), "0123456789xXabcdefABCDEF.") == "" &&
		strings.ContainsAny(u.Hostname()[:1], "0123456789")
	if local || odd || err == nil && !PublicAddr(ip) {
		return dibs.Text{EN: "must not be in a private network", ZH: "不能指向内网地址"}
	}
	return dibs.Text{}
}

// inner are the networks that are not the public internet, beside those that netip
// knows (loopback, link-local, multicast, private): the blocks of IANA's registries of
// special-purpose addresses that are not globally reachable, blocks in which an IPv4
// address stands inside of an IPv6 one, and addresses of clouds that only their own
// machines reach. A new line names its source.
var inner = func() (list []netip.Prefix) {
	for _, p := range []struct{ network, source string }{
		{"0.0.0.0/8", "RFC 791: this network"},
		{"100.64.0.0/10", "RFC 6598: shared by carriers, and metadata of Alibaba Cloud"},
		{"168.63.129.16/32", "Azure: its platform's own address, on every virtual machine"},
		{"192.0.0.0/24", "RFC 6890: protocol assignments, and metadata of Oracle Cloud"},
		{"192.0.2.0/24", "RFC 5737: documentation"},
		{"192.88.99.0/24", "RFC 7526: relays of 6to4, deprecated"},
		{"198.18.0.0/15", "RFC 2544: benchmarks"},
		{"198.51.100.0/24", "RFC 5737: documentation"},
		{"203.0.113.0/24", "RFC 5737: documentation"},
		{"240.0.0.0/4", "RFC 1112: reserved, with the broadcast address"},
		{"::/96", "RFC 4291: IPv4-compatible, deprecated"},
		{"::ffff:0:0:0/96", "RFC 2765: IPv4-translated"},
		{"64:ff9b::/96", "RFC 6052: translation of IPv4"},
		{"64:ff9b:1::/48", "RFC 8215: local translation of IPv4"},
		{"100::/64", "RFC 6666: discard"},
		{"100:0:0:1::/64", "RFC 9780: dummy prefix"},
		{"2001::/23", "RFC 2928: protocol assignments, Teredo and ORCHID among them"},
		{"2001:db8::/32", "RFC 3849: documentation"},
		{"2002::/16", "RFC 3056: 6to4, IPv4 inside"},
		{"3fff::/20", "RFC 9637: documentation"},
		{"5f00::/16", "RFC 9602: segment routing"},
		{"fec0::/10", "RFC 3879: site-local, deprecated"},
	} {
		list = append(list, netip.MustParsePrefix(p.network))
	}
	return list
}()

// PublicAddr reports whether an address is one of the public internet: not
// loopback, private, link-local, multicast, or reserved for something else.
func PublicAddr(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(inner, func(p netip.Prefix) bool { return p.Contains(ip) })
}
