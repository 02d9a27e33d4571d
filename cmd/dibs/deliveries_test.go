package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/webhooks"
)

// TestDeliveries lives the day of an operator whose webhook fails.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := startShop(t, "--webhook-allow-private")
	s.asAdmin()
	s.campaign("hooked", func(*dibs.CampaignSpec) {})
	var status atomic.Int64
	status.Store(http.StatusInternalServerError)
	address, hold := webhookOf(t, &status)

	page := s.console("/events", english)
	page.await(`(() => { const b = document.querySelector("[data-act=hook-add]"); b?.click(); return !!b; })()`)
	page.answer("url", address)
	page.shows("whsec_")
	_, _, err := s.as("7").Claim(s.Context(), "hooked", 1, "one")
	s.must(err)
	open := `(() => { const b = document.querySelector("[data-open]"); b?.click(); return !!document.querySelector("dialog[open] table"); })()`
	page.await(open)
	page.shows("next try")
	page.await(answeredBy("500"))
	page.pick("failed")
	page.shows("No deliveries.")

	// An answer of 410 wants no more: the delivery is given up, and the endpoint disabled.
	// The server also retries by itself. It gets the 410 only after the person has asked: a delivery that is given up and
	// asked for then waits until the endpoint is enabled.
	page.pick("pending")
	page.act("redeliver", "")
	hold(func() {
		page.yes()
		page.await(`!document.querySelector("dialog[open] form")`)
		status.Store(http.StatusGone)
	})
	page.pick("failed")
	page.await(answeredBy("410"))
	page = s.console("/", english)
	page.shows("1 dead letters: deliveries that were given up")
	page.await(`(() => { const a = [...document.querySelectorAll(".needs a")].find((a) => a.href.includes("delivery=failed")); a?.click(); return !!document.querySelector("dialog[open] table"); })()`)
	page.click("Close")

	status.Store(http.StatusOK)
	page.act("enable", "Enable")
	page.await(`!!document.querySelector("[data-act=disable]")`)
	page.await(open)
	page.act("redeliver-failed", "Deliver again")
	page.shows("Delivered again: 1")
	page.pick("delivered")
	page.await(answeredBy("200"))
	page.click("Close")

	page.act("disable", "Disable")
	page.await(`!!document.querySelector("[data-act=enable]")`)
	hooks := func() []webhooks.EndpointView {
		t.Helper()
		var list struct{ Items []webhooks.EndpointView }
		s.must(decode(tells[string](page, `fetch("/v1/webhook-endpoints").then((r) => r.text())`), &list))
		return list.Items
	}
	if all := hooks(); len(all) != 1 || !all[0].Disabled {
		t.Errorf("after disabling: %+v", all)
	}
	newSecret(page)
	page.act("hook-drop", "")
	if text := tells[string](page, `document.querySelector("dialog[open] form").innerText`); !strings.Contains(text, address) {
		t.Errorf("the question names no webhook: %s", text)
	}
	page.yes()
	clitest.Until(t, "no webhook is left", func() bool { return len(hooks()) == 0 })
}

// webhookOf starts a webhook that answers with a status, and with nothing during what hold runs.
func webhookOf(t *testing.T, status *atomic.Int64) (address string, hold func(during func())) {
	t.Helper()
	var answering sync.Mutex
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answering.Lock()
		defer answering.Unlock()
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL, func(during func()) {
		answering.Lock()
		defer answering.Unlock()
		during()
	}
}

// pick chooses a status of deliveries, which then stands in the address.
func (p *tab) pick(status string) {
	p.Helper()
	p.await(`(() => {
		const f = document.querySelector("dialog[open] select");
		f.value = "` + status + `";
		f.dispatchEvent(new Event("change", { bubbles: true }));
		return new URLSearchParams(location.search).get("delivery") === "` + status + `";
	})()`)
}

// answeredBy says that one of the deliveries that are shown got this answer.
func answeredBy(status string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("dialog[open] td:nth-child(3)")].some((td) => td.innerText.trim().startsWith(%q))`, status)
}

// newSecret gives a webhook a new secret, twice: the answer of the first gets lost, and its repeat has none.
func newSecret(page *tab) {
	page.Helper()
	tells[bool](page, `(() => {
		const ask = window.fetch;
		window.fetch = async (address, options) => {
			const answer = await ask(address, options);
			if (!String(address).endsWith("/rotate-secret")) return answer;
			window.fetch = ask;
			throw new TypeError("the connection broke");
		};
		return true;
	})()`)
	page.act("hook-rotate", "New secret")
	page.shows("got lost. Give the webhook a new secret.")
	page.act("hook-rotate", "New secret")
	page.shows("whsec_")
}
