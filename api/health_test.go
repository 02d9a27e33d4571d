package api

import (
	"maps"
	"testing"

	"github.com/dibs-dev/dibs"
)

// up and down are dependencies that do their work and do not; down says why by itself.
var (
	up   = DependencyView{OK: true}
	down = DependencyView{Error: "of its own"}
)

// TestNameTheCause: a check that needs the engine or the ledger says that it waits for that one, and keeps its own reason while
// both are there. A check that is well says nothing, and no dependency is added.
func TestNameTheCause(t *testing.T) {
	waits := func(cause string) DependencyView {
		return DependencyView{Error: "waits for the " + cause, ErrorZH: map[string]string{"engine": "等待引擎恢复", "ledger": "等待账本恢复"}[cause]}
	}
	for _, c := range []struct {
		name               string
		engine, ledger     DependencyView
		settling, campaign DependencyView
		wantSettling       DependencyView
		wantCampaigns      DependencyView
	}{
		{"all is well", up, up, up, up, up, up},
		{"faults of their own", up, up, down, down, down, down},
		{"the engine is away", down, up, down, down, waits("engine"), waits("engine")},
		{"the ledger is away", up, down, down, down, waits("ledger"), waits("ledger")},
		// Nothing is granted without the engine: it comes first.
		{"both are away", down, down, down, down, waits("engine"), waits("engine")},
		{"only the settling waits", up, down, down, up, waits("ledger"), up},
		{"only the campaigns wait", down, up, up, down, up, waits("engine")},
		{
			"a warning stays", up, down, DependencyView{OK: true, Warning: "w"}, DependencyView{Error: "e", Warning: "w"},
			DependencyView{OK: true, Warning: "w"}, DependencyView{Error: "waits for the ledger", ErrorZH: "等待账本恢复", Warning: "w"},
		},
	} {
		h := HealthView{Dependencies: map[string]DependencyView{
			"engine": c.engine, "ledger": c.ledger, "settling": c.settling, "campaigns": c.campaign, "events": down,
		}}
		h.NameTheCause()
		want := map[string]DependencyView{
			"engine": c.engine, "ledger": c.ledger, "settling": c.wantSettling, "campaigns": c.wantCampaigns, "events": down,
		}
		if !maps.Equal(h.Dependencies, want) {
			t.Errorf("%s: %+v, want %+v", c.name, h.Dependencies, want)
		}
	}
}

// TestSetOverload: a node is overloaded when it says so, unless claims only pile up because what they wait for is away; a
// full memory counts in any case. It never makes ready what is not.
func TestSetOverload(t *testing.T) {
	for _, c := range []struct {
		name             string
		level            string
		engine, ledger   DependencyView
		full, over       bool
		ready            bool
		wantOver, wantOK bool
	}{
		{"nothing to do", dibs.LevelDurable, up, up, false, false, true, false, true},
		{"too much", dibs.LevelDurable, up, up, false, true, true, true, false},
		{"the engine is away", dibs.LevelDurable, down, up, false, true, false, false, false},
		{"the ledger is away, and claims do not wait for it", dibs.LevelDurable, up, down, false, true, true, true, false},
		{"the ledger is away, and claims wait for it", dibs.LevelLedgered, up, down, false, true, false, false, false},
		{"claims wait for a ledger that is there", dibs.LevelLedgered, up, up, false, true, true, true, false},
		{"the memory is full as well", dibs.LevelDurable, down, up, true, true, false, true, false},
		{"not ready, and little to do", dibs.LevelDurable, up, up, false, false, false, false, false},
	} {
		h := HealthView{Ready: c.ready, Durability: c.level, Dependencies: map[string]DependencyView{"engine": c.engine, "ledger": c.ledger}}
		given := OverloadView{Overloaded: c.over, MemoryFull: c.full, InFlight: 7}
		if c.over {
			given.Why = "too many"
		}
		h.SetOverload(given)
		want := given
		if want.Overloaded = c.wantOver; !c.wantOver {
			want.Why = ""
		}
		if h.Overload == nil || *h.Overload != want || h.Ready != c.wantOK {
			t.Errorf("%s: ready %v, %+v; want %v, %+v", c.name, h.Ready, h.Overload, c.wantOK, want)
		}
	}
}

// TestHealthIn: errors and warnings are told in the caller's language, and in English where they have no Chinese. The view
// itself, which is shared by callers, stays as it is.
func TestHealthIn(t *testing.T) {
	var d DependencyView
	d.Fail(dibs.Text{EN: "is away", ZH: "不可用"})
	d.Warn(dibs.Text{EN: "look", ZH: "请检查"})
	h := HealthView{Dependencies: map[string]DependencyView{"engine": d, "ledger": down, "events": up}}
	if en := h.In(false).Dependencies; en["engine"].Error != "is away" || en["engine"].Warning != "look" || en["engine"].OK {
		t.Errorf("in English: %+v", en)
	}
	if zh := h.In(true).Dependencies; zh["engine"].Error != "不可用" || zh["engine"].Warning != "请检查" || zh["ledger"] != down || zh["events"] != up {
		t.Errorf("in Chinese: %+v", zh)
	}
	if h.Dependencies["engine"] != d {
		t.Errorf("the view became %+v", h)
	}
}
