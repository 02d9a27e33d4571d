package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs/events"
)

// contentType is what a message says of itself.
const contentType = "application/cloudevents+json"

// Message is an event on its way.
type Message struct {
	// ID, Type and Subject are the event's; Subject is the key by which brokers
	// keep order.
	ID, Type, Subject string
	// Body is the event.
	Body []byte
}

// topic is the type without what all types begin with, `claim.granted`.
func (m *Message) topic() string { return strings.TrimPrefix(m.Type, events.EventTypePrefix) }

// Publisher hands messages to a broker.
//
// Every error may pass, so the caller tries again; an address that can never work is
// found by Check or Open.
type Publisher interface {
	// Publish returns nil when the broker has acknowledged every message. After
	// an error, some of them may have arrived; they are published again. Messages
	// of one subject arrive in their order. One goroutine calls it.
	Publish(ctx context.Context, messages []Message) error
	// Close gives up the connection.
	Close() error
}

// form is how the addresses of one kind of sink look.
type form struct {
	example string
	// options are those that an address may have.
	options []string
	check   func(u *url.URL) error
	open    func(at place) (Publisher, error)
}

// place is where a sink is.
type place struct {
	*url.URL
	// login returns the user and the password of a new connection; nil for those of the
	// URL.
	login func() *url.Userinfo
}

// now returns the URL with the user and the password of a connection that is opened now.
func (p place) now() *url.URL {
	u := *p.URL
	if login := p.login(); login != nil {
		u.User = login
	}
	return &u
}

// forms are the kinds of sinks by the scheme of their addresses.
var forms = map[string]*form{
	"redis": redisForm, "rediss": redisForm,
	"nats": natsForm, "tls": natsForm,
	"amqp": amqpForm, "amqps": amqpForm,
	"kafka": kafkaForm,
}

// Schemes lists the schemes of addresses that Check knows.
func Schemes() []string {
	return slices.Sorted(maps.Keys(forms))
}

// Check says what is wrong with a sink's address, as far as it can be seen
// without going there. It repeats no password.
func Check(address string) error {
	_, _, err := parse(address)
	return err
}

func parse(address string) (*url.URL, *form, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, nil, errors.New("the address cannot be read (write special characters in a password as %40)")
	}
	f := forms[u.Scheme]
	if f == nil {
		return nil, nil, fmt.Errorf("must begin with one of %s", strings.Join(Schemes(), ":// ")+"://")
	}
	if u.Hostname() == "" || u.Opaque != "" {
		return nil, nil, errors.New("names no host: it must be like " + f.example)
	}
	for option, values := range u.Query() {
		if !slices.Contains(f.options, option) {
			return nil, nil, fmt.Errorf("there is no option %q, only %s", option, strings.Join(f.options, ", "))
		}
		if len(values) != 1 && option != "addr" {
			return nil, nil, fmt.Errorf("the option %q is there %d times", option, len(values))
		}
	}
	return u, f, f.check(u)
}

// Open prepares a publisher for an address. It connects when it publishes.
func Open(address string) (Publisher, error) { return open(address, nil) }

// open is Open with logins that may change; login may be nil.
func open(address string, login func(address string) *url.Userinfo) (Publisher, error) {
	u, f, err := parse(address)
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	at := place{u, func() *url.Userinfo { return nil }}
	if login != nil {
		at.login = func() *url.Userinfo { return login(address) }
	}
	p, err := f.open(at)
	if err != nil {
		return nil, fmt.Errorf("events: %s: %w", Name(address), err)
	}
	return p, nil
}

// Name is what a sink is called where people see it, and in the ledger: its
// address without user, password and options, but for the one that says where
// in the broker events go.
// It must not change between versions: the ledger keeps a sink's place under it.
func Name(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	name := u.Scheme + "://" + u.Host + u.Path
	for _, option := range []string{"stream", "exchange"} {
		if v := u.Query().Get(option); v != "" {
			name += "?" + option + "=" + v
		}
	}
	if len(name) <= maxName {
		return name
	}
	// The hash of the part that is cut off tells two names apart.
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:maxName-20], "") + "…" + hex.EncodeToString(sum[:8])
}

// maxName is the longest name that a sink has in the ledger, in bytes.
const maxName = 191

// whole reads an option that is a whole number, 0 or more.
func whole(u *url.URL, option string) (int64, error) {
	text := u.Query().Get(option)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s must be a whole number, not %q", option, text)
	}
	return n, nil
}

// yes reads an option that is true or false.
func yes(u *url.URL, option string) (bool, error) {
	text := u.Query().Get(option)
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s must be true or false, not %q", option, text)
	}
	return b, nil
}

// tidied is an error without the user and the password of an address, which
// libraries like to repeat.
func tidied(err error, u *url.URL) error {
	if err == nil || u.User == nil {
		return err
	}
	text := err.Error()
	secret, ok := u.User.Password()
	if !ok {
		// NATS takes a token in place of the user.
		secret = u.User.Username()
	}
	if secret != "" {
		for _, s := range []string{u.User.String(), secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
