package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs"
)

// claimsCounted is a script that counts the claims that a page sends: over its WebSocket, and over HTTP.
const claimsCounted = `(() => {
	const ask = window.fetch, send = WebSocket.prototype.send;
	window.claims = { socket: 0, http: 0 };
	window.fetch = (address, options) => {
		if (options?.method === "POST" && String(address).endsWith("/claims")) claims.http++;
		return ask(address, options);
	};
	WebSocket.prototype.send = function (text) {
		if (JSON.parse(text).type === "claim") claims.socket++;
		return send.call(this, text);
	};
})()`

// rain: packets fall; of a hundred taps, which go over the WebSocket, one is granted, and the balance is what was in it.
func rain(s *shop) {
	s.campaign("rain", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 5000, Currency: "CNY"}, Count: 2}}
	})
	// Where the socket fails the page asks over HTTP, and shows the same.
	s.phone.before(s.T, claimsCounted)
	page := s.visit("/c/rain", "dan", english)
	page.await(`!!document.querySelector("canvas.sky")`)
	if tells[bool](page, `document.querySelector("[aria-pressed]").getAttribute("aria-pressed") === "true"`) {
		s.Error("the sound is on")
	}
	tells[bool](page, `(async () => {
		const sky = document.querySelector("canvas.sky");
		for (let i = 0; i < 100; i++) {
			sky.dispatchEvent(new PointerEvent("pointerdown", { clientX: 20 + (i * 37) % 350, clientY: 90 + (i * 61) % 700, bubbles: true }));
			document.getElementById("press")?.click();
			await new Promise((done) => setTimeout(done, 5));
		}
		return true;
	})()`)
	page.shows("You opened a packet")
	if sent := tells[map[string]int](page, "claims"); sent["socket"] == 0 || sent["http"] > 0 {
		s.Errorf("claims went over %v", sent)
	}
	mine, err := s.as("dan").Orders.Mine(s.Context(), dibs.OrderQuery{}, dibs.Page{})
	s.must(err)
	if len(mine.Items) != 1 {
		s.Fatalf("%d claims of a hundred taps", len(mine.Items))
	}
	share := mine.Items[0].Amount.Amount
	page.await(fmt.Sprintf(`document.querySelector("#share b")?.dataset.minor === "%[1]d" && document.querySelector("#balance b")?.dataset.minor === "%[1]d"`, share))
	page.await(fmt.Sprintf(`document.querySelector("#share b").textContent === document.querySelector("#balance b").textContent && document.querySelector("#share b").textContent.endsWith("%02d")`, share%100))
	_, _, err = s.as("eve").Claim(s.Context(), "rain", 1, "one")
	s.must(err)
	page.shows("Best of luck")
	page.shows("e***e")
	page.await(`document.querySelector("#luck li.me")?.innerText.includes("You")`)
	page.shows("CN¥50.00 shared in 2 packets.")
	page.await(`/It took \d/.test(document.querySelector("#luck").innerText)`)
	page = s.visit("/c/rain", "dan", english)
	page.shows("You have opened yours already")
	page = s.visit("/c/rain", "gil", english)
	page.shows("All packets are gone")
	page.shows("CN¥50.00 shared in 2 packets.")
	if text := tells[string](page, "document.body.innerText"); strings.Contains(text, "not paid in time") {
		s.Errorf("packets do not come back:\n%s", text)
	}
}

// stillRain: for users who prefer less motion nothing falls, and a keyboard opens a packet; before the start there is
// a countdown.
func stillRain(s *shop) {
	packet := func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 100, Currency: "CNY"}, Count: 1}}
	}
	s.campaign("still", packet)
	s.campaign("later", func(c *dibs.CampaignSpec) {
		packet(c)
		c.StartsAt = time.Now().Add(30 * time.Minute)
	})
	page := s.visit("/", "", english)
	prefer := func(motion string) {
		page.do(emulated(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}}}))
	}
	prefer("reduce")
	defer prefer("")
	page = s.visit("/c/later", "hal", english)
	page.shows("Starts in")
	page.await(`!!document.querySelector("#count") && !document.querySelector("#press")`)
	page = s.visit("/c/still", "hal", english)
	page.shows("Press the button to open a packet.")
	if tells[bool](page, `!!document.querySelector("canvas")`) {
		s.Error("packets fall")
	}
	page.tabTo("#press")
	page.keys("\r")
	page.shows("You opened a packet")
	page.await(`document.querySelector("#share b").textContent === "CN¥1.00"`)
}

// severalShares: where a user may have two shares, the button stays until they have both. A device that makes no sound
// is none the worse for it.
func severalShares(s *shop) {
	s.campaign("shares", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 500, Currency: "CNY"}, Count: 3}}
		c.Limit = new(int64(2))
	})
	s.phone.before(s.T, "delete window.AudioContext")
	page := s.visit("/c/shares", "nat", english)
	page.do(chromedp.Click("[aria-pressed=false]", chromedp.NodeVisible), chromedp.WaitVisible("[aria-pressed=true]"))
	page.press()
	page.shows("You opened a packet")
	page.await(`document.querySelector("#press")?.innerText === "Get one more"`)
	page.press()
	page.await(`!document.querySelector("#press") && !!document.querySelector("#share")`)
	if mine := s.claimsOf("nat"); len(mine) != 2 {
		s.Errorf("%d shares of two", len(mine))
	}
}

// moreThanTheList: the list of the luckiest says how many there are beside the ones that it names.
func moreThanTheList(s *shop) {
	s.campaign("crowd", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 5000, Currency: "CNY"}, Count: 23}}
	})
	for i := range 23 {
		_, _, err := s.as(fmt.Sprint("c", i)).Claim(s.Context(), "crowd", 1, "one")
		s.must(err)
	}
	page := s.visit("/c/crowd", "c0", english)
	page.await(`document.querySelectorAll("#luck li").length === 20`)
	page.shows("and 3 more")
}

// cutSocket: the page gives up a connection that was cut without being closed. The next tap opens another one, and a turn
// in a waiting room is seen.
func cutSocket(s *shop) {
	s.campaign("cut", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 300, Currency: "CNY"}, Count: 3}}
		c.Limit = new(int64(2))
	})
	// The page waits for less than usual where it waits in vain, so that the test is short.
	s.phone.before(s.T, `(() => {
		const later = window.setTimeout, every = window.setInterval, real = window.WebSocket;
		window.setTimeout = (what, ms) => later(what, ms === 8000 && window.sockets.at(-1)?.cut ? 2000 : ms);
		window.setInterval = (what, ms) => every(what, ms === 20000 ? 3000 : ms);
		window.sockets = [];
		window.WebSocket = class extends real {
			constructor(address) {
				super(address);
				this.pongs = this.claims = 0;
				this.addEventListener("message", (e) => {
					if (this.cut) return e.stopImmediatePropagation();
					const is = JSON.parse(e.data).type;
					if (is === "welcome") this.welcome = true;
					if (is === "pong") this.pongs++;
				});
				window.sockets.push(this);
			}
			send(text) {
				if (JSON.parse(text).type === "claim") this.claims++;
				super.send(text);
			}
		};
	})()`)
	page := s.visit("/c/cut", "rob", english)
	page.await(`sockets[0]?.welcome`)
	tells[bool](page, `sockets[0].cut = true`)
	page.press()
	page.shows("You have opened yours already")
	page.await(`document.querySelector("#press")?.innerText === "Get one more"`)
	page.press()
	page.await(`!document.querySelector("#press")`)
	if claims := tells[[]int](page, `sockets.map((s) => s.claims)`); fmt.Sprint(claims) != "[1 1]" {
		s.Errorf("claims over the sockets: %v", claims)
	}
	if mine := s.claimsOf("rob"); len(mine) != 2 {
		s.Errorf("%d shares of two", len(mine))
	}

	room := &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Per: dibs.Duration(time.Minute), Burst: 1}
	s.campaign("corridor", func(c *dibs.CampaignSpec) { c.Gate = &dibs.GateSpec{Room: room} })
	for i := range 2 {
		_, err := s.as(fmt.Sprint("ahead", i)).Rooms.Join(s.Context(), "corridor")
		s.must(err)
	}
	page = s.visit("/c/corridor", "rob", english)
	page.press()
	page.shows("Waiting for your turn")
	page.await(`sockets.at(-1)?.pongs > 1`)
	tells[bool](page, `sockets.at(-1).cut = true`)
	room.Rate, room.Per, room.Burst = 1000, 0, 1000
	s.patch("corridor", dibs.CampaignPatch{Gate: &dibs.GateSpec{Room: room}})
	page.shows("It is your turn.")
}

// swallowedSocket: behind a proxy that neither takes nor refuses WebSockets, a packet is opened over HTTP after a while, and
// a turn in a waiting room is seen.
func swallowedSocket(s *shop) {
	s.campaign("swallowed", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 100, Currency: "CNY"}, Count: 1}}
	})
	to, err := url.Parse(s.url)
	s.must(err)
	through := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/ws" {
			<-r.Context().Done()
			return
		}
		through.ServeHTTP(w, r)
	}))
	s.Cleanup(proxy.Close)
	page := s.phone.open(s.T, proxy.URL+"/c/swallowed#token=dev_lea", english)
	page.press()
	page.shows("You opened a packet")
	room := &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 1}
	s.campaign("hall", func(c *dibs.CampaignSpec) { c.Gate = &dibs.GateSpec{Room: room} })
	for i := range 60 {
		_, err := s.as(fmt.Sprint("early", i)).Rooms.Join(s.Context(), "hall")
		s.must(err)
	}
	page = s.phone.open(s.T, proxy.URL+"/c/hall#token=dev_lea", english)
	page.press()
	page.shows("Waiting for your turn")
	room.Rate, room.Burst = 1000, 1000
	s.patch("hall", dibs.CampaignPatch{Gate: &dibs.GateSpec{Room: room}})
	page.shows("It is your turn.")
}
