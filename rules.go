package dibs

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrLatePayment: the claim of this payment was released before it came. The
// campaign's rule for late payments says what happens to it.
var ErrLatePayment = errors.New("dibs: the payment came after the claim was released")

// Decide judges a move by the claim as it stands. It returns the event to be
// written, or true when the step was made before; it changes nothing. The error
// is an *Error of NotFound, InvalidState or InvalidRequest, or ErrLatePayment.
func (m *Move) Decide(c *Claim) (e *ClaimEvent, replayed bool, err error) {
	if m.UserID != "" && m.UserID != c.UserID {
		return nil, false, NoSuchClaim
	}
	if m.Campaign != nil && m.Campaign.Kind == RedPacket {
		// The share is the user's money from the grant on. Moves that expire claims have no Campaign here.
		return nil, false, Fail(InvalidState, Text{"a share of a red packet is the user's money: nothing follows its grant", "红包份额领取后即归用户所有，没有后续操作"})
	}
	decide, ok := decisions[m.Step]
	if !ok {
		return nil, false, fmt.Errorf("dibs: there is no step %q", m.Step)
	}
	e = &ClaimEvent{N: len(c.Events) + 1, Step: m.Step, Status: c.Status, At: m.At, EventFacts: m.EventFacts}
	replayed, err = decide(m, c, e)
	if replayed || err != nil {
		return nil, replayed, err
	}
	if e.N > maxSteps {
		return nil, false, Fail(InvalidState, Text{"too much has happened to this claim", "该订单的操作次数过多"})
	}
	return e, false, nil
}

// decisions judge the steps. They complete the event.
var decisions = map[Step]func(*Move, *Claim, *ClaimEvent) (replayed bool, err error){
	StepConfirm: (*Move).confirm, StepCancel: (*Move).cancel, StepExpire: (*Move).expire,
	StepReplace: (*Move).replace, StepRefundDue: (*Move).refundDue, StepRefund: (*Move).refund,
	StepRedeem: (*Move).redeem, StepUnredeem: (*Move).unredeem, StepShip: (*Move).ship,
}

// wrongStatus refuses a step that the claim's status does not allow.
func wrongStatus(c *Claim, doing, doingZH string) error {
	return Fail(InvalidState, Textf("cannot %[1]s a claim that is %[3]s", "状态为 %[3]s 的订单不能%[2]s", doing, doingZH, c.Status))
}

func (m *Move) confirm(c *Claim, e *ClaimEvent) (bool, error) {
	if err := m.rightAmount(c); err != nil {
		return false, err
	}
	e.Amount = cmp.Or(e.Amount, c.Amount)
	if c.knows(m.Ref) {
		return true, nil
	}
	switch {
	case c.Payment != nil && c.Payment.Ref != "" || c.Last(StepReplace) != nil:
		return false, Fail(InvalidState, Text{"the claim was paid by another payment", "该订单已由另一笔付款支付"})
	case c.Status == Released:
		return false, ErrLatePayment
	case c.Status == Refunded:
		return false, wrongStatus(c, "confirm", "确认付款")
	case c.Payment != nil:
		// Money of it went back before anything was said of a payment.
		return false, Fail(InvalidState, Text{"the claim has been refunded in part", "该订单已部分退款"})
	}
	e.Status = Confirmed
	return false, nil
}

// knows reports whether a payment has been heard of before.
func (c *Claim) knows(ref string) bool {
	r := c.Last(StepReplace)
	return c.Payment != nil && c.Payment.Ref == ref && ref != "" || r != nil && r.Ref == ref
}

// rightAmount checks a payment's amount against the claim's. It may be absent when nothing is to be paid.
func (m *Move) rightAmount(c *Claim) error {
	if m.Amount == nil && amountOr(c.Amount).Amount == 0 {
		return nil
	}
	if m.Amount == nil || c.Amount == nil && m.Amount.Amount != 0 || c.Amount != nil && *m.Amount != *c.Amount {
		due := amountOr(c.Amount)
		return Invalid(Fault{"/amount", Textf("must be what the claim costs: %s %s", "必须等于订单金额：%s %s", due.Digits(), due.Currency)})
	}
	return nil
}

func (m *Move) cancel(c *Claim, e *ClaimEvent) (bool, error) {
	if m.Ref != "" && c.byRef(StepCancel, m.Ref) != nil {
		return true, nil
	}
	if c.Status != Pending {
		return false, wrongStatus(c, "cancel", "取消")
	}
	e.Status = Released
	return false, nil
}

func (m *Move) expire(c *Claim, e *ClaimEvent) (bool, error) {
	if c.Status != Pending || c.PayBy.IsZero() || m.At.Before(c.PayBy) {
		return false, wrongStatus(c, "expire", "过期")
	}
	e.Status = Released
	return false, nil
}

// replace ends a released claim in favour of another one.
func (m *Move) replace(c *Claim, _ *ClaimEvent) (bool, error) {
	if r := c.Last(StepReplace); r != nil && m.Other != nil && r.Ref == m.Ref && *r.Other == *m.Other {
		return true, nil
	}
	if c.Status != Released || c.Payment != nil || c.Last(StepReplace) != nil || m.Other == nil {
		return false, wrongStatus(c, "replace", "替换")
	}
	return false, nil
}

func (m *Move) refundDue(c *Claim, e *ClaimEvent) (bool, error) {
	if c.knows(m.Ref) {
		return true, nil
	}
	if c.Status != Released || c.Payment != nil || c.Last(StepReplace) != nil {
		return false, wrongStatus(c, "flag", "标记待退款")
	}
	e.Amount = cmp.Or(e.Amount, c.Amount)
	return false, nil
}

func (m *Move) refund(c *Claim, e *ClaimEvent) (bool, error) {
	if m.Ref != "" && c.byRef(StepRefund, m.Ref) != nil {
		return true, nil
	}
	paid := c.Paid()
	left := paid.Amount.Amount - paid.Refunded
	switch {
	case c.Status == Released && paid.Due && m.Restock:
		return false, Fail(InvalidState, Text{"the stock of a released claim has come back already", "已释放订单的库存早已归还"})
	case c.Status == Released && paid.Due:
	case c.Status == Refunded && m.Restock && !c.Restocked:
		// The money went back first, and now the goods came.
	case c.Status != Confirmed:
		return false, wrongStatus(c, "refund", "退款")
	case c.Redemption != nil:
		return false, Fail(InvalidState, Text{"the coupon has been used: roll its use back first", "优惠券已被使用，请先回退核销"})
	}
	e.Amount = cmp.Or(e.Amount, &Money{Amount: left, Currency: paid.Amount.Currency})
	if err := refundable(e.Amount, &paid, left); err != nil {
		return false, err
	}
	if m.Within > 0 && paid.Refunded+e.Amount.Amount > m.Within {
		return false, Fail(InvalidState, Text{"another refund of the claim was noted at the same time: ask again", "该订单的另一笔退款刚刚登记，请重新提交"})
	}
	if e.Amount.Currency == "" {
		e.Amount = nil
	}
	if c.Status != Released && (m.Restock || amountOr(e.Amount).Amount == left) {
		e.Status = Refunded
	}
	return false, nil
}

// refundable checks a refund against what is left of the payment.
func refundable(amount *Money, paid *Payment, left int64) error {
	switch {
	case amount.Currency != paid.Amount.Currency:
		return Invalid(Fault{"/amount/currency", Textf("must be the payment's: %q", "必须与付款币种一致：%q", paid.Amount.Currency)})
	case amount.Amount < 0:
		return Invalid(Fault{"/amount/amount", Text{"must not be negative", "不能为负数"}})
	case amount.Amount > left:
		return Fail(InvalidState, Textf("only %s %s of the payment are left to refund", "可退金额仅剩 %s %s", Money{left, paid.Amount.Currency}.Digits(), paid.Amount.Currency))
	}
	return nil
}

func (m *Move) redeem(c *Claim, _ *ClaimEvent) (bool, error) {
	switch ends := m.Campaign.ValidUntilFor(c); {
	case m.Campaign.Kind != Coupon:
		return false, Fail(InvalidState, Text{"only coupons are redeemed", "只有优惠券可以核销"})
	case c.Redemption != nil && c.Redemption.Ref == m.Ref:
		return true, nil
	case c.Redemption != nil:
		return false, Fail(InvalidState, Text{"the coupon has been used for another order", "优惠券已用于其他订单"})
	case c.Status != Confirmed:
		return false, wrongStatus(c, "redeem", "核销")
	case c.byRef(StepUnredeem, m.Ref) != nil:
		// A late copy of the first call must not use the coupon again.
		return false, Fail(InvalidState, Text{"the use for this order was rolled back: redeem with another ref", "该订单的核销已回退，请使用新的 ref"})
	case !ends.IsZero() && !m.At.Before(ends):
		return false, Fail(InvalidState, Text{"the coupon was valid until %s", "优惠券已于 %s过期"}.At(ends))
	}
	return false, nil
}

func (m *Move) unredeem(c *Claim, e *ClaimEvent) (bool, error) {
	if m.Campaign.Kind != Coupon {
		return false, Fail(InvalidState, Text{"only coupons are redeemed", "只有优惠券可以核销"})
	}
	if c.Redemption == nil || m.Ref != "" && c.Redemption.Ref != m.Ref {
		if m.Ref != "" && c.byRef(StepUnredeem, m.Ref) != nil {
			return true, nil
		}
		return false, Fail(InvalidState, Text{"the coupon is not in use for this order", "优惠券未用于该订单"})
	}
	e.Ref = c.Redemption.Ref
	return false, nil
}

func (m *Move) ship(c *Claim, _ *ClaimEvent) (bool, error) {
	switch {
	case m.Campaign.Kind != Sale:
		return false, Fail(InvalidState, Text{"only what was sold is shipped", "只有销售订单可以发货"})
	case c.Status != Confirmed:
		return false, wrongStatus(c, "ship", "发货")
	case c.Shipment != nil && c.Shipment.Carrier == m.Carrier && c.Shipment.TrackingNo == m.TrackingNo:
		return true, nil
	}
	return false, nil
}
