package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/live"
)

// notReady is what is shown of a dependency that cannot do its work.
var notReady = map[string]dibs.Text{
	"engine":    {EN: "the engine cannot make claims durable; the log says why", ZH: "引擎无法持久保存领取记录，原因见运行日志"},
	"ledger":    {EN: "the ledger does not answer; the log says why", ZH: "账本没有响应，原因见运行日志"},
	"campaigns": {EN: "%s could not be loaded into the engine, or not be settled; the log says why", ZH: "%s未能载入引擎，或未能结算，原因见运行日志"},
	"settling":  {EN: "the journal of %s cannot be settled into the ledger; the log says why", ZH: "%s的日志无法结算到账本，原因见运行日志"},
}

// whyNotReady is what is shown of a dependency by its error. It names the campaign that
// stands still, which is public; what else the error says may name hosts and paths.
func whyNotReady(name string, err error) dibs.Text {
	which := dibs.Text{EN: "a campaign", ZH: "有活动"}
	if c := (*live.CampaignError)(nil); errors.As(err, &c) {
		which = dibs.Text{EN: "campaign " + c.Campaign, ZH: "活动 " + c.Campaign + " "}
	}
	why := notReady[name]
	switch {
	case errors.Is(err, dibs.ErrElsewhere):
		why = dibs.Text{
			EN: "%s is open on another server of the engine, which has a later history than this one",
			ZH: "%s已在引擎的另一台服务器上打开，其历史比本机更新",
		}
	case errors.Is(err, dibs.ErrGap):
		why = dibs.Text{
			EN: "the ledger of %s is older than its journal: restore a newer backup, or decide with dibs verify --repair --older-ledger continue|end",
			ZH: "%s的账本比日志旧：请恢复较新的备份，或用 dibs verify --repair --older-ledger continue|end 作出决定",
		}
	case errors.Is(err, live.ErrOtherDeployment):
		why = dibs.Text{
			EN: "%s is on a deployment of the engine that this node's --engine does not name",
			ZH: "%s位于本节点 --engine 未列出的引擎部署上",
		}
	}
	return dibs.Text{EN: strings.Replace(why.EN, "%s", which.EN, 1), ZH: strings.Replace(why.ZH, "%s", which.ZH, 1)}
}

// pingTimeout bounds the question to each dependency.
const pingTimeout = 2 * time.Second

// Health asks each dependency. A ledger that does not answer makes the service
// unready, although claims go on while the journal has room. It asks on when the caller
// does not wait any more: the log would call unready what was only not waited for.
func (s *Service) Health(ctx context.Context) api.HealthView {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	h := api.HealthView{Ready: true, Durability: s.Durability(), Dependencies: map[string]api.DependencyView{}}
	ledger := make(chan error, 1)
	go func() { ledger <- s.cfg.Ledger.Database.Ping(ctx) }()
	all, err := s.askEngine(ctx)
	var away map[int]error
	if h.Deployments = upOf(all, err); err == nil {
		away = maps.Clone(all)
		maps.DeleteFunc(away, func(number int, err error) bool {
			if err == nil {
				s.unready.Over(strconv.Itoa(number), "a deployment of the engine is ready again", "deployment", number)
			}
			return err == nil
		})
	}
	for name, err := range map[string]error{
		"engine": err, "ledger": <-ledger, "settling": s.Live.SettlingHealth(away), "campaigns": s.Live.CampaignsHealth(away),
	} {
		d := api.DependencyView{OK: true}
		if err == nil {
			s.unready.Over(name, "a dependency is ready again", "dependency", name)
		} else {
			// The cause may name hosts and paths: it goes to the log.
			s.unready.Is(name, "a dependency is not ready", err, "dependency", name)
			d.Fail(whyNotReady(name, err))
			h.Ready = false
		}
		if name == "engine" {
			d.Warn(s.warnAway(away))
			s.showLevel(&d)
		}
		h.Dependencies[name] = d
	}
	h.NameTheCause()
	if n := s.Live.Quarantine.Count(); n > 0 {
		d := h.Dependencies["settling"]
		d.Warn(dibs.Textf("%d journal entries are in quarantine: dibs verify lists them, dibs verify --repair tries them again",
			"%d 条日志记录处于隔离中：dibs verify 可列出，dibs verify --repair 可重试", n))
		h.Dependencies["settling"] = d
	}
	if n := s.Funds.Stuck(); n > 0 {
		d := h.Dependencies["campaigns"]
		d.Warn(dibs.Textf("%d red packets do not get on: their funds say why, in dibs campaign show",
			"%d 个红包停滞不前：原因见 dibs campaign show 中的资金部分", n))
		h.Dependencies["campaigns"] = d
	}
	if d, ok := s.Events.Health(ctx); ok {
		h.Dependencies["events"] = d
	}
	h.JournalBacklog, h.SettleLagMS = s.Live.Backlog(ctx)
	if s.nearlyFull(h.JournalBacklog) {
		d := h.Dependencies["settling"]
		d.Fail(dibs.Textf("%d entries of a campaign wait to be settled; at %d its claims are refused",
			"有活动积压 %d 条待结算记录，达到 %d 条时将拒绝领取", h.JournalBacklog, s.cfg.MaxBacklog))
		h.Dependencies["settling"], h.Ready = d, false
	}
	return h
}

// askEngine asks the engine whether it can decide claims. Of one that has several
// deployments it returns the answer of each; the error is that of all of them, since the
// node serves the campaigns of those that can.
func (s *Service) askEngine(ctx context.Context) (all map[int]error, err error) {
	ask := s.engine.Abilities().Deployments
	if ask == nil {
		return nil, s.engine.Ping(ctx)
	}
	all = ask(ctx)
	errs := slices.Collect(maps.Values(all))
	if slices.Contains(errs, nil) {
		return all, nil
	}
	return all, errors.Join(errs...)
}

// upOf reports of each deployment whether it can decide claims, by its answer. An engine
// that is one is number 1, with the answer of all.
func upOf(answers map[int]error, all error) map[int]bool {
	if answers == nil {
		return map[int]bool{1: all == nil}
	}
	up := make(map[int]bool, len(answers))
	for number, err := range answers {
		up[number] = err == nil
	}
	return up
}

// warnAway says which deployments of the engine cannot decide claims, and why to the log.
func (s *Service) warnAway(away map[int]error) dibs.Text {
	var names, numbers, unfit []string
	for _, number := range slices.Sorted(maps.Keys(away)) {
		id := strconv.Itoa(number)
		s.unready.Is(id, "a deployment of the engine is not ready", away[number], "deployment", number)
		names, numbers = append(names, "deployment "+id), append(numbers, id)
		if errors.Is(away[number], live.ErrUnfit) {
			unfit = append(unfit, id)
		}
	}
	if len(names) == 0 {
		return dibs.Text{}
	}
	why := dibs.Text{
		EN: strings.Join(names, ", ") + " of the engine cannot decide claims: those of its campaigns are refused as unavailable, others go on; the log says why",
		ZH: "引擎部署 " + strings.Join(numbers, "、") + " 无法判定领取请求：其上的活动答复 unavailable，其他活动照常，原因见运行日志",
	}
	if len(unfit) > 0 {
		why.EN += " (what answers as " + strings.Join(unfit, ", ") + " cannot be used)"
		why.ZH += "（部署 " + strings.Join(unfit, "、") + " 有响应，但不能使用）"
	}
	return why
}

// The parts of the most entries that may wait above which a node is not ready,
// and below which it is again.
const (
	backlogHigh = 0.9
	backlogLow  = 0.75
)

// nearlyFull reports whether claims are about to be refused because too many wait
// to be settled.
func (s *Service) nearlyFull(backlog int64) bool {
	part := float64(backlog) / float64(s.cfg.MaxBacklog)
	near := part >= backlogHigh || s.backlogNear.Load() && part >= backlogLow
	s.backlogNear.Store(near)
	return near
}

// Durability names the level at which claims are answered, one of Levels.
func (s *Service) Durability() string {
	if s.cfg.Ledgered {
		return dibs.LevelLedgered
	}
	return s.engine.Durability()
}

// level is the level that claims are answered at when all is well, and the settings
// that it depends on; none where the engine does not watch them.
func (s *Service) level() (string, []dibs.Finding) {
	look := s.engine.Abilities().Level
	if look == nil {
		return s.Durability(), nil
	}
	level, settings := look()
	if s.cfg.Ledgered {
		level = dibs.LevelLedgered
	}
	return level, settings
}

// showLevel adds to what is shown of the engine which settings take its level away.
func (s *Service) showLevel(d *api.DependencyView) {
	level, settings := s.level()
	var lost, lostZH []string
	for _, f := range settings {
		if !f.OK() {
			lost, lostZH = append(lost, f.String()), append(lostZH, fmt.Sprintf("%s 为 %s，应为 %s", f.Subject, f.Found, f.Wanted))
		}
	}
	which := dibs.Text{EN: ": " + strings.Join(lost, "; "), ZH: "：" + strings.Join(lostZH, "；")}
	switch {
	case len(lost) == 0:
	case d.Warning != "":
		d.Warn(dibs.Text{EN: d.Warning + which.EN, ZH: d.WarningZH + which.ZH})
	case d.OK:
		d.Warn(dibs.Text{
			EN: "the level " + level + " is not given, and claims are granted all the same" + which.EN,
			ZH: "未达到级别 " + level + "，仍照常发放" + which.ZH,
		})
	default:
		d.Fail(dibs.Text{EN: "claims are refused, since the level " + level + " is not given" + which.EN, ZH: "未达到级别 " + level + "，因此拒绝领取" + which.ZH})
	}
}
