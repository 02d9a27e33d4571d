package httpapi_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/api"
)

// asked counts the reads of campaigns and products that the ledger may serve.
type asked struct {
	httpapi.Catalog
	n atomic.Int64
}

func (a *asked) List(ctx context.Context, public bool, product string, p dibs.Page) (dibs.List[dibs.Campaign], error) {
	a.n.Add(1)
	return a.Catalog.List(ctx, public, product, p)
}

func (a *asked) CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (api.CampaignView, error) {
	a.n.Add(1)
	return a.Catalog.CampaignView(ctx, c, admin)
}

// eventually asks until the answer is as wanted.
func (s *stack) eventually(what, path string, good func(answer) bool, headers ...string) {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for a := s.ask("GET", path, "", headers...); !good(a); a = s.ask("GET", path, "", headers...) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
	}
}

// shows tells answers that have all the parts.
func shows(parts ...string) func(answer) bool {
	return func(a answer) bool {
		for _, p := range parts {
			if !strings.Contains(a.body, p) {
				return false
			}
		}
		return a.status == http.StatusOK
	}
}

// mugs publishes a campaign of a product that there is, and looks at the draft
// before.
func (s *stack) mugs() {
	s.t.Helper()
	ctx := context.Background()
	_, err := s.admin.Products.Create(ctx, dibs.ProductSpec{ID: "mug", Name: "A mug"}, "")
	must(s.t, err)
	units, product := int64(5), "mug"
	_, err = s.admin.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "mugs", Kind: dibs.Sale, Title: "Mugs", ProductID: &product,
		StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Units: &units},
	}, "")
	must(s.t, err)
	for _, path := range []string{"/v1/campaigns/mugs", "/c/mugs"} {
		if a := s.ask("GET", path, ""); a.status != http.StatusNotFound {
			s.t.Errorf("a draft at %s: %d", path, a.status)
		}
	}
	_, err = s.admin.Campaigns.Publish(ctx, "mugs")
	must(s.t, err)
}

// Every change is seen, and nothing else is asked for: neither the
// stock, nor the clock, nor the number of readers make the ledger work.
func TestPageCache(t *testing.T) {
	ctx := context.Background()
	counted := &asked{}
	s := newStack(t, func(s *httpapi.Services) { counted.Catalog, s.Catalog = s.Catalog, counted })
	s.mugs()
	s.eventually("published", "/v1/campaigns/mugs", shows(`"remaining":5`, `"A mug"`, `"state":"published"`))
	s.eventually("listed", "/v1/campaigns", shows(`"remaining":5`, `"A mug"`))
	before := counted.n.Load()
	_, err := s.service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "mugs", UserID: "42"})
	must(t, err)
	s.eventually("a claim", "/v1/campaigns/mugs", shows(`"remaining":4`))
	s.eventually("a claim, in the list", "/v1/campaigns", shows(`"remaining":4`))
	for range 50 {
		s.ask("GET", "/v1/campaigns/mugs", "")
		s.ask("GET", "/v1/campaigns", "")
		s.ask("GET", "/c/mugs", "")
	}
	if n := counted.n.Load() - before; n != 0 {
		t.Errorf("the ledger was asked %d times for what had not changed", n)
	}
	for what, c := range map[string]struct {
		do   func() error
		want []string
	}{
		"renamed": {func() error {
			title := "Cups"
			_, err := s.admin.Campaigns.Patch(ctx, "mugs", dibs.CampaignPatch{Title: &title})
			return err
		}, []string{"Cups"}},
		"product renamed": {func() error {
			name := "A cup"
			_, err := s.admin.Products.Patch(ctx, "mug", dibs.ProductPatch{Name: &name})
			return err
		}, []string{"A cup"}},
	} {
		must(t, c.do())
		s.eventually(what, "/v1/campaigns/mugs", shows(c.want...))
		s.eventually(what+", in the list", "/v1/campaigns", shows(c.want...))
		s.eventually(what+", on the page", "/c/mugs", shows(c.want...))
	}
	_, err = s.admin.Campaigns.ChangeStock(ctx, "mugs", dibs.StockChange{Delta: 3}, "")
	must(t, err)
	s.eventually("restocked", "/v1/campaigns/mugs", shows(`"remaining":7`))
	s.eventually("restocked, in the list", "/v1/campaigns", shows(`"remaining":7`))
	_, err = s.admin.Campaigns.End(ctx, "mugs")
	must(t, err)
	s.eventually("ended", "/v1/campaigns/mugs", shows(`"state":"ended"`, `"remaining":7`))
}

// A page runs no script but its own, shows a title as text, and may be kept as long as
// its address says.
func TestPage(t *testing.T) {
	s := newStack(t, nil)
	s.campaign("soon", time.Now().Add(time.Hour), time.Now().Add(2*time.Hour), 5, 1)
	title := `<script>alert(1)</script>"'`
	_, err := s.admin.Campaigns.Patch(context.Background(), "soon", dibs.CampaignPatch{Title: &title})
	must(t, err)
	a := s.ask("GET", "/c/soon", "")
	if a.status != 200 || a.header.Get("Content-Type") != "text/html; charset=utf-8" || a.header.Get("ETag") == "" ||
		a.header.Get("Cache-Control") != "public, max-age=10, s-maxage=10, stale-while-revalidate=50" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	policy := a.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q lacks %s", policy, part)
		}
	}
	for _, part := range []string{`"view":"campaign"`, `name="viewport"`, "/shop/main.js"} {
		if !strings.Contains(a.body, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	for _, no := range []string{"<script>alert", "http://", "https://", "<style", "onclick"} {
		if strings.Contains(a.body, no) {
			t.Errorf("the page has %q", no)
		}
	}
	if b := s.ask("GET", "/c/soon", "", "If-None-Match: "+a.header.Get("ETag")); b.status != http.StatusNotModified || b.body != "" {
		t.Errorf("with its tag: %d", b.status)
	}
	version := int64(s.ask("GET", "/v1/campaigns/soon", "").json["version"].(float64))
	fixed := s.ask("GET", "/c/soon?v="+strconv.FormatInt(version, 10), "")
	if fixed.status != 200 || !strings.Contains(fixed.header.Get("Cache-Control"), "immutable") || fixed.body != a.body {
		t.Errorf("%d %v", fixed.status, fixed.header)
	}
	for _, v := range []int64{version - 1, version + 1} {
		if b := s.ask("GET", "/c/soon?v="+strconv.FormatInt(v, 10), ""); b.status != http.StatusFound ||
			b.header.Get("Location") != "/c/soon?v="+strconv.FormatInt(version, 10) || strings.Contains(b.header.Get("Cache-Control"), "immutable") {
			t.Errorf("version %d: %d %v", v, b.status, b.header)
		}
	}
	if b := s.ask("GET", "/c/none", ""); b.status != http.StatusNotFound || b.json["reason"] != "not_found" {
		t.Errorf("no campaign: %d %s", b.status, b.body)
	}
}

// A parameter that the list does not have is refused, before the ledger is asked
// for what the shelf has.
func TestListWithUnknownParameters(t *testing.T) {
	s := newStack(t, nil)
	s.sale("phone", 5, 1)
	if a := s.ask("GET", "/v1/campaigns?x=1", ""); a.status != 400 || !strings.Contains(a.body, `"/x"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/v1/campaigns?limit=1", ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The page for people needs nothing from other servers and shows every operation and
// reason.
func TestDocsPage(t *testing.T) {
	s := newStack(t, nil)
	a := s.ask("GET", "/docs", "")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || a.header.Get("Content-Security-Policy") == "" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	if a := s.ask("GET", "/docs/", ""); a.status != 302 || a.header.Get("Location") != "/docs" {
		t.Errorf("/docs/: %d %v", a.status, a.header)
	}
	if m := regexp.MustCompile(`(src|href)="(https?:)?//[^"]*"|@import|<script src`).FindString(a.body); m != "" {
		t.Errorf("the page asks for %s", m)
	}
	if !strings.Contains(a.body, `lang="zh-CN"`) || !strings.Contains(a.body, "docs/zh") {
		t.Error("the page does not say in Chinese where there is more in Chinese")
	}
	for _, op := range s.operations() {
		method, path, _ := strings.Cut(op, " ")
		if !strings.Contains(a.body, `<span class="m `+method+`">`+method+`</span> <span class="path">`+path+`</span>`) {
			t.Errorf("the page lacks %s", op)
		}
	}
	for _, want := range []string{`id="sold_out"`, "已经抢完了", "Idempotency-Key", "curl -X POST", "required", "red packet", `id="find"`, `id="fold"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
