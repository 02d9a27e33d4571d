package ledgertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/ledger"
)

// lifeInput is a step that a client asks for. ref is a payment's ref, or for a
// refund its number from 0 to 2.
type lifeInput struct {
	step dibs.Step
	ref  string
}

// lifeOutput is the answer to a step, and the status that the claim has then.
type lifeOutput struct {
	// answer is made, again, late or refused.
	answer string
	status dibs.Status
}

// lifeState is one claim between two steps.
type lifeState struct {
	status dibs.Status
	// payment and due are a payment's ref and whether it has to go back,
	// refunds the refs of refunds, in the order of their numbers.
	payment string
	due     bool
	refunds [3]bool
	left    int64
}

// lifeModel says which answers a ledger may give to the steps of one claim: a
// price of 300, and three refunds of 100 each. It is written beside the
// decisions of package dibs and not by them, so that a fault there shows.
var lifeModel = porcupine.Model{
	Init: func() any { return lifeState{status: dibs.Pending, left: 300} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(lifeState), input.(lifeInput), output.(lifeOutput)
		next, answer := s.after(in)
		return out.answer == answer && out.status == next.status, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// after is the state after a step, and its answer. Cancel and expire come last
// here: both release a claim that is pending, and are refused for any other.
func (s lifeState) after(in lifeInput) (lifeState, string) {
	switch in.step {
	case dibs.StepConfirm:
		return s.confirm(in.ref)
	case dibs.StepRefundDue:
		switch {
		case s.payment == in.ref:
			return s, "again"
		case s.status != dibs.Released || s.payment != "":
			return s, "refused"
		}
		s.payment, s.due = in.ref, true
		return s, "made"
	case dibs.StepRefund:
		return s.refund(int(in.ref[0] - '0'))
	}
	if s.status != dibs.Pending {
		return s, "refused"
	}
	s.status = dibs.Released
	return s, "made"
}

// confirm is a payment: once by its ref, and late for a claim that was
// released.
func (s lifeState) confirm(ref string) (lifeState, string) {
	switch {
	case s.payment == ref:
		return s, "again"
	case s.payment != "":
		return s, "refused"
	case s.status == dibs.Released:
		return s, "late"
	}
	s.status, s.payment = dibs.Confirmed, ref
	return s, "made"
}

// refund gives a hundred back: the third one ends the claim.
func (s lifeState) refund(n int) (lifeState, string) {
	switch {
	case s.refunds[n]:
		return s, "again"
	case s.status != dibs.Confirmed && !s.due:
		return s, "refused"
	}
	s.refunds[n], s.left = true, s.left-100
	if s.left == 0 {
		s.due = false
		if s.status == dibs.Confirmed {
			s.status = dibs.Refunded
		}
	}
	return s, "made"
}

// The size of testLivesLinear. Each claim has a history of its own; the check of
// one grows quickly with the steps that overlap.
const (
	lifeClaims  = 12
	lifeClients = 6
	lifeSteps   = 6
)

// testLivesLinear lets clients of several nodes take random steps of one claim
// at the same time: what they are answered must be what some order of the
// steps, one after the other, would answer. Each step reads the claim, decides
// and writes. A ledger that lets two of them read the same state confirms a
// claim that another one has just released.
func testLivesLinear(t *testing.T, f *fixture) {
	c := unpaid("c", 1000)
	c.Price = &dibs.Money{Amount: 300, Currency: "CNY"}
	_, s := f.loaded(c)
	var at []dibs.Position
	for i := range lifeClaims {
		at = append(at, s.grant(fmt.Sprint("u", i), 1))
	}
	f.settle(s)
	ledgers := []ledger.Ledger{f.ledger(), f.open(), f.open()}
	seed := rand.Uint64()
	// A claim has a history of its own; all clients take steps of the same claim at
	// once.
	for i, p := range at {
		h := &history{c: c, at: p}
		var clients sync.WaitGroup
		for n := range lifeClients {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i*lifeClients+n)))
				for range lifeSteps {
					h.step(t, ledgers[n%len(ledgers)], n, r)
				}
			})
		}
		clients.Wait()
		if !porcupine.CheckOperations(lifeModel, h.operations) {
			for _, op := range h.operations {
				t.Log(lifeModel.DescribeOperation(op.Input, op.Output))
			}
			t.Fatalf("the answers to claim %d of seed %d fit no order of the steps", i, seed)
		}
	}
	f.clean(c)
}

// history is what clients asked of one claim, and what they were answered. mu
// guards operations, which all clients add to.
type history struct {
	c          *dibs.Campaign
	at         dibs.Position
	mu         sync.Mutex
	operations []porcupine.Operation
}

// step takes one random step and records its answer. It is late enough for a
// claim to expire. The times around the call are the machine's, so that calls
// which did not overlap keep their order.
func (h *history) step(t *testing.T, l ledger.Ledger, client int, r *rand.Rand) {
	steps := []dibs.Step{dibs.StepConfirm, dibs.StepConfirm, dibs.StepCancel, dibs.StepExpire, dibs.StepRefund, dibs.StepRefund, dibs.StepRefundDue}
	in := lifeInput{step: steps[r.IntN(len(steps))]}
	facts := dibs.EventFacts{}
	switch in.step {
	case dibs.StepConfirm, dibs.StepRefundDue:
		in.ref = fmt.Sprint("p", r.IntN(2))
		facts = paid(in.ref, 300)
	case dibs.StepRefund:
		in.ref = fmt.Sprint(r.IntN(3))
		facts = paid(in.ref, 100)
	}
	m := step(h.c, h.at, in.step, facts)
	m.At = start.Add(time.Hour)
	began := time.Now().UnixNano()
	moved, err := l.Orders.Move(t.Context(), [][]dibs.Move{{m}})
	ended := time.Now().UnixNano()
	if err != nil {
		t.Error(err)
		return
	}
	got := moved[0][0]
	out := lifeOutput{answer: "made", status: got.Claim.Status}
	switch {
	case got.Replayed:
		out.answer = "again"
	case errors.Is(got.Err, dibs.ErrLatePayment):
		out.answer = "late"
	case errors.Is(got.Err, dibs.ErrInvalidState):
		out.answer = "refused"
	case got.Err != nil:
		t.Error(got.Err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: in, Call: began, Output: out, Return: ended})
}
