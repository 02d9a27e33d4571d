package ticket_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/ticket"
	"github.com/dibs-dev/dibs/internal/seal"

	"github.com/dibs-dev/dibs/gate"
)

var (
	key    = []byte("the key of the tests, 32 bytes +")
	secret = []byte("the human check and dibs share this")
	noon   = time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
)

// booth hands out tickets at a time that the test sets.
type booth struct {
	*ticket.Tickets
	t   *testing.T
	now time.Time
}

func newBooth(t *testing.T) *booth {
	t.Helper()
	b := &booth{t: t, now: noon}
	var err error
	b.Tickets, err = ticket.New(ticket.Config{Key: key, HumanSecrets: [][]byte{secret}, Now: func() time.Time { return b.now }})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func campaign(number uint32, id string, spec dibs.TicketSpec) *dibs.Campaign {
	return &dibs.Campaign{
		Number: number, ID: id, StartsAt: noon, EndsAt: noon.Add(2 * time.Hour), State: dibs.Published, Gate: &dibs.GateSpec{Ticket: &spec},
	}
}

func plain() dibs.TicketSpec { return dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute)} }

func (b *booth) fetch(c *dibs.Campaign, user string, req gate.TicketRequest) string {
	b.t.Helper()
	v, err := b.Ticket(context.Background(), c, user, req)
	if err != nil {
		b.t.Fatal(err)
	}
	return v.Ticket
}

func (b *booth) refuses(c *dibs.Campaign, user string, req gate.TicketRequest, want dibs.Reason) {
	b.t.Helper()
	v, err := b.Ticket(context.Background(), c, user, req)
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != want {
		b.t.Errorf("%+v, %v; want %s", v, err, want)
	}
}

func (b *booth) claims(c *dibs.Campaign, user, ticket string) (dibs.Result, bool) {
	return b.Pass(context.Background(), c, &dibs.ClaimRequest{CampaignID: c.ID, UserID: user, Quantity: 1, Ticket: ticket})
}

func TestATicketIsGoodForItsUserOnly(t *testing.T) {
	b := newBooth(t)
	c, other := campaign(1, "phone", plain()), campaign(2, "other", plain())
	text := b.fetch(c, "ann", gate.TicketRequest{})
	for _, tt := range []struct {
		name         string
		c            *dibs.Campaign
		user, ticket string
		after        time.Duration
		want         dibs.Reason
	}{
		{"hers", c, "ann", text, 0, dibs.Granted},
		{"hers again", c, "ann", text, 59 * time.Second, dibs.Granted},
		{"too old", c, "ann", text, time.Minute, dibs.TicketRequired},
		{"none", c, "ann", "", 0, dibs.TicketRequired},
		{"another's", c, "bob", text, 0, dibs.TicketRequired},
		{"for another campaign", other, "ann", text, 0, dibs.TicketRequired},
		{"an admission", c, "ann", seal.New(key, "admission").Seal(1, "ann", noon.Add(time.Hour)), 0, dibs.TicketRequired},
		{"forged", c, "ann", seal.New([]byte("somebody made this key up"), "ticket").Seal(1, "ann", noon.Add(time.Hour)), 0, dibs.TicketRequired},
		{"garbage", c, "ann", strings.Repeat("x", 10_000), 0, dibs.TicketRequired},
		{"before the start", c, "ann", text, -time.Minute, dibs.NotStarted},
		{"when it is over", c, "ann", text, 2 * time.Hour, dibs.Ended},
	} {
		b.now = noon.Add(tt.after)
		res, passed := b.claims(tt.c, tt.user, tt.ticket)
		if passed != (tt.want == dibs.Granted) || !passed && res.Outcome != tt.want || res.Outcome == dibs.TicketRequired && res.Detail.ZH == "" {
			t.Errorf("%s: passed %v, %+v; want %s", tt.name, passed, res, tt.want)
		}
	}
	b.now = noon
	paused := *c
	paused.State = dibs.PausedState
	if res, passed := b.claims(&paused, "ann", text); passed || res.Outcome != dibs.Paused {
		t.Errorf("paused: passed %v, %s", passed, res.Outcome)
	}
	none := *c
	none.Gate = &dibs.GateSpec{}
	if _, passed := b.claims(&none, "ann", ""); !passed {
		t.Error("a campaign without tickets asks for one")
	}
}

func TestNoTicketBeforeTheOpening(t *testing.T) {
	b := newBooth(t)
	c := campaign(1, "phone", dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: 8})
	for after, want := range map[time.Duration]dibs.Reason{-time.Millisecond: dibs.NotStarted, 2 * time.Hour: dibs.Ended} {
		b.now = noon.Add(after)
		b.refuses(c, "ann", gate.TicketRequest{}, want)
		_, err := b.Challenge(context.Background(), c, "ann")
		var e *dibs.Error
		if !errors.As(err, &e) || e.Reason != want {
			t.Errorf("the challenge: %v, want %s", err, want)
		}
	}
	b.now = noon
	draft := *c
	draft.State = dibs.Draft
	b.refuses(&draft, "ann", gate.TicketRequest{}, dibs.NotFound)
	draft.State, draft.Gate = dibs.Published, nil
	b.refuses(&draft, "ann", gate.TicketRequest{}, dibs.NotFound)
}

// solve works, by another code than the one that checks.
func solve(challenge string, bits int) string {
	for n := 0; ; n++ {
		nonce := fmt.Sprint(n)
		binary := fmt.Sprintf("%08b", sha256.Sum256([]byte(challenge+":"+nonce)))
		if strings.HasPrefix(strings.NewReplacer("[", "", " ", "").Replace(binary), strings.Repeat("0", bits)) {
			return nonce
		}
	}
}

func TestATicketCostsWork(t *testing.T) {
	b := newBooth(t)
	const bits = 10
	c := campaign(1, "phone", dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: bits})
	other := campaign(2, "other", dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: bits})
	ch, err := b.Challenge(context.Background(), c, "ann")
	if err != nil || ch.Bits != bits || ch.Challenge == "" || !ch.ExpiresAt.Equal(noon.Add(5*time.Minute)) {
		t.Fatalf("%+v, %v", ch, err)
	}
	done := gate.TicketRequest{Challenge: ch.Challenge, Nonce: solve(ch.Challenge, bits)}
	if _, passed := b.claims(c, "ann", b.fetch(c, "ann", done)); !passed {
		t.Error("the ticket is worth nothing")
	}
	idle := ""
	for n := 0; idle == ""; n++ {
		if ticket.Work(ch.Challenge, fmt.Sprint(n)) < bits {
			idle = fmt.Sprint(n)
		}
	}
	for name, req := range map[string]gate.TicketRequest{
		"nothing": {}, "too little": {Challenge: ch.Challenge, Nonce: idle}, "an own challenge": {Challenge: "abc", Nonce: solve("abc", bits)},
	} {
		t.Run(name, func(t *testing.T) { b.refuses(c, "ann", req, dibs.TicketRequired) })
	}
	b.refuses(c, "bob", done, dibs.TicketRequired)
	b.refuses(other, "ann", done, dibs.TicketRequired)
	b.refuses(c, "ann", gate.TicketRequest{Challenge: ch.Challenge, Nonce: strings.Repeat("1", 65)}, dibs.InvalidRequest)
	if _, passed := b.claims(c, "ann", ch.Challenge); passed {
		t.Error("a challenge is as good as a ticket")
	}
	b.now = noon.Add(5 * time.Minute)
	b.refuses(c, "ann", done, dibs.TicketRequired)
}

func TestTheHumanCheck(t *testing.T) {
	b := newBooth(t)
	c := campaign(1, "phone", dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), HumanCheck: "https://check.example/"})
	ch, err := b.Challenge(context.Background(), c, "ann")
	if err != nil || ch.HumanCheck != "https://check.example/" || ch.Challenge != "" {
		t.Fatalf("%+v, %v", ch, err)
	}
	sign := func(m jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
		return signVoucher(t, m, key, change)
	}
	good := sign(jwt.SigningMethodHS256, secret, nil)
	if _, passed := b.claims(c, "ann", b.fetch(c, "ann", gate.TicketRequest{Voucher: good})); !passed {
		t.Error("the ticket is worth nothing")
	}
	for name, voucher := range map[string]string{
		"none":               "",
		"garbage":            "garbage",
		"another secret":     sign(jwt.SigningMethodHS256, []byte("another secret of 32 bytes, or more"), nil),
		"alg none":           sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"alg HS512":          sign(jwt.SigningMethodHS512, secret, nil),
		"another user":       sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { c["sub"] = "bob" }),
		"another campaign":   sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { c["aud"] = "other" }),
		"for all campaigns":  sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { c["aud"] = []string{"phone", "other"} }),
		"for no campaign":    sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { delete(c, "aud") }),
		"too old":            sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { c["exp"] = noon.Add(-time.Minute).Unix() }),
		"without an end":     sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { delete(c, "exp") }),
		"good for very long": sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) { c["exp"] = noon.Add(time.Hour).Unix() }),
		"very long":          good + strings.Repeat("x", 2000),
	} {
		t.Run(name, func(t *testing.T) { b.refuses(c, "ann", gate.TicketRequest{Voucher: voucher}, dibs.TicketRequired) })
	}
	// Without a secret there is no voucher that could be good: not even one that is
	// signed by nothing.
	alone, err := ticket.New(ticket.Config{Key: key, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	for _, voucher := range []string{good, sign(jwt.SigningMethodHS256, []byte{}, nil)} {
		if _, err := alone.Ticket(context.Background(), c, "ann", gate.TicketRequest{Voucher: voucher}); err == nil {
			t.Errorf("a server without a secret has taken %q", voucher)
		}
	}
}

// signVoucher signs the voucher of ann for the campaign phone, with its claims changed.
func signVoucher(t *testing.T, m jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{"sub": "ann", "aud": "phone", "exp": noon.Add(5 * time.Minute).Unix()}
	if change != nil {
		change(claims)
	}
	text, err := jwt.NewWithClaims(m, claims).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestHumanSecretsAreReplaced: while the secret is exchanged, vouchers of both are good; then
// those of the new one.
func TestHumanSecretsAreReplaced(t *testing.T) {
	b := newBooth(t)
	c := campaign(1, "phone", dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), HumanCheck: "https://check.example/"})
	next := []byte("another secret of 32 bytes, or more")
	early, late := signVoucher(t, jwt.SigningMethodHS256, secret, nil), signVoucher(t, jwt.SigningMethodHS256, next, nil)
	takes := func(what, voucher string, want bool) {
		t.Helper()
		if _, err := b.Ticket(context.Background(), c, "ann", gate.TicketRequest{Voucher: voucher}); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := b.SetHumanSecrets([][]byte{next, secret}); err != nil {
		t.Fatal(err)
	}
	takes("the old one beside the new", early, true)
	takes("the new one beside the old", late, true)
	if err := b.SetHumanSecrets([][]byte{next[:8]}); err == nil {
		t.Error("a short secret is taken")
	}
	if err := b.SetHumanSecrets([][]byte{next}); err != nil {
		t.Fatal(err)
	}
	takes("the old one alone", early, false)
	takes("the new one alone", late, true)
}

func TestConfigOfTickets(t *testing.T) {
	for name, cfg := range map[string]ticket.Config{"a short key": {Key: key[:8]}, "a short secret": {Key: key, HumanSecrets: [][]byte{secret, secret[:31]}}} {
		if _, err := ticket.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// FuzzTicket lets no user pass with a text that was not handed out to them.
func FuzzTicket(f *testing.F) {
	b, err := ticket.New(ticket.Config{Key: key, Now: func() time.Time { return noon }})
	if err != nil {
		f.Fatal(err)
	}
	c := campaign(1, "phone", plain())
	v, err := b.Ticket(context.Background(), c, "ann", gate.TicketRequest{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v.Ticket, "ann")
	f.Add(v.Ticket, "bob")
	f.Add("", "ann")
	f.Fuzz(func(t *testing.T, text, user string) {
		_, passed := b.Pass(context.Background(), c, &dibs.ClaimRequest{CampaignID: "phone", UserID: user, Ticket: text})
		if passed != (text == v.Ticket && user == "ann") {
			t.Fatalf("%q of %q: passed %v", text, user, passed)
		}
	})
}

func BenchmarkPass(b *testing.B) {
	tickets, err := ticket.New(ticket.Config{Key: key, Now: func() time.Time { return noon }})
	if err != nil {
		b.Fatal(err)
	}
	c := campaign(1, "phone", plain())
	v, err := tickets.Ticket(context.Background(), c, "ann", gate.TicketRequest{})
	if err != nil {
		b.Fatal(err)
	}
	req := dibs.ClaimRequest{CampaignID: "phone", UserID: "ann", Ticket: v.Ticket}
	b.ReportAllocs()
	for b.Loop() {
		if _, passed := tickets.Pass(context.Background(), c, &req); !passed {
			b.Fatal("it is refused")
		}
	}
}
