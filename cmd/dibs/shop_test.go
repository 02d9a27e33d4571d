package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/badnet"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestShop lives a shopper's day in a real browser, on the telephone, in the shop that dev serves.
func TestShop(t *testing.T) {
	t.Parallel()
	d := startShop(t)
	for _, c := range []struct {
		name string
		look func(*shop)
	}{
		{"from the storefront to a refund", shoppersDay},
		{"an order that is not paid comes back", unpaidOrder},
		{"red-packet rain", rain},
		{"red packets by keyboard, without motion", stillRain},
		{"several shares of a red packet", severalShares},
		{"a press before the page has looked", pressedAtOnce},
		{"a node that is behind", behindTheNews},
		{"a proxy that answers no stream", noStreamOnce},
		{"a quantity that is too much by now", fewerThanChosen},
		{"a payment that is told twice", paidTwice},
		{"a draw", drawnInTheShop},
		{"more shares than the list has", moreThanTheList},
		{"more campaigns than a page", moreThanAPage},
		{"more orders than a page", moreOrdersThanAPage},
		{"an order that is paid elsewhere", paidElsewhere},
		{"a WebSocket that is cut without a word", cutSocket},
		{"a proxy that answers no WebSocket", swallowedSocket},
		{"the server is killed in the middle of a press", killedInAPress},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *d
			s.pages.T = t
			c.look(&s)
		})
	}
}

// shop is a dev server with a browser.
type shop struct {
	pages
	server *process
	data   string
}

// startShop starts dev with some flags more, and a browser.
func startShop(t *testing.T, flags ...string) *shop {
	t.Helper()
	data := t.TempDir()
	p := start(t, nil, append([]string{"dev", "--listen", "127.0.0.1:0", "--data", data}, flags...)...)
	p.await(t, p.out, "Ctrl-C stops")
	return &shop{pages: pages{T: t, url: p.await(t, p.out, `API +(\S+)`)[1], admin: devAdmin(t, p), phone: startBrowser(t)}, server: p, data: data}
}

// devAdmin is a client with the key that dev printed.
func devAdmin(t *testing.T, p *process) *client.Client {
	t.Helper()
	c, err := client.New(p.await(t, p.out, `API +(\S+)`)[1], client.Options{AdminKey: p.await(t, p.out, `Admin key +(\S+)`)[1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// visit opens a page as a user of dev; "" for nobody.
func (s *shop) visit(path, user, language string) *tab {
	s.Helper()
	address := s.url + path
	if user != "" {
		address += "#token=dev_" + user
	}
	return s.phone.open(s.T, address, language)
}

// click presses what shows a text.
func (p *tab) click(text string) {
	p.Helper()
	p.await(fmt.Sprintf(`(() => {
		const b = [...document.querySelectorAll("button, a, summary")].find((b) => b.textContent.trim() === %q && b.checkVisibility() && !b.disabled);
		b?.click();
		return !!b;
	})()`, text))
}

// shoppersDay: from the storefront over the press and the payment to the parcel, and the money back.
func shoppersDay(s *shop) {
	page := s.visit("/", "ann", english)
	page.shows("Sneaker drop")
	page.shows("CN¥299.00")
	page.await(`document.querySelectorAll(".offer img").length >= 2 && [...document.querySelectorAll(".offer img")].every((i) => i.complete && i.naturalWidth > 0)`)
	page.await(`(() => { const a = [...document.querySelectorAll("a.offer")].find((a) => a.href.endsWith("/c/sneaker-drop")); a?.click(); return !!a; })()`)
	page.shows("Limit per person")
	page.press()
	page.shows("It is yours!")
	page.shows("Waiting for payment")
	page.shows("pay within 1:")
	page.shows("Get one more")
	page.click("Pay")
	page.shows("payment → taken")
	page.shows("Paid")
	mine, err := s.as("ann").Orders.Mine(s.Context(), dibs.OrderQuery{}, dibs.Page{})
	s.must(err)
	if len(mine.Items) != 1 || mine.Items[0].Status != "confirmed" {
		s.Fatalf("%+v", mine.Items)
	}
	id := mine.Items[0].ID
	_, _, err = s.admin.Orders.Ship(s.Context(), id, dibs.ShipmentSpec{Carrier: "SF Express", TrackingNo: "SF1"})
	s.must(err)
	page.click("My orders")
	page.shows("On its way by SF Express, SF1")
	page.click("Close")
	_, _, err = s.admin.Orders.Refund(s.Context(), id, dibs.RefundSpec{Restock: true}, "")
	s.must(err)
	page.click("My orders")
	page.shows("CN¥299.00 went back to you.")
	if text := tells[string](page, "document.body.innerText"); strings.Contains(text, "29900") || strings.Contains(text, "T16:") || strings.Contains(text, "Z\n") {
		s.Errorf("raw numbers or times on the page:\n%s", text)
	}
}

// as is a user of dev without a browser.
func (s *shop) as(user string) *client.Client {
	s.Helper()
	c, err := client.New(s.url, client.Options{Token: "dev_" + user})
	s.must(err)
	s.Cleanup(c.CloseIdle)
	return c
}

// unpaidOrder: an order whose time runs out is sold to the next one who presses.
func unpaidOrder(s *shop) {
	within, units := dibs.Duration(12*time.Second), int64(1)
	s.campaign("brief", func(c *dibs.CampaignSpec) {
		c.Stock.Units, c.PayWithin, c.Price = &units, &within, &dibs.Money{Amount: 500, Currency: "CNY"}
	})
	page := s.visit("/c/brief", "bob", english)
	page.press()
	page.shows("It is yours!")
	page.shows("Sold out for now")
	page.shows("Open now")
	page = s.visit("/c/brief", "cid", chinese)
	page.press()
	page.shows("抢到了！")
	page.shows("待支付")
}

// pressedAtOnce: a finger is faster than the page looks for claims of before, and one press is one claim all the same.
func pressedAtOnce(s *shop) {
	s.campaign("quick", func(c *dibs.CampaignSpec) { c.Limit = new(int64(2)) })
	s.phone.before(s.T, `(() => {
		const ask = window.fetch;
		const answered = new Promise((done) => {
			const look = setInterval(() => document.querySelector("#answer .yes") && done(clearInterval(look)), 20);
		});
		window.presses = 0;
		window.fetch = async (address, options) => {
			if (String(address).includes("/v1/me/claims")) await answered;
			if (options?.method === "POST" && String(address).endsWith("/claims")) window.presses++;
			return ask(address, options);
		};
		new MutationObserver((_, watch) => {
			const button = document.getElementById("press");
			if (button && !button.disabled) {
				watch.disconnect();
				button.click();
			}
		}).observe(document, { childList: true, subtree: true });
	})()`)
	page := s.visit("/c/quick", "kim", english)
	page.looked()
	if n := tells[int](page, `fetch("/healthz").then(() => window.presses)`); n != 1 {
		s.Errorf("the page pressed %d times", n)
	}
	if mine := s.claimsOf("kim"); len(mine) != 1 {
		s.Errorf("%d claims of one press", len(mine))
	}
}

// behindTheNews: a campaign goes on when it is told to, whatever a node says that does not know it yet. A page whose
// campaign is gone does not ask for it again and again.
func behindTheNews(s *shop) {
	s.campaign("behind", func(*dibs.CampaignSpec) {})
	s.phone.before(s.T, `(() => {
		const ask = window.fetch;
		window.old = "";
		window.behind = window.gone = window.again = 0;
		const later = window.setTimeout;
		window.setTimeout = (what, ms) => (ms === 2000 && window.again++, later(what, ms));
		window.fetch = async (address, options) => {
			const answer = await ask(address, options);
			if (!String(address).endsWith("/campaigns/behind") || (options?.method || "GET") !== "GET") return answer;
			if (window.gone) return window.gone++, new Response('{"reason": "not_found", "status": 404}', { status: 404 });
			if (window.behind > 0) return window.behind--, new Response(window.old);
			window.old = await answer.text();
			return new Response(window.old);
		};
	})()`)
	page := s.visit("/c/behind", "lea", english)
	page.await(`document.getElementById("press")?.disabled === false`)
	_, err := s.admin.Campaigns.Pause(s.Context(), "behind")
	s.must(err)
	page.await(`window.old.includes("\"paused\"") && !document.getElementById("press")`)
	tells[bool](page, `!!(window.behind = 1)`)
	_, err = s.admin.Campaigns.Resume(s.Context(), "behind")
	s.must(err)
	page.await(`window.behind === 0`)
	if !tells[bool](page, `fetch("/healthz").then(() => !!document.getElementById("press"))`) {
		s.Error("the campaign goes on, and there is no button")
	}
	page.await(`!window.old.includes("\"paused\"")`)
	page.press()
	page.shows("It is yours!")
	before := tells[int](page, "window.gone = 1, window.again")
	s.patch("behind", dibs.CampaignPatch{Title: new("Ahead")})
	page.await("window.gone === 2")
	if before == 0 || tells[int](page, `fetch("/healthz").then(() => window.again)`) != before {
		s.Error("the page asks again for a campaign that is gone, or not for one that is behind")
	}
}

// noStreamOnce: a page whose stream was answered by a bad gateway asks for it again.
func noStreamOnce(s *shop) {
	s.campaign("streamed", func(*dibs.CampaignSpec) {})
	s.phone.before(s.T, `(() => {
		window.streams = [];
		window.EventSource = class extends window.EventSource {
			constructor(address) { super(window.streams.length ? address : "/v1/nothing"); window.streams.push(this); }
		};
	})()`)
	page := s.visit("/c/streamed", "lea", english)
	page.await(`window.streams.length === 2 && window.streams[1].readyState === EventSource.OPEN`)
	_, err := s.admin.Campaigns.Pause(s.Context(), "streamed")
	s.must(err)
	page.await(`!document.getElementById("press")`)
}

// fewerThanChosen: a user who chose two units, and has one of a limit of two, gets one more.
func fewerThanChosen(s *shop) {
	s.campaign("two", func(c *dibs.CampaignSpec) { c.Limit = new(int64(2)) })
	_, _, err := s.as("mia").Claim(s.Context(), "two", 1, "elsewhere")
	s.must(err)
	s.phone.before(s.T, `(() => {
		const ask = window.fetch, chosen = new Promise((done) => (window.chosen = done));
		window.fetch = async (address, options) => {
			if (String(address).includes("/v1/me/claims")) await chosen;
			return ask(address, options);
		};
	})()`)
	page := s.visit("/c/two", "mia", english)
	page.await(`(() => {
		const list = document.querySelector(".quantity select");
		if (!list) return false;
		list.value = "2";
		list.dispatchEvent(new Event("change", { bubbles: true }));
		window.chosen();
		return true;
	})()`)
	page.await(`document.getElementById("press")?.textContent.trim() === "Get one more" && !document.querySelector(".quantity")`)
	page.press()
	page.shows("It is yours!")
	if mine := s.claimsOf("mia"); len(mine) != 2 || mine[0].Quantity+mine[1].Quantity != 2 {
		s.Errorf("%+v", mine)
	}
}

// paidTwice: the same payment counts once, and another one for the same order is refused.
func paidTwice(s *shop) {
	within := dibs.Duration(time.Minute)
	s.campaign("twice", func(c *dibs.CampaignSpec) { c.PayWithin, c.Price = &within, &dibs.Money{Amount: 500, Currency: "CNY"} })
	page := s.visit("/c/twice", "ida", english)
	page.press()
	page.shows("Waiting for payment")
	page.click("Pay twice")
	page.shows("payment → taken · the same payment again → taken · a second payment → ")
	page.shows("Paid")
	mine, err := s.as("ida").Orders.Mine(s.Context(), dibs.OrderQuery{}, dibs.Page{})
	s.must(err)
	if c := mine.Items[0]; c.Status != "confirmed" || c.Payment == nil || c.Payment.Amount.Amount != 500 {
		s.Errorf("%+v", c)
	}
	if text := tells[string](page, `document.querySelector(".steps").innerText`); strings.Count(text, "taken") != 2 {
		s.Errorf("the second payment: %s", text)
	}
}

// moreThanAPage: a campaign that is published moves none out of the list.
func moreThanAPage(s *shop) {
	for i := range 20 {
		s.campaign(fmt.Sprintf("shelf-%02d", i), func(*dibs.CampaignSpec) {})
	}
	page := s.visit("/", "", english)
	const shelves = `document.querySelectorAll("a.offer[href*='/c/shelf-']").length`
	page.await(shelves + " === 20")
	s.campaign("newest", func(*dibs.CampaignSpec) {})
	page.shows("The newest")
	if n := tells[int](page, shelves); n != 20 {
		s.Errorf("%d of 20 are in the list that has one more", n)
	}
	page.click("Show more")
	page.shows("Sneaker drop")
	if n := tells[int](page, shelves); n != 20 {
		s.Errorf("%d of 20 are in the list that has a page more", n)
	}
}

// moreOrdersThanAPage: an impatient finger gets the rest of their orders once.
func moreOrdersThanAPage(s *shop) {
	units := int64(30)
	s.campaign("dozens", func(c *dibs.CampaignSpec) { c.Limit, c.Stock.Units = &units, &units })
	for i := range 22 {
		_, _, err := s.as("oli").Claim(s.Context(), "dozens", 1, fmt.Sprint(i))
		s.must(err)
	}
	page := s.visit("/", "oli", english)
	page.click("My orders")
	const orders = `document.querySelectorAll(".orders li").length`
	page.await(orders + " === 20")
	tells[bool](page, `(() => {
		const more = [...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Show more");
		more.click();
		more.click();
		return true;
	})()`)
	page.await(orders + ` > 20 && performance.getEntriesByType("resource").filter((e) => e.name.includes("claims?") && e.name.includes("cursor=")).length === 2`)
	if n := tells[int](page, `fetch("/healthz").then(() => `+orders+`)`); n != 22 {
		s.Errorf("%d orders are shown of 22", n)
	}
}

// paidElsewhere: who comes back from where they have paid sees that they have.
func paidElsewhere(s *shop) {
	within := dibs.Duration(time.Minute)
	s.campaign("elsewhere", func(c *dibs.CampaignSpec) { c.PayWithin, c.Price = &within, &dibs.Money{Amount: 500, Currency: "CNY"} })
	page := s.visit("/c/elsewhere", "pia", english)
	page.press()
	page.shows("Waiting for payment")
	id := s.claimsOf("pia")[0].ID
	tells[bool](page, fmt.Sprintf(`fetch("/v1/dev/payments", {
		method: "POST", headers: { Authorization: "Bearer dev_pia", "Content-Type": "application/json" }, body: JSON.stringify({ claim_id: %q, how: "now" }),
	}).then((r) => r.ok && document.dispatchEvent(new Event("visibilitychange")))`, id))
	page.shows("Paid")
}

// drawnInTheShop: a shopper registers for a draw, again after a reload, wins, and claims; another one comes too late.
// Packets behind a draw do not fall: the winner opens one with the button.
func drawnInTheShop(s *shop) {
	starts := time.Now().Add(20 * time.Second)
	drawn := func(c *dibs.CampaignSpec) {
		c.StartsAt = starts
		c.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: starts.Add(-2 * time.Second), Winners: 1}}
	}
	s.campaign("lots", drawn)
	s.campaign("packets", func(c *dibs.CampaignSpec) {
		drawn(c)
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 500, Currency: "CNY"}, Count: 1}}
	})
	page := s.visit("/c/packets", "jon", english)
	page.press()
	page.shows("You are registered.")
	page = s.visit("/c/lots", "jon", english)
	page.await(`document.querySelector("#press")?.dataset.press === "register"`)
	page.press()
	page.shows("You are registered.")
	page.await(`document.querySelector("#entry").dataset.result === "pending" && !document.querySelector("#press")`)
	entry, err := s.as("jon").Lotteries.Register(s.Context(), "lots")
	s.must(err)
	page.do(chromedp.Reload())
	page.shows(entry.Nonce)
	page.await(`document.querySelector("#entry").dataset.result === "won"`)
	page.shows("You have won")
	// A page that is opened after the draw, and gets no answer at first, says nothing about the registration, and asks again.
	s.phone.before(s.T, `(() => {
		const ask = window.fetch;
		let broken = false;
		window.fetch = async (at, options) => {
			if (!broken && String(at).endsWith("/lottery/result")) throw new TypeError((broken = true) && "the connection broke");
			return ask(at, options);
		};
	})()`)
	page = s.visit("/c/lots", "jon", english)
	page.shows("No connection. Trying again…")
	if text := tells[string](page, "document.body.innerText"); strings.Contains(text, "not registered") {
		s.Errorf("a winner is told:\n%s", text)
	}
	page.await(`document.querySelector("#entry")?.dataset.result === "won"`)
	page.press()
	page.shows("It is yours!")
	page = s.visit("/c/packets", "jon", english)
	page.await(`document.querySelector("#press")?.innerText === "Open a packet" && !document.querySelector("canvas.sky")`)
	page.press()
	page.shows("You opened a packet")
	page = s.visit("/c/lots", "kim", chinese)
	page.shows("登记已截止，您未登记。")
	if tells[bool](page, `!!document.querySelector("#press")`) {
		s.Error("who is not registered has a button")
	}
}

// killedInAPress: the server has taken a press and dies before its answer reaches the page. When the server is back, and
// the page loaded again, the order is there, once.
func killedInAPress(s *shop) {
	s.campaign("killed", func(*dibs.CampaignSpec) {})
	address := strings.TrimPrefix(s.url, "http://")
	network, err := badnet.Start(address)
	s.must(err)
	s.Cleanup(network.Stop)
	page := s.phone.open(s.T, "http://"+network.Addr()+"/c/killed#token=dev_fay", english)
	page.shows("Get it now")
	page.looked()
	// What the page sends arrives; no answer comes back.
	s.must(network.Poison("mute", "timeout", "downstream", map[string]int64{"timeout": 0}))
	page.press()
	var before []api.ClaimView
	clitest.Until(s.T, "granted to fay", func() bool {
		before = s.claimsOf("fay")
		return len(before) > 0
	})
	s.server.kill()
	page.shows("No answer came")
	page.shows("No connection. Trying again…")
	again := start(s.T, nil, "dev", "--listen", address, "--data", s.data)
	again.await(s.T, again.out, "Ctrl-C stops")
	network.Heal(s.Context())
	page.do(chromedp.Reload())
	page.shows("It is yours already.")
	page.shows(before[0].ID)
	page.await(`!document.body.innerText.includes("No connection.")`)
	if after := s.claimsOf("fay"); len(after) != 1 || after[0].ID != before[0].ID {
		s.Errorf("%+v before the kill, %+v after it", before, after)
	}
	if st, err := devAdmin(s.T, again).Campaigns.Stats(s.Context(), "killed"); err != nil || st.Granted != 1 {
		s.Errorf("%d granted, %v", st.Granted, err)
	}
}

// claimsOf asks the server itself for the claims of a user.
func (s *shop) claimsOf(user string) []api.ClaimView {
	s.Helper()
	mine, err := s.as(user).Orders.Mine(s.Context(), dibs.OrderQuery{}, dibs.Page{})
	s.must(err)
	return mine.Items
}
