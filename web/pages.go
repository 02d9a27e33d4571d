package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

var pageTemplate = template.Must(template.ParseFS(files, "pages.html"))

// page is what the template shows: a shell with a module, or plain words.
type page struct {
	Title   string
	Icon    string
	Styles  []string
	Modules []string
	Entry   string
	Data    any
	Plain   []plain
}

// plain is a message to people, in one language.
type plain struct {
	Lang, Title, Text string
	Links             []link
}

type link struct{ Href, Text string }

// shell is what pages of a kind load.
type shell struct {
	styles, modules []string
	entry           string
}

// pageData is what a page's module is told.
type pageData struct {
	View    string `json:"view"`
	Dev     bool   `json:"dev,omitempty"`
	Shop    bool   `json:"shop,omitempty"`
	People  bool   `json:"people,omitempty"`
	Version string `json:"version"`
	// Campaign is the public view of a campaign page, without what remains.
	Campaign *api.CampaignView `json:"campaign,omitempty"`
}

// prepare works out what the shells load.
func (s *Site) prepare() error {
	s.shells = map[string]shell{}
	for name, c := range map[string]struct {
		entry  string
		styles []string
		// later are modules that the entry imports when it has looked at what it was told.
		later []string
	}{
		"campaign": {"shop/main.js", []string{"css/tokens.css", "css/shop.css"}, nil},
		"home":     {"shop/main.js", []string{"css/tokens.css", "css/shop.css"}, []string{"shop/home.js"}},
		"console":  {"console/main.js", []string{"css/tokens.css", "css/console.css"}, nil},
	} {
		modules, err := s.needs(append(c.later, c.entry)...)
		if err != nil {
			return fmt.Errorf("web: %w", err)
		}
		sh := shell{entry: s.Address(c.entry)}
		for _, style := range c.styles {
			sh.styles = append(sh.styles, s.Address(style))
		}
		for _, m := range modules[:len(modules)-1] {
			sh.modules = append(sh.modules, s.Address(m))
		}
		s.shells[name] = sh
	}
	return nil
}

// render makes a page of a shell.
func (s *Site) render(name, title string, data pageData) ([]byte, error) {
	sh := s.shells[name]
	data.Dev, data.Shop, data.Version = s.options.Dev, s.options.Storefront, s.version
	return execute(page{Title: title, Icon: s.Address("img/icon.svg"), Styles: sh.styles, Modules: sh.modules, Entry: sh.entry, Data: data})
}

func execute(p page) ([]byte, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, p)
	return b.Bytes(), err
}

// CampaignPage is the page of a campaign. It has nothing that changes with each claim: it is the same for everybody for
// as long as the definition is.
func (s *Site) CampaignPage(v api.CampaignView) ([]byte, error) {
	v.Remaining = 0
	return s.render("campaign", v.Title, pageData{View: "campaign", Campaign: &v})
}

// Home is the page at /: the storefront, or where to go from here.
func (s *Site) Home() ([]byte, error) {
	if s.options.Storefront {
		return s.render("home", "dibs", pageData{View: "home"})
	}
	return s.words("dibs", false, []plain{
		{"en", "dibs is running", "It decides who gets what runs out.", []link{{"/console/", "Console"}, {"/docs", "API"}}},
		{"zh", "dibs 正在运行", "它决定限量商品归谁所有。", []link{{"/console/", "控制台"}, {"/docs", "API 文档"}}},
	})
}

// Console is the page of the console, at each of its addresses.
func (s *Site) Console() ([]byte, error) {
	return s.render("console", "dibs console", pageData{View: "console", People: s.options.People})
}

// CommandLine is the page that asks a person whether a command line on their machine may act in their name; the link
// leads to it. zh puts Chinese first.
func (s *Site) CommandLine(address, name string, zh bool) ([]byte, error) {
	both := []plain{
		{"en", "Sign in dibs on this computer?", "A command line on this computer asks to act as " + name + ". Go on only if you have just run dibs login; else close this page.", []link{{address, "Sign in"}}},
		{"zh", "要在此计算机上登录 dibs 吗？", "此计算机上的命令行请求以 " + name + " 的身份操作。仅当您刚刚运行了 dibs login 时才继续，否则请关闭此页面。", []link{{address, "登录"}}},
	}
	return s.words("dibs login", zh, both)
}

// Problem is the page that a person is shown in place of what they asked for; zh puts Chinese first. title and detail
// say what is wrong, at an address where there is nothing the page's own words do.
func (s *Site) Problem(status int, zh bool, title, detail dibs.Text) ([]byte, error) {
	if status == http.StatusNotFound {
		title = dibs.Text{EN: "There is nothing here", ZH: "没有找到该页面"}
	}
	both := []plain{
		{"en", title.EN, sentence(detail.EN, "."), []link{{"/", "Start page"}, {"/docs", "API"}}},
		{"zh", title.In(true), sentence(detail.In(true), "。"), []link{{"/", "首页"}, {"/docs", "API 文档"}}},
	}
	return s.words(strconv.Itoa(status), zh, both)
}

// sentence begins a detail with a capital letter and ends it.
func sentence(text, stop string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(text[size:], stop) + stop
}

// words is a page of plain words in both languages; Chinese comes first where zh is set.
func (s *Site) words(title string, zh bool, both []plain) ([]byte, error) {
	if zh {
		slices.Reverse(both)
	}
	return execute(page{Title: title, Icon: s.Address("img/icon.svg"), Styles: []string{s.Address("css/tokens.css")}, Plain: both})
}

// Send answers a request with a page, under the policy of all pages.
func (s *Site) Send(w http.ResponseWriter, r *http.Request, body []byte) {
	h := w.Header()
	h["Content-Security-Policy"] = []string{s.policy}
	h["Referrer-Policy"] = []string{"same-origin"}
	sum := sha256.Sum256(body)
	send(w, r, "text/html; charset=utf-8", hex.EncodeToString(sum[:12]), body, func() []byte { return pack(body) })
}
