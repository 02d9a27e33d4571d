package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

func newSite(t *testing.T, o Options) *Site {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every vendored file is the one that the manifest names, and no other is there.
func TestVendoredFilesAreThoseOfTheManifest(t *testing.T) {
	raw, err := files.ReadFile("vendor/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var packages []struct {
		Package, Version, License string
		Files                     []struct{ Name, From, SHA256 string }
	}
	if err := json.Unmarshal(raw, &packages); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{"manifest.json": true}
	for _, p := range packages {
		if p.Package == "" || p.Version == "" || p.License == "" {
			t.Errorf("%+v lacks its name, version or licence", p)
		}
		licensed := false
		for _, f := range p.Files {
			named[f.Name] = true
			licensed = licensed || strings.HasSuffix(f.Name, ".LICENSE")
			body, err := files.ReadFile("vendor/" + f.Name)
			if err != nil {
				t.Error(err)
				continue
			}
			if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != f.SHA256 {
				t.Errorf("vendor/%s is not that of %s %s: its SHA-256 is %x", f.Name, p.Package, p.Version, sum)
			}
		}
		if !licensed {
			t.Errorf("%s has no licence text", p.Package)
		}
	}
	entries, err := fs.ReadDir(files, "vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !named[e.Name()] {
			t.Errorf("vendor/%s is not in the manifest", e.Name())
		}
	}
}

func ask(s *Site, address string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, address, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if !s.Asset(w, r) {
		w.WriteHeader(http.StatusNotFound)
	}
	return w
}

// Assets are kept for good under the address of their version, in two representations with tags of their own.
func TestAssets(t *testing.T) {
	s := newSite(t, Options{})
	at := s.Address("shop/main.js")
	plain, packed := ask(s, at), ask(s, at, "Accept-Encoding", "br, gzip")
	if h := plain.Header(); plain.Code != 200 || !strings.Contains(h.Get("Cache-Control"), "immutable") || h.Get("Content-Type") != "text/javascript; charset=utf-8" ||
		h.Get("Vary") != "Accept-Encoding" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", plain.Code, h)
	}
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(body, plain.Body.Bytes()) {
		t.Errorf("the compressed body is another one: %v", err)
	}
	if plain.Header().Get("ETag") == packed.Header().Get("ETag") {
		t.Error("two representations share a tag")
	}
	again := ask(s, at, "Accept-Encoding", "gzip", "If-None-Match", packed.Header().Get("ETag"))
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Content-Encoding") != "" {
		t.Errorf("%d %v", again.Code, again.Header())
	}
	if w := ask(s, at, "Accept-Encoding", "gzip; q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Error("compressed for a caller that refuses it")
	}
	if w := ask(s, AssetPrefix+"0123/shop/main.js"); w.Code != http.StatusFound || w.Header().Get("Location") != at || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("an older version: %d %v", w.Code, w.Header())
	}
	for _, none := range []string{"shop/none.js", "text/shop.json", "pages.html", "vendor/manifest.json", "", "../web.go"} {
		if w := ask(s, s.Address(none)); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", none, w.Code)
		}
	}
}

// Modules find each other: every import leads to an asset, and none names a package.
func TestModulesAreComplete(t *testing.T) {
	s := newSite(t, Options{})
	for name, a := range s.assets {
		for _, next := range a.imports {
			if s.assets[next] == nil {
				t.Errorf("%s imports %s, which is not there", name, next)
			}
		}
		for _, m := range imported.FindAllSubmatch(a.body, -1) {
			if to := string(m[2]); strings.HasPrefix(a.kind, "text/javascript") && !strings.HasPrefix(to, ".") {
				t.Errorf("%s imports %s by its name", name, to)
			}
		}
	}
	if strings.Contains(string(s.assets["vendor/preact.mjs"].body), "sourceMappingURL") {
		t.Error("a module names a map that is not there")
	}
}

// What a browser fetches for a page stays small, in both languages: the page itself, its icon, and its modules with those
// that they import when they have looked at what they were told.
func TestPagesAreSmall(t *testing.T) {
	s := newSite(t, Options{Storefront: true})
	money := func(amount int64) *dibs.Money { return &dibs.Money{Amount: amount, Currency: "CNY"} }
	shown := func(body []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	about := "A small series, in orange. Two at most, the second at half price. It comes in a box of its own, with a number."
	sale := api.CampaignView{
		ID: "sneaker-drop", Kind: dibs.Sale, Title: "Sneaker drop: pay within two minutes", State: dibs.Published, StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour), LimitPerUser: 2, Price: money(29900),
		Product: &api.ProductView{ID: "sneaker", Name: "Canvas sneaker", Thumbnail: "/assets/demo/img/sneaker.svg", Description: about, Price: money(45900)},
	}
	drawn := sale
	drawn.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: time.Now(), Winners: 10}, Ticket: &dibs.TicketSpec{WorkBits: 16}}
	rain := drawn
	rain.Kind, rain.Product = dibs.RedPacket, nil
	shop, most := []string{"css/tokens.css", "css/shop.css", "img/icon.svg"}, 40<<10
	for page, c := range map[string]struct {
		shell []byte
		texts string
		loads []string
		most  int
	}{
		"storefront":                 {shown(s.Home()), "shop", append(slices.Clip(shop), "shop/home.js", "shop/main.js"), most},
		"a sale":                     {shown(s.CampaignPage(sale)), "shop", append(slices.Clip(shop), "shop/main.js"), most},
		"rain":                       {shown(s.CampaignPage(rain)), "shop", append(slices.Clip(shop), "shop/main.js", "shop/rain.js", "shop/fall.js"), most},
		"a draw":                     {shown(s.CampaignPage(drawn)), "shop", append(slices.Clip(shop), "shop/main.js", "shop/lottery.js"), most},
		"a red packet behind a draw": {shown(s.CampaignPage(rain)), "shop", append(slices.Clip(shop), "shop/main.js", "shop/lottery.js", "shop/rain.js"), most},
		"console":                    {shown(s.Console()), "console", []string{"img/icon.svg", "console/main.js", "css/tokens.css", "css/console.css", "vendor/uPlot.iife.min.js", "vendor/uPlot.min.css"}, 150 << 10},
	} {
		for _, language := range languages {
			names, err := s.needs(append(slices.Clip(c.loads), "text/"+c.texts+"."+language+".js")...)
			if err != nil {
				t.Fatal(err)
			}
			sum, of := len(pack(c.shell)), map[string]int{"the page": len(pack(c.shell))}
			for _, name := range names {
				of[name] = len(s.assets[name].packed())
				sum += of[name]
			}
			t.Logf("%s in %s: %d bytes in %d files", page, language, sum, len(of))
			if sum > c.most {
				t.Errorf("%s in %s loads %d bytes, at most %d: %v", page, language, sum, c.most, of)
			}
			// What is preloaded is what is needed: nothing that the page does not import.
			for _, m := range regexp.MustCompile(`modulepreload" href="/assets/\w+/([^"]+)"`).FindAllStringSubmatch(string(c.shell), -1) {
				if of[m[1]] == 0 {
					t.Errorf("%s preloads %s, which it does not import", page, m[1])
				}
			}
		}
	}
}

// A page runs nothing inline and asks nothing from elsewhere; what it is told is data, whatever a title says.
func TestPages(t *testing.T) {
	s := newSite(t, Options{Dev: true, Images: []string{"https://images.example"}})
	if p := s.Policy(); strings.Contains(p, "unsafe") || !strings.Contains(p, "img-src 'self' data: https://images.example;") {
		t.Error(p)
	}
	hostile := `</script><script>alert(1)</script><img src=x onerror=alert(2)>`
	body, err := s.CampaignPage(api.CampaignView{ID: "c", Title: hostile, Remaining: 7, Version: 3})
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	if strings.Contains(text, "<script>") || strings.Contains(text, "<img") || strings.Contains(text, "onerror=alert(2)>") {
		t.Errorf("the title is part of the page:\n%s", text)
	}
	data := regexp.MustCompile(`(?s)id="page">(.*?)</script>`).FindStringSubmatch(text)
	if data == nil {
		t.Fatalf("no data in\n%s", text)
	}
	var told pageData
	if err := json.Unmarshal([]byte(data[1]), &told); err != nil || told.Campaign.Title != hostile || !told.Dev || told.Campaign.Remaining != 0 {
		t.Errorf("%v: %s", err, data[1])
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "/") || strings.HasPrefix(m[1], "//") {
			t.Errorf("the page asks for %s", m[1])
		}
	}
	if _, err := New(Options{Images: []string{"https://images.example/path"}}); err == nil {
		t.Error("a path is no origin")
	}
}

// A plain page speaks both languages, the reader's first.
func TestProblem(t *testing.T) {
	s := newSite(t, Options{})
	body, err := s.Problem(404, true, dibs.Text{}, dibs.Text{EN: "there is no such campaign", ZH: "该活动不存在"})
	text := string(body)
	zh, en := strings.Index(text, "该活动不存在。"), strings.Index(text, "There is no such campaign.")
	if err != nil || zh < 0 || en < zh || strings.Contains(text, "<script") {
		t.Errorf("%v\n%s", err, text)
	}
}

// sources are the modules that people write.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".js" || strings.HasPrefix(name, "vendor/") {
			return err
		}
		body, err := files.ReadFile(name)
		all[name] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	unusual  = regexp.MustCompile(`const unusual = .*`)
	ofDigits = regexp.MustCompile(`\[(\d), "([A-Z ]+)"\]`)
)

// The pages and the server have the same digits behind the point, for every currency that there may be: else a price is
// shown, or a deposit sent, a hundred times too large.
func TestCurrenciesHaveTheServersDigits(t *testing.T) {
	there := map[string]int{}
	for _, m := range ofDigits.FindAllStringSubmatch(unusual.FindString(sources(t)["lib/format.js"]), -1) {
		for currency := range strings.FieldsSeq(m[2]) {
			if _, twice := there[currency]; twice {
				t.Errorf("%s is there twice", currency)
			}
			there[currency] = int(m[1][0] - '0')
		}
	}
	for code := range 26 * 26 * 26 {
		currency := string([]byte{'A' + byte(code/676), 'A' + byte(code/26%26), 'A' + byte(code%26)})
		digits, ok := there[currency]
		if !ok {
			digits = 2
		}
		if of := (dibs.Money{Currency: currency}).Decimals(); digits != of {
			t.Errorf("%s has %d digits on the pages, %d at the server", currency, digits, of)
		}
	}
}

var saves = regexp.MustCompile(`<\$\{\w*CSV\}|format=csv`)

// Every list of the console can be saved as a file.
func TestListsHaveFiles(t *testing.T) {
	// These tables are what is measured now, or have their file on the screen of the audit log.
	without := map[string]int{"console/overview.js": 1, "console/history.js": 1, "console/health.js": 1}
	lists := 0
	for name, text := range sources(t) {
		if !strings.HasPrefix(name, "console/") {
			continue
		}
		for _, after := range strings.Split(text, "<${Pager}")[1:] {
			lists++
			own, rest, _ := strings.Cut(after, ">")
			inside, _, _ := strings.Cut(rest, "<//>")
			if strings.HasSuffix(own, "/") || !saves.MatchString(inside) {
				t.Errorf("%s has pages without a file of them: <${Pager}%s>", name, own)
			}
		}
		if tables, files := strings.Count(text, "<${Table}")-without[name], len(saves.FindAllString(text, -1)); files < tables {
			t.Errorf("%s has %d tables and saves %d", name, tables, files)
		}
	}
	if lists < 15 {
		t.Errorf("%d lists were found", lists)
	}
}

var (
	quoted = regexp.MustCompile(`"([a-z_]+(?:\.[a-z_0-9]+)*)"`)
	begun  = regexp.MustCompile("[\"`]([a-z_]+(?:\\.[a-z_0-9]+)*\\.)(?:\"|\\$\\{)")
	called = regexp.MustCompile(`\bt\("([^"]+)"`)
)

// Every text is used, and every text that is used is there, in both languages and in the marks of each.
func TestCatalogue(t *testing.T) {
	words, prefixes, wanted := map[string]bool{}, map[string]bool{}, map[string]string{}
	for name, text := range sources(t) {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			words[m[1]] = true
		}
		for _, m := range begun.FindAllStringSubmatch(text, -1) {
			prefixes[m[1]] = true
		}
		for _, m := range called.FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(m[1], ".") {
				wanted[m[1]] = name
			}
		}
	}
	all := catalogue{}
	for _, names := range sets {
		for _, name := range names {
			c, err := readTexts(name)
			if err != nil {
				t.Fatal(err)
			}
			for key, text := range c {
				if before, twice := all[key]; twice && before != text {
					t.Errorf("%s stands for two texts", key)
				}
				all[key] = text
			}
		}
	}
	for key, text := range all {
		used := words[key]
		for i := range key {
			used = used || key[i] == '.' && prefixes[key[:i+1]]
		}
		if !used {
			t.Errorf("nothing uses %s", key)
		}
		checkText(t, key, text)
	}
	for key, name := range wanted {
		if _, there := all[key]; !there {
			t.Errorf("%s shows %s, which has no text", name, key)
		}
	}
	for key, text := range reasonTexts() {
		if text[0] == "" || text[1] == "" {
			t.Errorf("%s lacks a language", key)
		}
	}
}

var values = regexp.MustCompile(`\{\w+\}`)

// checkText finds what is wrong with one text: a language missing, values that only one language has, half-width marks
// after Chinese.
func checkText(t *testing.T, key string, text [2]string) {
	t.Helper()
	if strings.TrimSpace(text[0]) == "" || strings.TrimSpace(text[1]) == "" {
		t.Errorf("%s lacks a language", key)
	}
	en, zh := values.FindAllString(text[0], -1), values.FindAllString(text[1], -1)
	slices.Sort(en)
	slices.Sort(zh)
	if !slices.Equal(en, zh) {
		t.Errorf("%s: the languages show different values, %v and %v", key, en, zh)
	}
	runes := []rune(text[1])
	for i := 1; i < len(runes); i++ {
		if strings.ContainsRune(",.:;!?()", runes[i]) && unicode.Is(unicode.Han, runes[i-1]) {
			t.Errorf("%s: %q has a half-width mark after Chinese", key, text[1])
		}
	}
}

// refusals are the reasons of the registry, by the texts that the shop explains a refused claim with: what happened, and
// what to do next. A key that ends with a dot goes on with the reason's word.
var refusals = []struct {
	why, next string
	of        []dibs.Reason
}{
	{"why.", "next.", []dibs.Reason{
		dibs.Unauthenticated, dibs.Forbidden, dibs.NotEligible, dibs.NotFound, dibs.Paused, dibs.NotStarted, dibs.Ended, dibs.SoldOut, dibs.LimitReached,
		dibs.RateLimited, dibs.Waiting, dibs.TicketRequired, dibs.Unavailable, dibs.Overloaded,
	}},
	// The title that the API gives says it as well.
	{"reason.", "next.", []dibs.Reason{dibs.TooManyClaims}},
	// The page's own requests do not bring these about.
	{"reason.", "next.other", []dibs.Reason{dibs.InvalidRequest, dibs.TooLarge, dibs.KeyReused, dibs.Internal}},
	// No claim is refused with these.
	{"", "", []dibs.Reason{dibs.Granted, dibs.AlreadyExists, dibs.InvalidState, dibs.InsufficientFunds}},
}

// Every reason that a claim can be refused with is explained in the shop, in both languages. A new reason must be put in
// the table.
func TestRefusedClaimsAreExplained(t *testing.T) {
	s := newSite(t, Options{})
	for _, language := range languages {
		texts := map[string]string{}
		module := string(s.assets["text/shop."+language+".js"].body)
		if err := json.Unmarshal([]byte(strings.TrimPrefix(module, "export default ")), &texts); err != nil {
			t.Fatal(err)
		}
		known := 0
		for _, c := range refusals {
			known += len(c.of)
			for _, reason := range c.of {
				for _, key := range []string{c.why, c.next} {
					if strings.HasSuffix(key, ".") {
						key += reason.String()
					}
					if key != "" && texts[key] == "" {
						t.Errorf("%s: %s has no text in %s", reason, key, language)
					}
				}
			}
		}
		if known != dibs.ReasonCount {
			t.Errorf("%d reasons are in the table, %d in the registry", known, dibs.ReasonCount)
		}
	}
}
