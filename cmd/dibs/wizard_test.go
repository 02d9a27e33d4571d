package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/redpacket"
)

// everyField is what the wizard's fields get, step by step, and what its review says of them.
var everyField = []struct {
	id, kind string
	steps    []map[string]string
	says     []string
}{
	{"sale", "sale", []map[string]string{
		{"title": "All of a sale", "comment": "for tests", "starts": "2031-05-01T12:00", "ends": "2031-05-01T13:30"},
		{"units": "40"},
		{"price": "12.50", "pay": "1.5", "late": "refund_due", "tiers": "2: 50\n5: 30", "limit": "6", "low": "4", "shards": "1"},
		{
			"room": "fifo", "rate": "120", "per": "1m", "burst": "7", "opens": "2031-05-01T11:45", "most": "5000", "ticket": "1", "lifetime": "90s", "bits": "12",
			"limits": "user 5/10s\ncampaign 500/1s leaky burst 100 wait 2s",
		},
	}, []string{"All of a sale", "May 1, 2031, 12:00", "May 1, 2031, 13:30", "CN¥12.50", "From unit 2 on\n50%", "1.5 minutes", "by arrival, 120 in 1 minute", "May 1, 2031, 11:45", "5,000", "500 in 1 second, 100 at once"}},
	{"coupon", "coupon", []map[string]string{
		{"title": "All of a coupon", "starts": "2031-05-01T12:00", "ends": "2031-05-02T12:00"},
		{"source": "codes", "count": "30", "pattern": "MAY-XXXX-XXXX"},
		{"until": "2031-06-01T00:00:30", "limit": "2"},
		{"room": "lottery", "closes": "2031-05-01T10:00", "winners": "9", "value": "the closing index", "most": "700"},
	}, []string{"MAY-XXXX-XXXX", "Jun 1, 2031, 00:00", "lottery", "May 1, 2031, 10:00", "the closing index"}},
	{"packet", "redpacket", []map[string]string{
		{"title": "All of a packet", "starts": "2031-05-01T12:00", "ends": "2031-05-01T13:00"},
		{"total": "100.00", "shares": "10", "split": "line_cut", "min": "8.90", "max": "11.00"},
		{"limit": "2", "low": "3"},
		{},
	}, []string{"CN¥100.00", "like a line cut at random", "CN¥8.90", "CN¥11.00"}},
	{"seats", "sale", []map[string]string{
		{"title": "All of the seats", "starts": "2031-05-01T12:00", "ends": "2031-05-01T13:00"},
		{"source": "items", "items": "A-1\nA-2\nB-1"},
		{"price": "80", "pay": ""},
		{},
	}, []string{"Codes or seats\n3", "CN¥80.00"}},
}

// TestWizard makes campaigns with every field of the wizard: the YAML that it saves makes the same campaign by `campaign
// apply`, and a copy is the same campaign later.
func TestWizard(t *testing.T) {
	t.Parallel()
	d := startShop(t)
	d.asAdmin()
	for _, c := range everyField {
		t.Run(c.id, func(t *testing.T) {
			s := *d
			s.pages.T = t
			page := s.console("/campaigns/new", english)
			page.fill("kind", c.kind)
			page.fill("id", c.id)
			for i, fields := range c.steps {
				// Some fields show others, so the ones that choose come first.
				for _, first := range []bool{true, false} {
					for name, value := range fields {
						if choice := strings.Contains(" source room ticket pay ", " "+name+" "); choice == first {
							page.fill(name, value)
						}
					}
				}
				page.click("Next")
				page.await(`new URLSearchParams(location.search).get("step") === "` + string(rune('2'+i)) + `"`)
			}
			s.reviewed(page, c.says)
			text := s.savedYAML(page)
			page.click("Save the draft")
			page.shows("This is a draft")
			made := s.terms(c.id)

			// What the file makes is published.
			_, err := s.admin.Campaigns.Publish(t.Context(), c.id)
			s.must(err)
			published := s.terms(c.id)
			file := filepath.Join(t.TempDir(), "campaign.yaml")
			s.must(os.WriteFile(file, []byte(strings.Replace(text, `id: "`+c.id+`"`, `id: "`+c.id+`-applied"`, 1)), 0o600))
			key := s.server.await(t, s.server.out, `Admin key +(\S+)`)[1]
			clitest.Run(t, []string{"DIBS_URL=" + s.url, "DIBS_ADMIN_KEY=" + key}, "campaign", "apply", "-f", file).Want(t, 0, c.id+"-applied")
			if applied := s.terms(c.id + "-applied"); !reflect.DeepEqual(applied, published) {
				t.Errorf("by the YAML\n%v\nby the wizard\n%v\n%s", applied, published, text)
			}

			s.copied(c.id, made)
		})
	}
	t.Run("the preview of a red packet", func(t *testing.T) {
		s := *d
		s.pages.T = t
		for _, p := range previewed {
			s.sharesAsDrawn(s.console("/campaigns/new", english), p)
		}
	})
	t.Run("a line that cannot be read", func(t *testing.T) {
		s := *d
		s.pages.T = t
		page := s.console("/campaigns/new?step=4", english)
		page.fill("limits", "user five")
		page.click("Next")
		page.click("Save the draft")
		page.shows("This line cannot be read: user five")
	})
	t.Run("a bound of shares that is no amount", func(t *testing.T) {
		s := *d
		s.pages.T = t
		s.unboundedPacket()
	})
}

// unboundedPacket: a bound that is no amount makes no packet without it.
func (s *shop) unboundedPacket() {
	s.Helper()
	page := s.console("/campaigns/new", english)
	page.fill("kind", "redpacket")
	page.fill("title", "Unbounded")
	page.fill("id", "unbounded")
	page.click("Next")
	page.fill("max", "20.555")
	page.click("5. Review")
	page.click("Save the draft")
	page.await(`!!document.querySelector(".field.wrong [name=max]")`)
	if c, err := s.admin.Campaigns.Get(s.Context(), "unbounded"); err == nil {
		s.Errorf("it was made without its bound: %+v", c.Stock)
	}
}

// copied makes a copy of a campaign, which is the same campaign later.
func (s *shop) copied(id string, made map[string]any) {
	s.Helper()
	page := s.console("/campaigns/new?copy="+id, english)
	page.await(`document.querySelector("[name=title]")?.value.startsWith("All of")`)
	page.fill("id", id+"-copied")
	page.click("5. Review")
	page.click("Save the draft")
	page.shows("This is a draft")
	copied := s.terms(id + "-copied")
	if id == "seats" {
		// They are for one campaign alone.
		for _, own := range []string{"stock", "remaining"} {
			copied[own] = made[own]
		}
	}
	if !reflect.DeepEqual(copied, made) {
		s.Errorf("copied\n%v\nmade\n%v", copied, made)
	}
}

// previewed are red packets whose bounds leave the shares much room, little, or none.
var previewed = []dibs.RedPacketSpec{
	{Total: dibs.Money{Amount: 10_000}, Count: 10, Split: dibs.DoubleMean},
	{Total: dibs.Money{Amount: 10_000}, Count: 10, Split: dibs.DoubleMean, Min: 1, Max: 1100},
	{Total: dibs.Money{Amount: 10_000}, Count: 10, Split: dibs.DoubleMean, Min: 900, Max: 5000},
	{Total: dibs.Money{Amount: 10_000}, Count: 7, Split: dibs.LineCut},
	{Total: dibs.Money{Amount: 200}, Count: 100, Split: dibs.LineCut},
	{Total: dibs.Money{Amount: 10_000}, Count: 7, Split: dibs.LineCut, Min: 500, Max: 1600},
	{Total: dibs.Money{Amount: 10_000}, Count: 10, Split: dibs.LineCut, Min: 100, Max: 1000},
	{Total: dibs.Money{Amount: 10_000}, Count: 3, Split: dibs.Equal},
	{Total: dibs.Money{Amount: 500}, Count: 1, Split: dibs.LineCut, Max: 500},
}

// drawings is how many drawings the browser's least and greatest shares are taken from, and the server's.
const drawings = 1000

// sharesAsDrawn holds the browser's drawings of a red packet against those of the server: all shares sum to the total and keep
// the bounds, and the least and the greatest share are as great on average.
func (s *shop) sharesAsDrawn(page *tab, p dibs.RedPacketSpec) {
	s.Helper()
	p = p.WithDefaults()
	p.Total.Currency = "CNY"
	raw, err := json.Marshal(p)
	s.must(err)
	shown := tells[[]float64](page, fmt.Sprintf(`(async () => {
		const { draw } = await import(document.querySelector("script[type=module]").src.replace("main.js", "shares.js"));
		const p = { max: 0, ...%s }, total = p.total.amount, ends = [0, 0];
		for (let n = 0; n < %d; n++) {
			const all = draw({ ...p, total }), least = Math.min(...all), most = Math.max(...all);
			if (all.length !== p.count || all.reduce((a, b) => a + b) !== total || least < p.min || p.max && most > p.max || !all.every(Number.isInteger)) throw new Error(all.join(" "));
			ends[0] += least;
			ends[1] += most;
		}
		return ends;
	})()`, raw, drawings))
	var drawn [2]int64
	for range drawings {
		all, err := redpacket.Split(p, nil)
		s.must(err)
		drawn[0] += slices.Min(all)
		drawn[1] += slices.Max(all)
	}
	// The mean of so many drawings varies by less than a fiftieth of a share.
	near := float64(p.Total.Amount) / float64(p.Count) / 5
	for i, what := range []string{"least", "greatest"} {
		if by, of := shown[i]/drawings, float64(drawn[i])/drawings; math.Abs(by-of) > near {
			s.Errorf("%+v: the %s share is %.1f in the preview, %.1f of the server", p, what, by, of)
		}
	}
}

// reviewed looks at the last step of the wizard: what will be made stands there in words, and the YAML below, closed.
func (s *shop) reviewed(page *tab, says []string) {
	s.Helper()
	page.await(`!!document.querySelector("#review dl")`)
	text := tells[string](page, `document.querySelector("#review dl").innerText`)
	for _, want := range says {
		if !strings.Contains(text, want) {
			s.Errorf("the review lacks %q:\n%s", want, text)
		}
	}
	if raw := regexp.MustCompile(`\d{4}-\d\d-\d\dT|amount|undefined|NaN|\[object`).FindString(text); raw != "" {
		s.Errorf("the review has %q:\n%s", raw, text)
	}
	if tells[bool](page, `document.querySelector("#review details").open`) {
		s.Error("the YAML is open")
	}
}

// savedYAML presses the button that saves the YAML, and returns the file. It is what the review shows.
func (s *shop) savedYAML(page *tab) string {
	s.Helper()
	tells[bool](page, `(() => { const real = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((t) => (window.kept = t)); return real(b); }; return true; })()`)
	page.click("Save as YAML")
	page.await(`!!window.kept`)
	text := tells[string](page, "window.kept")
	if shown := tells[string](page, `document.querySelector("pre.yaml").textContent`); shown != text {
		s.Errorf("the review shows\n%s\nand saves\n%s", shown, text)
	}
	return text
}

// terms are what a campaign was made of, as the API has it. Moments of its window are told from its start on.
func (s *shop) terms(id string) map[string]any {
	s.Helper()
	c, err := s.admin.Campaigns.Get(s.Context(), id)
	s.must(err)
	raw, err := json.Marshal(c)
	s.must(err)
	var v map[string]any
	s.must(json.Unmarshal(raw, &v))
	for _, own := range []string{"id", "version", "created_at", "updated_at"} {
		delete(v, own)
	}
	later := func(of map[string]any, names ...string) {
		for _, name := range names {
			if text, ok := of[name].(string); ok {
				at, err := time.Parse(time.RFC3339, text)
				s.must(err)
				of[name] = at.Sub(c.StartsAt).String()
			}
		}
	}
	later(v, "starts_at", "ends_at")
	if gate, ok := v["gate"].(map[string]any); ok {
		if room, ok := gate["room"].(map[string]any); ok {
			later(room, "opens_at", "registration_closes_at")
		}
	}
	return v
}
