package main

import (
	"fmt"
	"slices"
)

// screen is a page as it is photographed.
// Its name is part of the file's, and of what faults say.
type screen struct {
	name, path string
	// user opens it as a shopper; "" for nobody.
	user string
	// act is JavaScript that brings the page to where it is photographed. It is tried until it does not throw: what it
	// acts on may have to be loaded first.
	act string
	// ready holds when the page is as it is to be photographed.
	ready string
	// tall is the height of a picture that ends there, in pixels; 0 for the whole page.
	tall int64
	// moves says that it moves for most of a second by its own clock, as what falls and counts up does.
	moves bool
	// program says that it is for people who write programs: times and amounts stand there as the API has them.
	program bool
}

// at is the screen's address on a server.
func (s screen) at(url string) string {
	if s.user == "" {
		return url + s.path
	}
	return url + s.path + "#token=dev_" + s.user
}

// look is how a screen is shown.
type look struct {
	language string
	dark     bool
	width    int64
}

// name is the part of a file's name that tells looks apart.
func (l look) name() string {
	shade := "light"
	if l.dark {
		shade = "dark"
	}
	return fmt.Sprintf("%s-%s-%d", l.language, shade, l.width)
}

// looks are those that pages are made for.
// 1280 pixels are a small desk, 390 a common telephone.
func looks(quick bool) (all []look) {
	for _, width := range []int64{1280, 390} {
		for _, language := range []string{"en", "zh"} {
			for _, dark := range []bool{false, true} {
				if !quick || language == "en" && !dark {
					all = append(all, look{language, dark, width})
				}
			}
		}
	}
	return all
}

// turned is the look of the same language in the other shade and at the other width.
func (l look) turned() look { return look{l.language, !l.dark, 1280 + 390 - l.width} }

// screens lists every screen.
// The order matters: a user who has won on one screen is one who holds something on
// the next.
func screens() []screen {
	return slices.Concat(shopScreens(), consoleScreens(), []screen{
		// The whole of it is more than a browser puts into a picture.
		{name: "docs", path: "/docs", tall: 2000, ready: `!!document.querySelector(".js #find") && document.querySelectorAll(".block").length > 100`, program: true},
		{name: "docs-search", path: "/docs", act: find, ready: `/^[1-9]/.test(document.querySelector("#found").textContent)`, program: true},
		{name: "missing", path: "/c/none", ready: `!!document.querySelector("h1")`},
	})
}

// shopScreens are those of shoppers, and what they may meet there.
func shopScreens() []screen {
	return []screen{
		{name: "store", path: "/", ready: `document.querySelectorAll(".offer").length > 2`},
		{name: "press", path: "/c/phone-noon", user: "42", ready: `!!document.querySelector("#remaining")`},
		{name: "press-won", path: "/c/sneaker-drop", user: "7", act: press, ready: `!!document.querySelector(".order")`},
		{name: "press-paid", path: "/c/sneaker-drop", user: "payer", ready: `!!document.querySelector(".order.paid")`},
		{name: "press-refused", path: "/c/invited", user: "99", act: press, ready: `!!document.querySelector("[data-reason=not_eligible]")`},
		{name: "press-lost", path: "/c/phone-noon", user: "lost", act: lose, ready: `!!document.querySelector(".outcome .warn")`},
		{name: "press-waiting", path: "/c/slow", user: "third", ready: `!!document.querySelector("#position")`},
		{name: "press-turn", path: "/c/slow", user: "first", ready: `!!document.querySelector("#place.good")`},
		{name: "sold-out", path: "/c/gone", user: "42", ready: `!!document.querySelector(".dot.sold_out")`},
		{name: "paused", path: "/c/halted", user: "42", ready: `!!document.querySelector(".dot.paused")`},
		{name: "coupon-won", path: "/c/coupon-rain", user: "7", act: press, ready: `!!document.querySelector(".order")`},
		{name: "over", path: "/c/over", user: "42", ready: `!!document.querySelector(".dot.ended") && !!document.querySelector(".order")`},
		{name: "upcoming", path: "/c/ticket-tomorrow", user: "42", ready: `!!document.querySelector("#count")`},
		{name: "draw", path: "/c/draw", user: "3", ready: `!!document.querySelector("#entry:not([data-result=pending])")`},
		{name: "stranger", path: "/c/phone-noon", ready: `!!document.querySelector("#remaining")`},
		{name: "who", path: "/c/phone-noon", user: "42", act: `document.querySelector("header .who").click()`, ready: `!!document.querySelector("dialog[open] [name=user]")`},
		{name: "rain-upcoming", path: "/c/rain-later", user: "42", ready: `!!document.querySelector("#count")`},
		{name: "rain", path: "/c/redpacket-rain", user: "42", ready: `!!document.querySelector("#press")`, moves: true},
		{name: "rain-won", path: "/c/redpacket-rain", user: "9", act: press, ready: `!!document.querySelector(".opened")`, moves: true},
		{name: "rain-over", path: "/c/opened", user: "9", ready: `!!document.querySelector("#luck li.me")`, moves: true},
		{name: "orders", path: "/c/coupon-rain", user: "7", act: `document.querySelector("header .quiet").click()`, ready: `!!document.querySelector("dialog[open] .order")`},
	}
}

// openMenu opens the menu until it stays: a screen that is shown for the first time closes it.
const openMenu = `if (!document.querySelector(".console.open")) { document.querySelector(".bar > button").click(); throw new Error("the menu is not open yet"); }`

// consoleScreens are those of administrators, with drawers and boxes that open over them.
func consoleScreens() []screen {
	return []screen{
		{name: "console-signin", path: "/console/", act: signOut, ready: `!!document.querySelector(".signin input")`},
		{name: "console-menu", path: "/console/", act: openMenu, ready: loaded + ` && !!document.querySelector(".console.open")`},
		{name: "console-overview", path: "/console/", ready: loaded},
		{name: "console-campaigns", path: "/console/campaigns", ready: loaded},
		{name: "console-campaign", path: "/console/campaigns/sneaker-drop", ready: `!!document.querySelector("#sums") && document.querySelectorAll("canvas").length === 2`},
		{name: "console-verified", path: "/console/campaigns/sneaker-drop", act: `document.querySelector("[data-act=verify]").click()`, ready: `document.querySelectorAll(".promises li").length > 5`},
		{name: "console-gated", path: "/console/campaigns/draw", ready: `!!document.querySelector("#gate .tile.good")`},
		{name: "console-changed", path: "/console/campaigns/shared", ready: `[...document.querySelectorAll("td code")].some((c) => c.textContent === "ends_at")`},
		{name: "console-packet", path: "/console/campaigns/redpacket-rain", ready: `!!document.querySelector("#sums")`},
		{name: "console-confirm", path: "/console/campaigns/sneaker-drop", act: `document.querySelector("[data-act=restock]").click()`, ready: `!!document.querySelector("dialog[open]")`},
		{name: "console-difference", path: "/console/campaigns/shared/edit", act: meanwhile, ready: `!!document.querySelector("#difference")`},
		{name: "console-rush", path: "/console/rush", ready: `!!document.querySelector("#start")`},
		{name: "console-rush-done", path: "/console/rush", act: rush, ready: `!!document.querySelector("#rush[data-state=done]")`},
		{name: "console-wizard", path: "/console/campaigns/new", ready: `!!document.querySelector(".steps")`},
		{name: "console-wizard-stock", path: "/console/campaigns/new?copy=redpacket-rain", act: `document.querySelectorAll(".steps button")[1].click()`, ready: `!!document.querySelector(".histogram")`},
		{name: "console-wizard-terms", path: "/console/campaigns/new?copy=everything&step=3", ready: `!!document.querySelector("[name=tiers]")?.value`},
		{name: "console-wizard-gate", path: "/console/campaigns/new?copy=everything&step=4", ready: `!!document.querySelector("[name=limits]")?.value`},
		{name: "console-edit", path: "/console/campaigns/everything/edit", ready: `!!document.querySelector("[name=title]")?.value`},
		{name: "console-wizard-review", path: "/console/campaigns/new", act: `document.querySelectorAll(".steps button")[4].click()`, ready: `!!document.querySelector("#review dt")`},
		{name: "console-orders", path: "/console/orders", ready: `!!document.querySelector("td")`},
		{name: "console-order", path: "/console/orders", act: `document.querySelector("[data-open]").click()`, ready: `!!document.querySelector("dialog[open] .order")`},
		{name: "console-refund", path: "/console/orders?campaign_id=sneaker-drop&user_id=payer", act: refund, ready: `document.querySelectorAll("dialog[open]").length === 2`},
		{name: "console-products", path: "/console/products", ready: loaded},
		{name: "console-product", path: "/console/products", act: `document.querySelector("td .named").click()`, ready: `!!document.querySelector("dialog[open] form")`},
		{name: "console-coupons", path: "/console/coupons", ready: loaded},
		{name: "console-batch", path: "/console/coupons/coupon-rain", act: `document.querySelector("[data-act=codes]").click()`, ready: `document.querySelectorAll("table").length === 2`},
		{name: "console-coupon", path: "/console/coupons/coupon-rain", act: `document.querySelector("[data-open]").click()`, ready: `!!document.querySelector("dialog[open] .order")`},
		{name: "console-gates", path: "/console/gates", ready: loaded},
		{name: "console-room", path: "/console/gates/queue", ready: `document.querySelectorAll(".tile").length === 3`},
		{name: "console-lottery", path: "/console/gates/draw", act: `document.querySelector("[data-act=draw]").click()`, ready: `!!document.querySelector("#again[data-state=good]")`},
		{name: "console-accounts", path: "/console/accounts?user=9", ready: loaded},
		{name: "console-packets", path: "/console/accounts", ready: loaded + ` && !!document.querySelector("#packets td")`},
		{name: "console-deposit", path: "/console/accounts?user=9", act: `document.querySelector(".balance").parentElement.querySelector("button").click()`, ready: `!!document.querySelector("dialog[open] [name=sum]")`},
		{name: "console-audiences", path: "/console/audiences?merchant=shop", ready: `document.querySelectorAll("table").length === 2`},
		{name: "console-list", path: "/console/audiences", act: `document.querySelector(".title button.primary").click()`, ready: `!!document.querySelector("dialog[open] [type=file]")`},
		{name: "console-lines", path: "/console/audiences", act: badFile, ready: `document.querySelectorAll("dialog[open] .note.bad li").length > 1`},
		{name: "console-announcements", path: "/console/announcements?campaign=shared", ready: `!!document.querySelector("meter")`},
		{name: "console-announce", path: "/console/announcements?campaign=queue&merchant=shop", act: `document.querySelector("[data-act=announce]").click()`, ready: `!!document.querySelector("dialog[open] .note")`},
		{name: "console-events", path: "/console/events", ready: loaded},
		{name: "console-hook", path: "/console/events", act: `document.querySelector("[data-open]").click()`, ready: `!!document.querySelector("dialog[open] .filters, dialog[open] .empty, dialog[open] td")`},
		{name: "console-users", path: "/console/users?user=9", ready: loaded},
		{name: "console-erase", path: "/console/users?user=9", act: `document.querySelector(".title button.danger").click()`, ready: `!!document.querySelector("dialog[open] [name=again]")`},
		{name: "console-keys", path: "/console/keys", ready: `document.querySelectorAll("tbody tr").length > 2`},
		{name: "console-key", path: "/console/keys", act: `document.querySelector("[data-act=new-key]").click()`, ready: `!!document.querySelector("dialog[open] fieldset")`},
		{name: "console-secret", path: "/console/keys", act: newKey, ready: `!!document.querySelector(".secret code") && !document.querySelector("dialog[open]")`},
		{name: "console-sessions", path: "/console/sessions", ready: loaded},
		{name: "console-session-end", path: "/console/sessions", act: `document.querySelector("[data-act=end-session]").click()`, ready: `!!document.querySelector("dialog[open]")`},
		{name: "console-approvals", path: "/console/approvals", act: `document.querySelector("details").open = true`, ready: `!!document.querySelector("[data-act=reject]")`},
		{name: "console-audit", path: "/console/audit", ready: loaded},
		{name: "console-health", path: "/console/health", act: `document.querySelector("[data-act=examine]").click()`, ready: `document.querySelectorAll("#doctor td, #settings td").length > 20 && !document.querySelector(".loading")`},
		{name: "console-missing", path: "/console/none", ready: `!!document.querySelector("main h1")`},
		{name: "console-ended", path: "/console/health", act: `window.fetch = async () => new Response('{"reason":"unauthenticated","status":401}', { status: 401 })`, ready: `!!document.querySelector(".signin .note")`},
	}
}

// loaded holds when nothing of a screen is being loaded any more.
const loaded = `!!document.querySelector("h1") && !document.querySelector(".loading")`

// press presses the button, unless the user has won before.
const press = `(document.querySelector(".order, .opened") || document.querySelector("#press:not(:disabled)")).click()`

// lose presses the button of a page whose claims get no answer.
const lose = `{ const button = document.querySelector("#press:not(:disabled)"), real = window.fetch;
	window.fetch = (at, o) => (o?.method === "POST" && String(at).endsWith("/claims") ? Promise.reject(new TypeError("no answer")) : real(at, o));
	button.click(); }`

// signOut signs out in this page alone: the server hears nothing of it.
const signOut = `{ const button = document.querySelector(".menu .who button"), real = window.fetch; button.focus();
	window.fetch = (at, o) => (o?.method === "DELETE" ? Promise.resolve(new Response("{}")) : real(at, o));
	button.click(); }`

// refund opens an order, and the box that asks about its refund.
const refund = `(document.querySelector("[data-step=refund]") || (document.querySelector("[data-open]").click(), null)).click()`

// find searches the API's page.
const find = `{ const f = document.querySelector(".js #find"); f.value = "red packet"; f.dispatchEvent(new Event("input")); }`

// rush starts a small rush: all that is seen of a large one, sooner.
const rush = `for (const [name, n] of [["users", 300], ["requests", 600], ["stock", 50]]) document.querySelector("[name=" + name + "]").value = n;
	document.querySelector("#start").click()`

// picture is a screen as a README shows it.
type picture struct {
	screen screen
	look   look
	file   string
}

// pictured lists what the READMEs show, in their languages: the console after a rush, and the rain on a telephone.
func pictured() (all []picture) {
	rain := screen{name: "rain", path: "/c/redpacket-rain", user: "42", act: `new Promise((done) => setTimeout(done, 3500))`, ready: `!!document.querySelector("#press")`, moves: true}
	rushed := screen{name: "console", path: "/console/rush", act: `document.querySelector("#start").click()`, ready: `!!document.querySelector("#rush[data-state=done]") && !!document.querySelector("#sums[data-state=good]")`}
	for _, language := range []string{"en", "zh"} {
		ending := map[string]string{"en": ".png", "zh": ".zh.png"}[language]
		// It ends below the sums, which are higher up in Chinese.
		rushed.tall = map[string]int64{"en": 972, "zh": 941}[language]
		all = append(all, picture{rushed, look{language, false, 1280}, "console" + ending}, picture{rain, look{language, false, 390}, "rain" + ending})
	}
	return all
}
