package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/lab"
)

// TestPage looks at campaigns' pages with a real browser, on a telephone.
func TestPage(t *testing.T) {
	t.Parallel()
	_, url := startServe(t, t.TempDir())
	all := pages{T: t, url: url, admin: clitest.Admin(t, url), phone: startBrowser(t)}
	for _, c := range []struct {
		name string
		look func(*pages)
	}{
		{"before the sale", beforeTheSale},
		{"a claim", claimOnThePage},
		{"several claims", severalOnThePage},
		{"in Chinese", pageInChinese},
		{"what an admin does", changesOnThePage},
		{"a waiting room", roomOnThePage},
		{"tickets", ticketOnThePage},
		{"an answer that is lost", lostOnThePage},
		{"the answer of a second order that is lost", secondLostOnThePage},
		{"a red packet", shareOnThePage},
		{"who does not count", strangersOnThePage},
		{"a WebSocket of the browser's own", socketOfTheBrowser},
		{"the page of the lab", pageOfTheLab},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := all
			p.T = t
			c.look(&p)
		})
	}
}

// pages are the campaigns of a server, looked at by a browser.
type pages struct {
	*testing.T
	url   string
	admin *client.Client
	phone *phone
}

func (p *pages) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// campaign publishes a campaign, of ten units and open unless change says
// otherwise.
func (p *pages) campaign(id string, change func(*dibs.CampaignSpec)) {
	p.Helper()
	units := int64(10)
	spec := dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: "The " + id, Stock: dibs.StockSpec{Units: &units},
		StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
	}
	change(&spec)
	_, err := p.admin.Campaigns.Create(p.Context(), spec, "")
	p.must(err)
	_, err = p.admin.Campaigns.Publish(p.Context(), id)
	p.must(err)
}

// patch changes a campaign.
func (p *pages) patch(id string, patch dibs.CampaignPatch) {
	p.Helper()
	_, err := p.admin.Campaigns.Patch(p.Context(), id, patch)
	p.must(err)
}

func (p *pages) token(user string) string {
	p.Helper()
	token, err := httpapi.IssueToken([]byte(clitest.Secret), user, time.Hour)
	p.must(err)
	return token
}

// as is a user without a browser.
func (p *pages) as(user string) *client.Client {
	p.Helper()
	c, err := client.New(p.url, client.Options{Token: p.token(user)})
	p.must(err)
	p.Cleanup(c.CloseIdle)
	return c
}

// open opens a campaign's page as a user; "" for none.
func (p *pages) open(id, user, language string) *tab {
	p.Helper()
	address := p.url + "/c/" + id
	if user != "" {
		address += "#token=" + p.token(user)
	}
	tab := p.phone.open(p.T, address, language)
	if at := tells[string](tab, "location.href"); at != p.url+"/c/"+id {
		p.Errorf("the address is %s: a token stands in it", at)
	}
	return tab
}

const english, chinese = "en-US,en", "zh-CN,zh"

// beforeTheSale: the page counts down, and has its button when the time has come.
func beforeTheSale(p *pages) {
	p.campaign("soon", func(c *dibs.CampaignSpec) {
		c.Title = strings.Repeat("Averylongnameofaphonethatnobodycanbreak", 3)
		c.StartsAt, c.Price = time.Now().Add(30*time.Minute), &dibs.Money{Amount: 128_000, Currency: "JPY"}
	})
	page := p.open("soon", "42", english)
	page.shows("Starts in")
	page.shows("¥128,000\n")
	count := `[...document.querySelectorAll("#count b")].map((b) => b.textContent).join(":")`
	page.await(`/^00:[0-3][0-9]:[0-5][0-9]$/.test(` + count + `)`)
	before := tells[string](page, count)
	page.await(fmt.Sprintf(count+` < %q`, before))
	if tells[bool](page, `!!document.getElementById("press")`) {
		p.Error("there is a button before the start")
	}
	p.campaign("presently", func(c *dibs.CampaignSpec) { c.StartsAt = time.Now().Add(2 * time.Second) })
	page = p.open("presently", "42", english)
	page.shows("Open now")
	page.press()
	page.shows("It is yours!")
}

// claimOnThePage: a claim by the button, the same one for a page that does not know of
// it yet, and no button to press while the user has all that they may have.
func claimOnThePage(p *pages) {
	p.campaign("phone", func(*dibs.CampaignSpec) {})
	page := p.open("phone", "7", english)
	page.shows("Left: 10")
	page.press()
	page.shows("It is yours!")
	page.shows("Left: 9")
	mine, err := p.as("7").Orders.Mine(p.Context(), dibs.OrderQuery{}, dibs.Page{})
	p.must(err)
	if len(mine.Items) != 1 {
		p.Fatalf("%d claims", len(mine.Items))
	}
	claim := mine.Items[0].ID
	page.shows(claim)
	page.await(full("Yours already"))
	page.do(chromedp.Reload())
	page.shows(claim)
	page.await(full("Yours already"))
	page = p.open("phone", "8", english)
	page.shows("Left: 9")
	page.looked()
	// Another device of the user's sends the same key.
	_, _, err = p.as("8").Claim(p.Context(), "phone", 1, "page-1")
	p.must(err)
	page.press()
	page.shows("It is yours already.")
	if st, err := p.admin.Campaigns.Stats(p.Context(), "phone"); err != nil || st.Granted != 2 {
		p.Errorf("%+v, %v", st, err)
	}
}

// full holds on a page whose button says so and cannot be pressed: its user has all
// that they may have.
func full(label string) string {
	return fmt.Sprintf(`(() => { const b = document.getElementById("press"); return !!b && b.disabled && b.textContent === %q; })()`, label)
}

// severalOnThePage: where a user may have two, the button asks for one more until they
// have them, and comes back with an order that is cancelled.
func severalOnThePage(p *pages) {
	minute := dibs.Duration(time.Minute)
	p.campaign("pair", func(c *dibs.CampaignSpec) { c.Limit, c.PayWithin = new(int64(2)), &minute })
	page := p.open("pair", "7", english)
	page.press()
	page.shows("Get one more")
	page.press()
	page.await(full("Yours already"))
	page.shows("Left: 8")
	tells[bool](page, `(window.confirm = () => true)()`)
	page.click("Cancel the order")
	page.shows("Get one more")
	page.press()
	page.await(full("Yours already"))
}

// pageInChinese: everything is said in the reader's language, refusals too.
func pageInChinese(p *pages) {
	p.campaign("zhongwen", func(*dibs.CampaignSpec) {})
	page := p.open("zhongwen", "42", chinese)
	page.shows("正在进行")
	page.shows("立即抢购")
	page.looked()
	_, _, err := p.as("42").Claim(p.Context(), "zhongwen", 1, "elsewhere")
	p.must(err)
	page.shows("剩余： 9")
	page.press()
	page.shows("每人限领 1 件")
	page.do(chromedp.Reload())
	page.await(full("您已抢到"))
	if text := tells[string](page, "document.body.innerText"); strings.Contains(text, "Limit") || strings.Contains(text, "Claim") {
		p.Errorf("some of it is in English:\n%s", text)
	}
}

// changesOnThePage: what happens to the campaign is seen without a reload.
func changesOnThePage(p *pages) {
	p.campaign("moody", func(c *dibs.CampaignSpec) { *c.Stock.Units = 1 })
	page := p.open("moody", "42", english)
	page.shows("Open now")
	hidden := `!document.getElementById("press")`
	_, err := p.admin.Campaigns.Pause(p.Context(), "moody")
	p.must(err)
	page.shows("Paused for the moment")
	page.await(hidden)
	_, err = p.admin.Campaigns.Resume(p.Context(), "moody")
	p.must(err)
	page.shows("Open now")
	page.await("!(" + hidden + ")")
	_, _, err = p.as("43").Claim(p.Context(), "moody", 1, "first")
	p.must(err)
	page.shows("Sold out")
	page.shows("Left: 0")
	page.await(hidden)
	_, err = p.admin.Campaigns.ChangeStock(p.Context(), "moody", dibs.StockChange{Delta: 1}, "one-more")
	p.must(err)
	page.shows("Open now")
	title := "The last one"
	p.patch("moody", dibs.CampaignPatch{Title: &title})
	page.await(`document.querySelector("h1").textContent === "The last one"`)
	page.press()
	page.shows("It is yours!")
	page.shows("Sold out")
	_, err = p.admin.Campaigns.End(p.Context(), "moody")
	p.must(err)
	page.shows("It is over")
}

// roomOnThePage: a place in the waiting room, which comes nearer, and the claim
// once it is the user's turn.
func roomOnThePage(p *pages) {
	// One a second: on a slow machine, too, the queue outlasts what is looked at here.
	room := &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Burst: 1}
	p.campaign("queued", func(c *dibs.CampaignSpec) { c.Gate = &dibs.GateSpec{Room: room} })
	for i := range 60 {
		_, err := p.as(fmt.Sprintf("early%d", i)).Rooms.Join(p.Context(), "queued")
		p.must(err)
	}
	page := p.open("queued", "42", english)
	page.shows("places by arrival")
	page.shows("Take a place in the queue")
	page.press()
	page.shows("Waiting for your turn")
	position := `Number(document.getElementById("position").textContent)`
	first := tells[int](page, position)
	if first < 2 {
		p.Errorf("position %d behind sixty", first)
	}
	page.await(fmt.Sprintf("%[1]s > 0 && %[1]s < %[2]d", position, first))
	room.Rate, room.Burst = 1000, 1000
	p.patch("queued", dibs.CampaignPatch{Gate: &dibs.GateSpec{Room: room}})
	page.shows("It is your turn.")
	// What is said at once is said once: that it is one's turn, and not each second of it.
	page.await(`document.querySelector("#place [role=timer]")?.innerText.startsWith("Claim within 1:")`)
	page.await(`document.title === "It is your turn. The queued"`)
	page.press()
	page.shows("It is yours!")
	page.await(`document.title === "The queued"`)
}

// ticketOnThePage: the page does the work that a ticket costs, and shows how far it is.
func ticketOnThePage(p *pages) {
	p.campaign("guarded", func(c *dibs.CampaignSpec) {
		c.Gate = &dibs.GateSpec{Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: 12}}
	})
	page := p.open("guarded", "42", english)
	tells[bool](page, `!(window.worked = [], new MutationObserver(() => {
		const bar = document.querySelector(".work progress");
		if (bar) window.worked.push(bar.value);
	}).observe(document.body, { subtree: true, childList: true, attributes: true }))`)
	page.press()
	page.shows("It is yours!")
	if worked := tells[[]float64](page, "window.worked"); len(worked) == 0 || slices.Max(worked) > 1 || !slices.IsSorted(worked) {
		p.Errorf("the work was shown as %v", worked)
	}
}

// lostOnThePage: a user whose answer was lost learns in the end that the claim was
// granted: neither a used ticket nor a limit takes the place of the answer.
func lostOnThePage(p *pages) {
	p.campaign("torn", func(c *dibs.CampaignSpec) {
		c.Gate = &dibs.GateSpec{Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(time.Minute), WorkBits: 1}}
	})
	page := p.open("torn", "42", english)
	tells[bool](page, `(() => {
		const real = fetch;
		window.claims = 0;
		window.fetch = async (address, options) => {
			const nth = String(address).endsWith("/claims") ? ++claims : 0;
			if (nth === 2) return new Response('{"reason":"rate_limited","detail":"you ask too often"}', { status: 429 });
			const answer = await real(address, options);
			if (nth === 1) throw new TypeError("the connection broke");
			return answer;
		};
		return true;
	})()`)
	page.press()
	page.shows("No answer came")
	_, err := p.admin.Campaigns.End(p.Context(), "torn")
	p.must(err)
	page.shows("It is over")
	page.press()
	page.await("claims === 2 && !document.getElementById('press').disabled")
	// A page that is loaded again finds the answer by itself.
	page.do(chromedp.Navigate(p.url + "/c/torn?again"))
	page.shows("It is over")
	page.shows("It is yours already.")
}

// secondLostOnThePage: where a user may have several, an answer that was lost is asked for as what it was, also by a page
// that is loaded again: it orders nothing more.
func secondLostOnThePage(p *pages) {
	p.campaign("several", func(c *dibs.CampaignSpec) { c.Limit = new(int64(6)) })
	page := p.open("several", "42", english)
	page.press()
	page.shows("Get one more")
	tells[bool](page, `(() => {
		const real = fetch, units = document.querySelector(".quantity select");
		window.fetch = async (address, options) => {
			const answer = await real(address, options);
			if (String(address).endsWith("/claims")) throw new TypeError("the connection broke");
			return answer;
		};
		units.value = "2";
		return units.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
	page.press()
	page.shows("No answer came")
	page.do(chromedp.Reload())
	page.shows("It is yours already.")
	if st, err := p.admin.Campaigns.Stats(p.Context(), "several"); err != nil || st.Granted != 3 {
		p.Errorf("one unit and two were ordered: %+v, %v", st, err)
	}
}

// shareOnThePage: a share of a red packet is an amount of its currency.
func shareOnThePage(p *pages) {
	p.campaign("yen", func(c *dibs.CampaignSpec) {
		c.Kind = dibs.RedPacket
		c.Stock = dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 700, Currency: "JPY"}, Count: 1}}
	})
	page := p.open("yen", "42", english)
	page.press()
	page.shows("You opened a packet")
	page.shows("¥700\n")
}

// strangersOnThePage: there is no button without a user, and the page explains a token
// that is no longer valid.
func strangersOnThePage(p *pages) {
	p.campaign("strange", func(*dibs.CampaignSpec) {})
	page := p.open("strange", "", english)
	page.shows("Open now")
	if tells[bool](page, `!!document.getElementById("press")`) {
		p.Error("nobody has a button")
	}
	token := p.token("42")
	page.do(chromedp.Navigate(p.url+"/c/strange?again#voucher=mine&token="+token), chromedp.WaitVisible("#press"))
	// A link of somebody else's changes nothing until its reader says so.
	page.do(chromedp.Navigate(p.url + "/c/strange?other#token=" + p.token("mallory") + "&voucher=theirs"))
	page.shows("This link is for user mallory. You are user 42.")
	const has = `location.hash + sessionStorage.getItem("dibs-token") + " " + sessionStorage.getItem("dibs-voucher-strange")`
	if is := tells[string](page, has); is != token+" mine" {
		p.Errorf("the tab has %q", is)
	}
	page.do(chromedp.Click("#stay"), chromedp.WaitNotPresent("#stay"))
	page.do(chromedp.Navigate(p.url + "/c/strange?again#token=forged"))
	page.do(chromedp.Click("#switch"))
	page.await(reloaded)
	page.press()
	page.shows("You are not signed in any more")
	if is := tells[string](page, has); is != "forged null" {
		p.Errorf("the tab of another user has %q", is)
	}
	// An answer that one user misses is no press of the next one in the same tab.
	page = p.open("strange", "42", english)
	tells[bool](page, `(() => {
		const real = fetch;
		window.fetch = async (address, options) => {
			const answer = await real(address, options);
			if (options?.method === "POST") throw new TypeError("the connection broke");
			return answer;
		};
		return true;
	})()`)
	page.press()
	page.shows("No answer came")
	p.campaign("stranger", func(*dibs.CampaignSpec) {})
	become := func(user string) {
		page.do(chromedp.Navigate(p.url + "/c/stranger#token=" + p.token(user)))
		page.do(chromedp.Click("#switch"))
		page.await(reloaded)
		page.do(chromedp.Navigate(p.url + "/c/strange"))
	}
	become("mallory")
	page.await(`document.getElementById("press")?.textContent === "Get it now"`)
	page.looked()
	// A press that follows would be under way now.
	tells[bool](page, `fetch("/healthz").then((r) => r.ok)`)
	if mine, err := p.as("mallory").Orders.Mine(p.Context(), dibs.OrderQuery{}, dibs.Page{}); err != nil || len(mine.Items) != 0 {
		p.Errorf("claimed without a press: %+v, %v", mine.Items, err)
	}
	become("42")
	page.shows("It is yours already.")
}

// socketOfTheBrowser: a client of the gateway that is not ours. The ticket opens
// one WebSocket, and a tap that is sent again is the same claim.
func socketOfTheBrowser(p *pages) {
	p.campaign("taps", func(*dibs.CampaignSpec) {})
	page := p.open("taps", "", english)
	heard := tells[[]map[string]any](page, fmt.Sprintf(`(async () => {
		const asked = await fetch("/v1/ws-tickets", { method: "POST", headers: { Authorization: "Bearer %s" } });
		const address = "ws://" + location.host + "/v1/ws?ticket=" + (await asked.json()).ticket;
		const heard = [], tap = JSON.stringify({ type: "claim", id: "tap-1", campaign_id: "taps" });
		const ws = new WebSocket(address);
		await new Promise((done) => {
			ws.onmessage = (e) => {
				heard.push(JSON.parse(e.data));
				heard.length < 3 ? ws.send(tap) : ws.close();
			};
			ws.onclose = done;
		});
		const second = new WebSocket(address);
		heard.push(await new Promise((done) => {
			second.onmessage = () => done({ type: "let in" });
			second.onerror = () => done({ type: "refused" });
		}));
		return heard;
	})()`, p.token("42")))
	var types []any
	for _, m := range heard {
		types = append(types, m["type"])
	}
	if fmt.Sprint(types) != "[welcome result result refused]" || heard[0]["user_id"] != "42" {
		p.Fatalf("heard %v", heard)
	}
	first, again := heard[1], heard[2]
	if first["outcome"] != "granted" || first["replayed"] != nil || again["replayed"] != true || again["id"] != "tap-1" ||
		first["claim"].(map[string]any)["id"] != again["claim"].(map[string]any)["id"] {
		p.Errorf("heard %v, then %v", first, again)
	}
}

// pageOfTheLab fits a telephone, too.
func pageOfTheLab(p *pages) {
	report := &lab.Report{Preset: "small", Users: 2000, Requests: 5000, Stock: 200, Machine: strings.Repeat("a long name of a machine ", 5), At: time.Now()}
	for i, name := range []string{"naive", "stock-lock-of-a-very-long-name", "dibs"} {
		report.Results = append(report.Results, lab.Result{
			Strategy: name, Does: "sells", Teaches: "something", Granted: 200, AnswersPerSecond: 1000 * float64(i+1), GrantsPerSecond: 100, P50MS: 1, P99MS: 9,
		})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := report.HTML(w); err != nil {
			p.Error(err)
		}
	}))
	p.Cleanup(server.Close)
	p.phone.open(p.T, server.URL, english).shows("What it takes to sell what runs out")
}
