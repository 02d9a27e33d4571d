package rehearsal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
)

// verdicts judges every promise.
// A promise without evidence is unjudged, which is no success: see Report.OK.
func (e *evidence) verdicts() []Verdict {
	vs := []Verdict{e.oversell(), e.limits(), e.kept(), e.phantoms(), e.undersell()}
	if e.plan.keys {
		vs = append(vs, e.repeated())
	}
	vs = append(vs, e.answered(), e.numbers())
	if e.packet {
		vs = append(vs, e.money())
	}
	if e.verifyErr != nil {
		return append(vs, unjudged(serverVerdict, byServer, because(e.verifyErr)))
	}
	promises := 0
	for _, c := range e.report.Campaigns {
		for _, p := range c.Promises {
			v := Verdict{Promise: p.Promise, Judgement: Held, Witness: byServer, Detail: p.Detail, DetailZH: p.DetailZH}
			if !p.Held {
				v.Judgement = Broken
			}
			vs = append(vs, v)
			promises++
		}
	}
	if promises == 0 {
		vs = append(vs, unjudged(serverVerdict, byServer, dibs.Text{EN: "the server's report has no promise in it", ZH: "服务端的报告中没有任何承诺"}))
	}
	return vs
}

// units adds up the different claims that were granted.
func (e *evidence) units() int64 {
	n := int64(0)
	for _, g := range e.firstGrants() {
		n += g.claim.Quantity
	}
	return n
}

// available is the most that could be granted: what was there at the start, and
// what others put in or gave back since.
// Where others claim too it is an upper bound: a stricter one could accuse a server
// wrongly.
func (e *evidence) available() int64 {
	n := e.before.Remaining
	if !e.ours && e.statsErr == nil {
		n += max(e.after.Stock-e.before.Stock, 0) + max(e.after.Released-e.before.Released, 0)
	}
	return n
}

// oversell: the units answered as granted are at most the stock.
func (e *evidence) oversell() Verdict {
	got, stock := e.units(), e.available()
	var faults []dibs.Text
	if got > stock {
		faults = []dibs.Text{dibs.Textf("%d too many", "多出 %d 件", got-stock)}
	}
	return judge(noOversell, faults, dibs.Textf("%d units were granted of %d", "发放 %d 件，库存 %d 件", got, stock))
}

// limits: no user was answered more than the limit.
func (e *evidence) limits() Verdict {
	held := map[int32]int64{}
	for _, g := range e.firstGrants() {
		held[g.press.user] += g.claim.Quantity
	}
	most := int64(0)
	var faults []dibs.Text
	for user, n := range held {
		most = max(most, n)
		if n > e.limit {
			faults = append(faults, dibs.Textf("%s holds %d", "%s 持有 %d 件", e.plan.userID(user), n))
		}
	}
	slices.SortFunc(faults, func(a, b dibs.Text) int { return strings.Compare(a.EN, b.EN) })
	return judge(limitHolds, faults, dibs.Textf("%d users were granted at most %d each, the limit is %d", "共 %d 位用户获得，每人最多 %d 件，限领 %d 件", len(held), most, e.limit))
}

// kept: each claim answered as granted is found afterwards, by its user and in
// the list of the campaign's claims, and is what was answered.
func (e *evidence) kept() Verdict {
	faults := slices.Concat(e.lost, e.changed)
	if err := cmp.Or(e.readErr, e.ledgerErr); err != nil && len(faults) == 0 {
		return unjudged(yesIsKept, byAnswers, because(err))
	}
	listed := make(map[string]bool, len(e.ledger))
	for i := range e.ledger {
		listed[e.ledger[i].ID] = true
	}
	for _, g := range e.firstGrants() {
		if e.ledgerErr == nil && !listed[g.claim.ID] {
			faults = append(faults, dibs.Textf("the list lacks claim %s of %s", "列表中缺少领取记录 %s（用户 %s）", g.claim.ID, g.claim.UserID))
		}
	}
	return judge(yesIsKept, faults, dibs.Textf("%d granted claims were read back, one by one and in the list", "已逐条并在列表中回读 %d 条成功的领取记录", e.read))
}

// phantoms: each claim belongs to one user, each item to one claim, and there
// is no claim that nobody was told of.
// A user with a press that has no answer may hold a claim without knowing.
func (e *evidence) phantoms() Verdict {
	if e.ledgerErr != nil {
		return unjudged(noPhantom, byAnswers, because(e.ledgerErr))
	}
	owner := map[string]string{}
	var faults []dibs.Text
	for _, g := range e.tally.grants {
		user := e.plan.userID(g.press.user)
		if was, ok := owner[g.claim.ID]; ok && was != user {
			faults = append(faults, dibs.Textf("claim %s was answered to %s and to %s", "领取记录 %s 同时答复给了 %s 和 %s", g.claim.ID, was, user))
		}
		owner[g.claim.ID] = user
	}
	unheard := e.unheard()
	item, listed := map[string]string{}, map[string]bool{}
	for i := range e.ledger {
		c := &e.ledger[i]
		if listed[c.ID] {
			faults = append(faults, dibs.Textf("claim %s is listed twice", "领取记录 %s 在列表中出现两次", c.ID))
		}
		listed[c.ID] = true
		for _, it := range c.Items {
			if was, ok := item[it]; ok && c.Status != "released" {
				faults = append(faults, dibs.Textf("claims %s and %s hold the same item", "领取记录 %s 与 %s 持有同一物品", was, c.ID))
			}
			if c.Status != "released" {
				item[it] = c.ID
			}
		}
		if _, told := owner[c.ID]; !told && (e.ours || e.plan.isUser(c.UserID)) && !unheard[c.UserID] {
			faults = append(faults, dibs.Textf("claim %s of %s is listed, and nobody was told", "列表中有领取记录 %s（用户 %s），但未答复给任何人", c.ID, c.UserID))
		}
	}
	return judge(noPhantom, faults, dibs.Textf("%d claims are listed, %d were answered", "列表中有 %d 条领取记录，答复过 %d 条", len(e.ledger), len(owner)))
}

// unheard are the users with a press that got no answer, who may hold a claim
// without having been told.
func (e *evidence) unheard() map[string]bool {
	users := map[string]bool{}
	for i, f := range e.tally.fates {
		if f == unanswered || f == cutOff {
			users[e.plan.userID(e.plan.presses[i].user)] = true
		}
	}
	return users
}

// demand is the units that could have been granted to the users whose presses
// were decided: for each the decided requests, as far as the limit and
// dibs.MaxClaimsPerUser allow.
func (e *evidence) demand() (units int64, decided int) {
	byKey := make([]bool, e.plan.keyCount)
	byUser := map[int32]int64{}
	for i, f := range e.tally.fates {
		p := e.plan.presses[i]
		if (f == yes || f == no) && !byKey[p.key] {
			byKey[p.key] = true
			byUser[p.user]++
			decided++
		}
	}
	for _, requests := range byUser {
		units += min(requests, e.limit/e.quantity, dibs.MaxClaimsPerUser) * e.quantity
	}
	return units, decided
}

// undersell: as much was granted as stock and demand allow. When others claim
// from the campaign too, an empty stock is enough.
// Presses without an answer count as granted here, so that only what is surely
// missing is a fault.
func (e *evidence) undersell() Verdict {
	demand, decided := e.demand()
	if decided == 0 {
		return unjudged(noUndersell, byAnswers, dibs.Text{EN: "no press was decided, so there was nothing to sell", ZH: "没有任何请求得出结果，无从售卖"})
	}
	stock := e.available()
	due := min(demand, stock/e.quantity*e.quantity)
	got := e.units()
	var faults []dibs.Text
	if got+e.untold() < due {
		faults = []dibs.Text{dibs.Textf("%d too few", "少了 %d 件", due-got)}
	}
	if !e.ours && got < due {
		if e.statsErr != nil {
			return unjudged(noUndersell, byAnswers, because(e.statsErr))
		}
		if e.after.Remaining < e.quantity {
			faults = nil
		}
	}
	return judge(noUndersell, faults, dibs.Textf("%d units were granted; %d were there, and the users could have taken %d", "发放 %d 件；库存 %d 件，用户最多可领 %d 件", got, stock, demand))
}

// untold is the most units that presses without an answer may have been
// granted.
func (e *evidence) untold() (units int64) {
	for _, f := range e.tally.fates {
		if f == unanswered || f == cutOff {
			units += e.quantity
		}
	}
	return units
}

// repeated: requests sent more than once, during the load and after it, were
// granted once, and every later yes was the first one again.
func (e *evidence) repeated() Verdict {
	type first struct {
		id    string
		fresh int
	}
	byKey := map[int32]first{}
	faults := slices.Clone(e.badRepeats)
	again := int64(0)
	for _, g := range e.tally.grants {
		f, ok := byKey[g.press.key]
		if ok {
			again++
		}
		if ok && f.id != g.claim.ID {
			faults = append(faults, dibs.Textf("one request of %s was granted %s and %s", "%s 的同一请求先后获得 %s 和 %s", e.plan.userID(g.press.user), f.id, g.claim.ID))
		}
		if f.id = g.claim.ID; !g.replayed {
			f.fresh++
		}
		if f.fresh == 2 {
			faults = append(faults, dibs.Textf("one request of %s was granted twice as if it were new", "%s 的同一请求被当作新请求发放了两次", e.plan.userID(g.press.user)))
		}
		byKey[g.press.key] = f
	}
	if e.repeatsErr != nil && len(faults) == 0 {
		return unjudged(repeatsAgree, byAnswers, because(e.repeatsErr))
	}
	if len(e.unrepeated) > 0 && len(faults) == 0 {
		named := some(e.unrepeated)
		return unjudged(repeatsAgree, byAnswers, dibs.Text{
			EN: fmt.Sprintf("%d of %d requests could not be repeated: %s", len(e.unrepeated), e.repeats, named.EN),
			ZH: fmt.Sprintf("%[2]d 个请求中有 %[1]d 个未能重发：%[3]s", len(e.unrepeated), e.repeats, named.ZH),
		})
	}
	return judge(repeatsAgree, faults, dibs.Textf("%d repeats during the load and %d after it had been granted before", "压测期间 %d 次、之后 %d 次重发，均为此前已成功的请求", again, e.repeats))
}

// answered: every press got an answer that a rush explains, and every yes was
// what had been asked for.
func (e *evidence) answered() Verdict {
	faults := slices.Clone(e.tally.misfits.list)
	counts := map[fate]int{}
	for _, f := range e.tally.fates {
		counts[f]++
	}
	if n := counts[unexplained]; n > 0 {
		faults = append(faults, dibs.Textf("%d answers that nothing explains (see the outcomes)", "%d 个答复无法解释（参见各类结果）", n))
	}
	if n := counts[unanswered]; n > 0 {
		faults = append(faults, dibs.Textf("%d presses whose effect is unknown to the end", "%d 次点击直到最后仍不知结果", n))
	}
	missing := counts[unsent] + counts[cutOff]
	sent := len(e.tally.fates) - missing
	if missing > 0 && len(faults) == 0 {
		return unjudged(allAnswered, byAnswers, dibs.Textf("%d presses were not sent, or were cut off", "%d 次点击未发出或被中断", missing))
	}
	return judge(allAnswered, faults, dibs.Textf("%d presses were sent, %d answered", "发出 %d 次点击，收到 %d 次答复", sent, sent-counts[unanswered]))
}

// numbers: the campaign's numbers are what the answers add up to.
func (e *evidence) numbers() Verdict {
	switch {
	case e.statsErr != nil:
		return unjudged(numbersAgree, byAnswers, because(e.statsErr))
	case len(e.unheard()) > 0:
		return unjudged(numbersAgree, byAnswers, dibs.Text{EN: "presses without an answer may count, or not", ZH: "未收到答复的点击可能已计入，也可能没有"})
	}
	got, shown := e.units(), e.after.Granted-e.before.Granted
	var faults []dibs.Text
	if e.ours && (shown != got || e.after.Remaining != e.before.Remaining-got) || shown < got && e.after.Released == e.before.Released {
		faults = append(faults, dibs.Text{EN: "they differ", ZH: "两者不一致"})
	}
	return judge(numbersAgree, faults, dibs.Textf("answers: %d units; the campaign: %d granted more, %d of %d left",
		"答复：%d 件；活动：新发放 %d 件，剩余 %d 件，库存 %d 件", got, shown, e.after.Remaining, e.after.Stock))
}
