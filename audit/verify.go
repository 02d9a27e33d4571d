package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// Verify compares the engine with the ledger, campaign by campaign, promise by
// promise. It settles what was granted before the call first. Without ids it
// checks every campaign that was ever published.
func (s *Audit) Verify(ctx context.Context, campaignIDs ...string) (*Report, error) {
	campaigns, err := s.toVerify(ctx, campaignIDs)
	if err != nil {
		return nil, err
	}
	report := &Report{OK: true, Campaigns: []CampaignReport{}}
	books := make(books)
	for _, c := range campaigns {
		r, _, err := s.verifyOne(ctx, c, books)
		if err != nil {
			return nil, fmt.Errorf("dibs: verifying campaign %s: %w", c.ID, err)
		}
		report.OK = report.OK && r.OK
		report.Campaigns = append(report.Campaigns, *r)
	}
	return report, nil
}

func (s *Audit) toVerify(ctx context.Context, ids []string) ([]*dibs.Campaign, error) {
	var campaigns []*dibs.Campaign
	for _, id := range ids {
		c, err := s.campaignToVerify(ctx, id)
		if err != nil {
			return nil, err
		}
		campaigns = append(campaigns, c)
	}
	page := dibs.Page{Limit: dibs.MaxPage}
	for len(ids) == 0 {
		list, err := s.ledger.Campaigns(ctx, []dibs.State{dibs.Published, dibs.PausedState, dibs.EndedState, dibs.RegularState}, "", page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			campaigns = append(campaigns, &list.Items[i])
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	return campaigns, nil
}

// regularPrefix begins the name of a product's regular orders, which no
// campaign's id can have.
const regularPrefix = "product:"

// campaignToVerify is a campaign by its id, or `product:ID` for the regular
// orders of a product.
func (s *Audit) campaignToVerify(ctx context.Context, id string) (*dibs.Campaign, error) {
	product, regular := strings.CutPrefix(id, regularPrefix)
	if !regular {
		// Another node may have given it more shards since this one read it.
		return s.registry.Now(ctx, id)
	}
	c, err := s.ledger.RegularCampaign(ctx, product)
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, dibs.Fail(dibs.NotFound, dibs.Textf("there is no product %[1]s, or it was never ordered", "没有商品 %[1]s，或该商品从未被订购", product))
	}
	return c, err
}

// books is what does not fit in the accounts of a currency, counted once for all
// red packets of a verification: they share the accounts.
type books map[string][]string

func (s *Audit) balance(ctx context.Context, c *dibs.Campaign, b books) ([]string, error) {
	if c.Kind != dibs.RedPacket {
		return nil, nil
	}
	currency := c.Packet.Total.Currency
	bad, counted := b[currency]
	if !counted {
		var err error
		if bad, err = s.ledger.AuditAccounts(ctx, currency); err != nil {
			return nil, err
		}
		b[currency] = bad
	}
	return bad, nil
}

// engineCount is what the engine has of a campaign at one moment.
type engineCount struct {
	live      bool
	remaining int64
	granted   int64
	at        []dibs.Cursor
}

// verifyAttempts is how often a campaign is counted again because claims came
// in between the engine's count and the ledger's.
const verifyAttempts = 20

// finding is what was found of one campaign.
type finding struct {
	audit  *CampaignAudit
	engine engineCount
	// exact says that both describe the same moment.
	exact bool
	// halted says that what was granted is not settled, and will not be.
	halted bool
	// lost are parts of the journal that neither it nor the ledger has any more.
	lost []live.LostPart
	// waiting counts commands that the engine does not take.
	waiting int
	claims  comparison
	// accounts is what does not fit in the accounts of a red packet's currency.
	accounts []string
	// currency is that of the campaign's money; "" where nothing is paid.
	currency string
}

// held is the units granted and not released by the ledger, with those that it
// could not settle.
func (f *finding) held() int64 { return f.audit.Held + f.audit.QuarantinedUnits }

// verifyOne audits a campaign.
func (s *Audit) verifyOne(ctx context.Context, c *dibs.Campaign, b books) (*CampaignReport, *finding, error) {
	f, err := s.examine(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if f.accounts, err = s.balance(ctx, c, b); err != nil {
		return nil, nil, err
	}
	r := &CampaignReport{
		CampaignID: c.Name(), OK: true, Stock: f.audit.Stock, Remaining: f.audit.StockLeft,
		Granted: f.held(), Claims: f.audit.Claims, Quarantined: f.audit.Quarantined, Promises: f.promises(),
	}
	for _, p := range r.Promises {
		r.OK = r.OK && p.Held
	}
	return r, f, nil
}

// examine counts a campaign. Claims may go on meanwhile: the ledger is compared
// with an engine that did not move between two counts; after too many attempts,
// what the two have is compared by order alone.
func (s *Audit) examine(ctx context.Context, c *dibs.Campaign) (*finding, error) {
	f := &finding{currency: currencyOf(c)}
	var err error
	if f.lost, err = s.loader.LostParts(ctx, c); err != nil {
		return nil, err
	}
	if len(f.lost) > 0 {
		// Nothing can be settled, and the engine is not to be opened for it.
		f.halted = true
		f.audit, err = s.ledger.Audit(ctx, c)
		return f, err
	}
	// The reason why this node could not load it may be over.
	s.loader.TryAgain(c)
	var patience live.Patience
	for range verifyAttempts {
		var err error
		if f.waiting, err = s.commandsWaiting(ctx, c); err != nil {
			return nil, err
		}
		before, err := s.countEngine(ctx, c, &patience, true)
		if f.halted = errors.Is(err, live.ErrStill); err != nil && !f.halted {
			return nil, err
		}
		if f.audit, err = s.ledger.Audit(ctx, c); err != nil {
			return nil, err
		}
		if f.engine, err = s.countEngine(ctx, c, &patience, false); err != nil {
			return nil, err
		}
		// The ledger has moved the units that wait in the outbox, and the engine has not.
		f.exact = !f.halted && slices.Equal(before.at, f.engine.at) && f.audit.Waiting == 0
		if f.exact || f.halted || f.waiting > 0 {
			break
		}
	}
	return f, s.compareClaims(ctx, c, &f.claims)
}

// countEngine counts a campaign in the engine; settle brings the ledger up to
// that count. Shards that are being opened are waited for with patience.
func (s *Audit) countEngine(ctx context.Context, c *dibs.Campaign, patience *live.Patience, settle bool) (engineCount, error) {
	var n engineCount
	l, err := s.loader.EnsureLive(ctx, c)
	if err != nil || l == nil {
		return n, err
	}
	if len(l.Shards) < c.Shards && !s.registry.Sells(c) {
		// The last shards were not opened before the end, and the engine has nothing of them.
		return n, nil
	}
	n.live = true
	for _, t := range l.Shards {
		if settle {
			if err := s.settler.Compare(ctx, t, patience); err != nil {
				return n, dibs.AsUnavailable(err, dibs.EffectNone)
			}
		}
		st, err := s.opened(ctx, c, t.ID, patience)
		if errors.Is(err, dibs.ErrNotOpen) && !s.registry.Sells(c) {
			// It has left the engine, by another node.
			return engineCount{}, nil
		}
		if err != nil {
			return n, dibs.AsUnavailable(err, dibs.EffectNone)
		}
		n.remaining += st.Remaining
		n.granted += st.Granted
		n.at = append(n.at, dibs.Cursor{Epoch: st.Head.Epoch, Seq: st.Head.Seq + uint32(st.Queued)})
		if settle {
			if err := s.settler.SettleTo(ctx, t, st.Head); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// opened is what the engine has of a shard. One that is just being loaded, by
// this node or another, is waited for with patience.
func (s *Audit) opened(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, patience *live.Patience) (dibs.ShardStats, error) {
	for {
		st, err := s.engine.Stats(ctx, id)
		if !errors.Is(err, dibs.ErrNotOpen) || !s.registry.Sells(c) || !patience.Wait(ctx) {
			return st, err
		}
	}
}

// promises judges what was found.
func (f *finding) promises() []PromiseCheck {
	a, e, held := f.audit, &f.engine, f.held()
	comparable := e.live && f.exact
	return []PromiseCheck{
		check("no oversell", held <= a.Stock && a.StockLeft >= 0,
			sentence("%d of %d units are held, %d left", "占用 %d 件，库存 %d 件，剩余 %d 件", held, a.Stock, a.StockLeft)),
		check("the limit holds", len(a.OverLimit) == 0,
			sentence("users over the limit: %s", "超过限领的用户：%s", listed(plain(a.OverLimit)))),
		check("a yes is kept", f.kept() && (!comparable || e.granted == held),
			sentence("%s; %s%s%s", "%s；%s%s%s", e.beside(unitsGranted, e.granted, held, f), f.claims.text(), f.aside(), f.gone())),
		check("no phantom", len(a.BadItems) == 0 && a.BeyondPosition == 0,
			sentence("items at odds with claims: %s; claims past the settled position: %d", "与领取记录不符的物品：%s；超出结算位置的领取记录：%d 条",
				listed(plain(a.BadItems)), a.BeyondPosition)),
		check("stock comes back once", a.Stock == a.StockLeft+a.Held+a.Withheld && len(a.BadTotals) == 0,
			sentence("%d in stock = %d left + %d held; sums at odds with rows: %s", "库存 %d = 剩余 %d + 占用 %d；与明细不符的汇总：%s",
				a.Stock, a.StockLeft, a.Held+a.Withheld, listed(plain(a.BadTotals)))),
		f.money(),
		check("no undersell", f.waiting == 0 && (!comparable || e.remaining == a.StockLeft),
			sentence("%s%s", "%s%s", e.beside(unitsLeft, e.remaining, a.StockLeft, f), f.stuck())),
	}
}

// check is the verdict of one promise.
func check(promise string, held bool, detail dibs.Text) PromiseCheck {
	return PromiseCheck{Promise: promise, Held: held, Detail: detail.EN, DetailZH: detail.ZH}
}

// kept reports whether every grant that was looked at is where it belongs.
func (f *finding) kept() bool { return f.audit.Quarantined == 0 && !f.halted && f.claims.ok() }

// stuck says what waits for the engine.
func (f *finding) stuck() dibs.Text {
	if f.waiting == 0 {
		return dibs.Text{}
	}
	return dibs.Textf("; changes of stock that the engine does not take: %d, the log says why", "；引擎未接受的库存变更：%d 项，原因见运行日志", f.waiting)
}

// commandsWaiting sends what waits for the engine and counts what it does not
// take of a campaign.
func (s *Audit) commandsWaiting(ctx context.Context, c *dibs.Campaign) (int, error) {
	err := s.outbox.Send(ctx)
	if err == nil {
		return 0, nil
	}
	s.log.Warn("commands wait for the engine", "err", err)
	return s.commandsOf(ctx, c)
}

// commandsOf counts the commands of a campaign that wait for the engine. Older ones of other
// campaigns may be more than a page.
func (s *Audit) commandsOf(ctx context.Context, c *dibs.Campaign) (n int, err error) {
	for after := int64(0); ; {
		commands, err := s.ledger.Commands(ctx, after, live.OutboxPage)
		if err != nil {
			return 0, err
		}
		for i := range commands {
			if after = commands[i].ID; commands[i].Shard.Campaign == c.Number {
				n++
			}
		}
		if len(commands) < live.OutboxPage {
			return n, nil
		}
	}
}

// aside says what is in quarantine.
func (f *finding) aside() dibs.Text {
	if f.audit.Quarantined == 0 {
		return dibs.Text{}
	}
	return dibs.Textf("; in quarantine: %d, first %s", "；隔离中：%d 条，前几条：%s", f.audit.Quarantined, strings.Join(f.audit.InQuarantine, "; "))
}

// gone says which claims nobody knows any more.
func (f *finding) gone() dibs.Text {
	var gone dibs.Text
	for i := range f.lost {
		p := &f.lost[i]
		gone.EN += fmt.Sprintf("; %s: the ledger was restored from an older backup, and nothing is sold until somebody decides; see dibs verify --repair", p)
		gone.ZH += fmt.Sprintf("；分片 %s 的账本止于 %s，此后到 %s 的日志已丢失：账本恢复自较旧的备份，作出决定之前停止售卖，参见 dibs verify --repair", p.Shard, p.From, p.To)
	}
	return gone
}

// The units that engine and ledger are compared by.
var (
	unitsGranted = dibs.Text{EN: "units granted", ZH: "已发放"}
	unitsLeft    = dibs.Text{EN: "units left", ZH: "剩余"}
)

// beside says what engine and ledger have of something; what names it.
func (e *engineCount) beside(what dibs.Text, engine, ledger int64, f *finding) dibs.Text {
	switch {
	case len(f.lost) > 0:
		return sentence("the ledger has %[2]d %[1]s", "账本%[1]s %[2]d 件", what, ledger)
	case f.halted:
		return sentence("settling stands still, the log says why: the engine has %[2]d %[1]s, the ledger %[3]d",
			"结算已停止，原因见运行日志：引擎%[1]s %[2]d 件，账本%[1]s %[3]d 件", what, engine, ledger)
	case !e.live:
		return sentence("the ledger has %[2]d %[1]s; the engine has nothing of it any more", "账本%[1]s %[2]d 件；引擎中已无相应数据", what, ledger)
	case !f.exact:
		return sentence("claims went on while counting: engine %[2]d %[1]s, ledger %[3]d",
			"清点时仍有领取：引擎%[1]s %[2]d 件，账本%[1]s %[3]d 件", what, engine, ledger)
	}
	return sentence("the engine has %[2]d %[1]s, the ledger %[3]d", "引擎%[1]s %[2]d 件，账本%[1]s %[3]d 件", what, engine, ledger)
}

// currencyOf returns the currency of a campaign's money; "" where nothing is paid.
func currencyOf(c *dibs.Campaign) string {
	switch {
	case c.Packet != nil:
		return c.Packet.Total.Currency
	case c.Price != nil:
		return c.Price.Currency
	}
	return ""
}

// sum writes an amount of the campaign's currency as people write it.
// Without a price nothing is paid, and the amount is a zero without a currency.
func (f *finding) sum(minor int64) string {
	switch {
	case minor < 0:
		// A ledger that somebody changed by hand may hold less than nothing.
		return "-" + f.sum(-minor)
	case f.currency == "":
		return strconv.FormatInt(minor, 10)
	}
	return dibs.Money{Amount: minor, Currency: f.currency}.Digits() + " " + f.currency
}

// money judges the money of a campaign: what was paid for its claims, or what a
// red packet's shares came to.
func (f *finding) money() PromiseCheck {
	const promise = "money is conserved"
	a := f.audit
	if a.Packet == nil {
		return check(promise, len(a.BadLives) == 0,
			sentence("%s paid, %s refunded, %s due back; claims at odds with their events: %s", "已支付 %s，已退款 %s，待退回 %s；与事件不符的领取记录：%s",
				f.sum(a.Paid), f.sum(a.Refunded), f.sum(a.Due), listed(plain(a.BadLives))))
	}
	p := a.Packet
	bad := slices.Concat(p.Bad, f.accounts, a.BadLives)
	return check(promise, len(bad) == 0 && p.Shares == p.Total && p.Funded == p.Credited+p.Returned+p.Escrow,
		sentence("%d shares sum to %s of %s; %s funded = %s credited + %s returned + %s in escrow; claims still to be credited: %d; at odds: %s",
			"%d 份共 %s，总额 %s；注入 %s = 已入账 %s + 已退回 %s + 托管中 %s；待入账的领取记录：%d 条；不一致：%s",
			p.Count, f.sum(p.Shares), f.sum(p.Total), f.sum(p.Funded), f.sum(p.Credited), f.sum(p.Returned), f.sum(p.Escrow), p.Waiting, listed(plain(bad))))
}
