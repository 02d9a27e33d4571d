package rehearsal

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// meanShare is the mean share of a rehearsed red packet, in minor units.
// With one unit the mean, all shares would be alike.
const meanShare = 100

// homeEvery is how often it is looked whether a red packet's rest is back.
const homeEvery = 100 * time.Millisecond

// count ends the red packet, waits until what nobody took is back with its
// sender, and has the server compare its books once more.
// Only a campaign of the rehearsal's own is ended. An error leaves the promise of
// money unjudged.
func (e *evidence) count(ctx context.Context, s server, campaign string, p progress) {
	e.packet = true
	if e.fundsErr = s.end(ctx, campaign); e.fundsErr != nil {
		return
	}
	var moved atomic.Int64
	defer p.watch("crediting", int(e.before.Stock*meanShare), moved.Load, none)()
	look := time.NewTicker(homeEvery)
	defer look.Stop()
	for {
		v, err := s.stats(ctx, campaign)
		if err != nil {
			e.fundsErr = err
			return
		}
		if v.Funds == nil {
			e.fundsErr = fmt.Errorf("the numbers of %s show no funds", campaign)
			return
		}
		moved.Store(v.Funds.Credited.Amount + v.Funds.Returned.Amount)
		if e.funds = *v.Funds; e.funds.ReturnedAt != nil {
			break
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			e.fundsErr = fmt.Errorf("the rest of the red packet is not back: %w", context.Cause(ctx))
			return
		}
	}
	e.report, e.verifyErr = s.verify(ctx, campaign)
}

// money: what the users were told is what they were credited, and the rest is
// back with the sender.
func (e *evidence) money() Verdict {
	if e.fundsErr != nil {
		return unjudged(moneyAddsUp, byAnswers, because(e.fundsErr))
	}
	told, silent := int64(0), 0
	for _, g := range e.firstGrants() {
		if g.claim.Amount == nil {
			silent++
			continue
		}
		told += g.claim.Amount.Amount
	}
	f := &e.funds
	sum := dibs.Money{Amount: told, Currency: f.Funded.Currency}
	var faults []dibs.Text
	if silent > 0 {
		faults = append(faults, dibs.Textf("%d shares were granted without an amount", "%d 份红包没有金额", silent))
	}
	if f.Funded.Amount != f.Credited.Amount+f.Returned.Amount || f.Escrow.Amount != 0 {
		faults = append(faults, dibs.Textf("%s are in escrow after the end, and the rest does not make %s", "结束后仍托管 %s，其余之和不等于 %s", f.Escrow.Digits(), f.Funded.Digits()))
	}
	if told > f.Credited.Amount || e.ours && told != f.Credited.Amount && len(e.unheard()) == 0 {
		faults = append(faults, dibs.Textf("the shares told sum to %s, those credited to %s", "告知用户的金额合计 %s，已入账 %s", sum.Digits(), f.Credited.Digits()))
	}
	return judge(moneyAddsUp, faults, dibs.Textf("of %s %s, %s were told to users, %s credited, %s returned to the sender",
		"总额 %s %s，告知用户 %s，已入账 %s，退回发送人 %s",
		f.Funded.Digits(), f.Funded.Currency, sum.Digits(), f.Credited.Digits(), f.Returned.Digits()))
}
