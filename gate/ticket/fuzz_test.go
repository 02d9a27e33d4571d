package ticket_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/gate/ticket"
)

// still are tickets at noon.
func still(f *testing.F) *ticket.Tickets {
	b, err := ticket.New(ticket.Config{Key: key, HumanSecrets: [][]byte{secret}, Now: func() time.Time { return noon }})
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzWork: a ticket that costs work is handed out for a challenge that was, to its user, and for a nonce that solves it.
func FuzzWork(f *testing.F) {
	const bits = 4
	b, spec := still(f), plain()
	spec.WorkBits = bits
	c := campaign(1, "phone", spec)
	ch, err := b.Challenge(context.Background(), c, "ann")
	if err != nil {
		f.Fatal(err)
	}
	nonce := solve(ch.Challenge, bits)
	f.Add(ch.Challenge, nonce, "ann")
	f.Add(ch.Challenge, nonce, "bob")
	f.Add(ch.Challenge, "", "ann")
	f.Add("", nonce, "ann")
	f.Add(ch.Challenge+"=", nonce, "ann")
	f.Add(ch.Challenge, strings.Repeat("n", 65), "ann")
	f.Fuzz(func(t *testing.T, challenge, nonce, user string) {
		v, err := b.Ticket(context.Background(), c, user, gate.TicketRequest{Challenge: challenge, Nonce: nonce})
		solved := challenge == ch.Challenge && user == "ann" && len(nonce) <= 64 && ticket.Work(challenge, nonce) >= bits
		if (err == nil) != solved || (v.Ticket != "") != solved {
			t.Fatalf("%q with the nonce %q of %q: %+v, %v", challenge, nonce, user, v, err)
		}
	})
}

// FuzzVoucher: a ticket that asks for a human check is handed out for what the check has signed, for this user and this
// campaign, and for nothing else.
func FuzzVoucher(f *testing.F) {
	b, spec := still(f), plain()
	spec.HumanCheck = "https://check.example"
	c := campaign(1, "phone", spec)
	sign := func(m jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		text, err := jwt.NewWithClaims(m, claims).SignedString(key)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	claims := jwt.MapClaims{"sub": "ann", "aud": "phone", "exp": noon.Add(5 * time.Minute).Unix()}
	good := sign(jwt.SigningMethodHS256, secret, claims)
	f.Add(good, "ann")
	f.Add(good, "bob")
	f.Add(sign(jwt.SigningMethodHS512, secret, claims), "ann")
	f.Add(sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), "ann")
	f.Add(sign(jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "aud": []string{"phone", "other"}}), "ann")
	f.Add("", "ann")
	f.Add("a.b.c", "ann")
	signed := good[:strings.LastIndexByte(good, '.')]
	f.Fuzz(func(t *testing.T, voucher, user string) {
		v, err := b.Ticket(context.Background(), c, user, gate.TicketRequest{Voucher: voucher})
		if err == nil && (user != "ann" || !strings.HasPrefix(voucher, signed+".") || v.Ticket == "") {
			t.Fatalf("%q of %q: %+v", voucher, user, v)
		}
		if err != nil && voucher == good && user == "ann" {
			t.Fatal(err)
		}
	})
}
