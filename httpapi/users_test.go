package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/erasure"
)

// erased waits until an erasure is in a state.
func (s *stack) erased(id string, want erasure.EraseState) erasure.ErasureView {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		v, err := s.admin.Erasures.Get(s.t.Context(), id)
		must(s.t, err)
		if v.State == want {
			return v
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the erasure is %+v, want %s", v, want)
		}
	}
}

// A user asks to be erased: what is over goes, the audit log included, and what
// goes on is waited for.
func TestEraseUser(t *testing.T) {
	s := newStack(t, nil)
	ctx := t.Context()
	const user = "u-erase-me"
	for _, step := range [][3]string{
		{"POST", "/v1/products", `{"id":"cup","name":"Cup","price":{"amount":5,"currency":"CNY"},"stock":5}`},
		{"POST", "/v1/merchants/shop/followers/" + user, `{}`},
		{"POST", "/v1/accounts/" + user + "/deposits", `{"amount":{"amount":7,"currency":"CNY"},"ref":"d1"}`},
	} {
		if a := s.ask(step[0], step[1], step[2], asAdmin); a.status >= 300 {
			t.Fatalf("%v: %d %s", step, a.status, a.body)
		}
	}
	if a := s.ask("PUT", "/v1/audiences/vip", "other\n"+user+"\n", asAdmin, "Content-Type: text/csv"); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	order := s.ask("POST", "/v1/products/cup/orders", `{}`, jwtFor(t, user, time.Hour))
	id := fmt.Sprint(order.json["id"])
	if a := s.ask("POST", "/v1/claims/"+id+"/ship", `{"carrier":"SF","tracking_no":"SF-4711"}`, asAdmin); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	r, err := s.admin.Erasures.Record(ctx, user)
	must(t, err)
	if got := fmt.Sprint(r.Campaigns, r.Balances, r.Follows, r.Lists); got != "[{product:cup 1}] [{7 CNY}] [shop] [vip]" {
		t.Errorf("what there is: %s", got)
	}

	if a := s.ask("POST", "/v1/users/"+user+"/erasure", `{}`, asAdmin); a.status != 409 || !strings.Contains(a.body, "7 CNY") {
		t.Errorf("with money: %d %s", a.status, a.body)
	}
	e, known, err := s.admin.Erasures.Erase(ctx, user, erasure.ErasureSpec{LeaveBalance: true})
	must(t, err)
	if known {
		t.Error("it was begun before")
	}
	// Nodes are told first that there is one follower less: that takes its time.
	v := s.erased(e.ID, erasure.ErasureWaiting)
	if fmt.Sprint(v.WaitsFor) != "[nodes that have not read the change of the followers of shop]" {
		t.Errorf("it waits for %v", v.WaitsFor)
	}
	if again, known, err := s.admin.Erasures.Erase(ctx, user, erasure.ErasureSpec{}); err != nil || !known || again.ID != e.ID {
		t.Errorf("again: %+v %v %v", again, known, err)
	}
	claim := s.ask("GET", "/v1/claims/"+id, "", asAdmin)
	if who := fmt.Sprint(claim.json["user_id"]); !strings.HasPrefix(who, erasure.PseudonymPrefix) || strings.Contains(claim.body, "4711") {
		t.Errorf("the order: %s", claim.body)
	}
	// The log is read before the record is: while the erasure waits, a read of the record names the user until a later round.
	if log := s.ask("GET", "/v1/audit?limit=100", "", asAdmin).body; strings.Contains(log, user) || strings.Contains(log, "4711") || !strings.Contains(log, "erase-user") {
		t.Errorf("the audit log has: %s", log)
	}
	if r, err = s.admin.Erasures.Record(ctx, user); err != nil || len(r.Campaigns)+len(r.Balances)+len(r.Follows)+len(r.Lists) > 0 {
		t.Errorf("what there is still: %+v %v", r, err)
	}
	// The call's entry asked for the erasure: none of the erasure's own is needed.
	if asks := asksInChain(s); len(asks) != 1 || asks[0].Erasure != e.ID || asks[0].Key == "dibs" {
		t.Errorf("the chain has %+v", asks)
	}
	if r, err := s.admin.Audit.VerifyLog(ctx, access.ChainPoint{}); err != nil || !r.Whole || r.Erased == 0 {
		t.Errorf("the log: %+v, %v", r, err)
	}
	if report, err := s.service.Audit.Verify(ctx); err != nil || !report.OK {
		t.Errorf("verify: %+v %v", report, err)
	}
	if logs := s.logs.String(); strings.Contains(logs, user) {
		t.Errorf("the node's log has: %s", logs)
	}
}

// The erasure of a user without any data finishes by itself, and no longer names the
// user.
func TestEraseNobody(t *testing.T) {
	s := newStack(t, nil)
	e, _, err := s.admin.Erasures.Erase(t.Context(), "nobody-7", erasure.ErasureSpec{})
	must(t, err)
	if e.UserID != "nobody-7" {
		t.Errorf("%+v", e)
	}
	if v := s.erased(e.ID, erasure.ErasureDone); v.UserID != "" || v.DoneAt == nil {
		t.Errorf("%+v", v)
	}
	l, err := s.admin.Erasures.List(t.Context(), false, dibs.Page{})
	must(t, err)
	if text := fmt.Sprintf("%+v", l); len(l.Items) != 1 || strings.Contains(text, "nobody-7") {
		t.Errorf("%s", text)
	}
	if l, err = s.admin.Erasures.List(t.Context(), true, dibs.Page{}); err != nil || len(l.Items) != 0 {
		t.Errorf("open: %+v %v", l, err)
	}
	if _, _, err := s.admin.Erasures.Erase(t.Context(), "a b", erasure.ErasureSpec{}); !errors.Is(err, dibs.ErrInvalid) {
		t.Errorf("a user with a bad id: %v", err)
	}
}

// asksInChain are the records of the chain over the log which say that an entry asked for an erasure.
func asksInChain(s *stack) (asks []access.ChainRecord) {
	s.t.Helper()
	l, err := s.admin.Audit.Chain(s.t.Context(), dibs.Page{Limit: dibs.MaxPage})
	must(s.t, err)
	for _, v := range l.Items {
		var r access.ChainRecord
		must(s.t, json.Unmarshal([]byte(v.Record), &r))
		if r.Kind == access.ChainAsk {
			asks = append(asks, r)
		}
	}
	return asks
}
