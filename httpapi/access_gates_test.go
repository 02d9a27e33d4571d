package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// gateCalls are the routes of users about gates, each with a campaign that has the gate, in the order in which users
// call them. shows are members that no other user may see.
var gateCalls = []struct {
	op, campaign string
	shows        []string
}{
	{"POST /v1/campaigns/{id}/queue", "queued", []string{"admission"}},
	{"GET /v1/campaigns/{id}/queue", "queued", []string{"admission"}},
	{"POST /v1/campaigns/{id}/tickets/challenge", "ticketed", []string{"challenge"}},
	{"POST /v1/campaigns/{id}/tickets", "open", []string{"ticket"}},
	{"POST /v1/campaigns/{id}/lottery/entries", "drawn", []string{"nonce", "entry"}},
	{"GET /v1/campaigns/{id}/lottery/result", "drawn", []string{"nonce", "entry"}},
	{"GET /v1/campaigns/{id}/lottery", "drawn", nil},
	{"DELETE /v1/campaigns/{id}/queue", "queued", nil},
}

// TestSecurityMatrixOfGates asks the routes of gates on campaigns that have them with every kind of token:
// TestSecurityMatrix asks them where there is none. What one user is shown, another one never is.
func TestSecurityMatrixOfGates(t *testing.T) {
	s := newGated(t)
	soon := time.Now().Add(time.Minute)
	s.gated("queued", 0, dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 5, Burst: 5}})
	s.gated("ticketed", 0, dibs.GateSpec{Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: 4}})
	s.gated("open", 0, dibs.GateSpec{Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute)}})
	s.gated("drawn", time.Hour, dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: soon}})
	m := &matrix{stack: s.stack, t: t, claim: "no claim", bad: falseTokens(t, "revoked")}
	asked := map[string]bool{}
	for _, c := range gateCalls {
		asked[c.op] = true
		need := forOthers[c.op]
		method, pattern, _ := strings.Cut(c.op, " ")
		body := ""
		if method == "POST" {
			body = "{}"
		}
		ask := func(headers ...string) answer {
			return s.ask(method, strings.ReplaceAll(pattern, "{id}", c.campaign), body, headers...)
		}
		for name, token := range m.bad {
			if a := ask("Authorization: " + token); need == "open" {
				m.passed(c.op, name, a)
			} else {
				m.denied(c.op, name, a, 401)
			}
		}
		answers := map[string]answer{"none": ask(), "user": ask(jwtFor(t, "42", time.Hour)), "other": ask(jwtFor(t, "7", time.Hour)), "admin": ask(asAdmin)}
		for name, a := range answers {
			if want := verdicts[need][name]; want != 0 {
				m.denied(c.op, name, a, want)
			} else {
				m.passed(c.op, name, a)
			}
		}
		for _, member := range c.shows {
			mine, _ := answers["user"].json[member].(string)
			if theirs := answers["other"].body; mine == "" || strings.Contains(theirs, mine) {
				t.Errorf("%s: the %s %q of a user, and another one's answer %s", c.op, member, mine, theirs)
			}
		}
	}
	for op, need := range forOthers {
		gate := strings.Contains(op, "/queue") || strings.Contains(op, "/tickets") || strings.Contains(op, "/lottery")
		if gate && need == "user" && !asked[op] {
			t.Errorf("%s is not asked on a campaign that has the gate", op)
		}
	}
}

// passed checks that a token was good for an operation on what there is.
func (m *matrix) passed(op, name string, a answer) {
	m.t.Helper()
	if a.status != 200 && a.status != 201 {
		m.t.Errorf("%s with %s: %d %s", op, name, a.status, a.body)
	}
}
