package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// phone is the one tab of a Chromium without a window, as wide as a telephone.
type phone struct {
	ctx context.Context
	// shown is the page that is looked at.
	shown *tab
	mu    sync.Mutex
	// wrong is what the page has complained of.
	wrong []string
}

// phoneWidth and phoneHeight are in CSS pixels.
const phoneWidth, phoneHeight = 390, 844

// userAgent is what the browser says that it is.
const userAgent = "Chromium"

// startBrowser starts Chromium for the length of the test. Where it runs as root
// it has no sandbox; it is shown nothing but our own pages.
func startBrowser(t *testing.T) *phone {
	t.Helper()
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(clitest.Patience))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	p := &phone{}
	p.ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Listen(p.ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	return p
}

// tab is an open page.
type tab struct {
	*testing.T
	*phone
}

// open opens a page in a user's language. When the test leaves it, the page must have
// fitted and reported no error.
func (p *phone) open(t *testing.T, url, language string) *tab {
	t.Helper()
	if p.shown != nil {
		p.shown.close()
	}
	tab := &tab{t, p}
	speak := emulation.SetUserAgentOverrideParams{UserAgent: userAgent, AcceptLanguage: language}
	tab.do(chromedp.EmulateViewport(phoneWidth, phoneHeight, chromedp.EmulateMobile), func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetUserAgentOverride, speak)
		return chromedp.Void{}, err
	}, chromedp.Navigate(url))
	p.shown = tab
	t.Cleanup(tab.close)
	return tab
}

// before runs a script in every page that the test opens, before the page's own.
func (p *phone) before(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, clitest.Patience)
	defer cancel()
	id, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (page.ScriptIdentifier, error) {
		added, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return added.Identifier, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		(&tab{t, p}).do(emulated(page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: id}))
	})
}

// hear records the errors that a page reports. A refused request is none, although the
// browser reports it: refusals are answers.
func (p *phone) hear(event any) {
	var wrong string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		wrong = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			wrong += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		wrong = fmt.Sprintf("console.%s", e.Type)
	case *cdplog.EventEntryAdded:
		if e.Entry.Source == cdplog.EntrySourceNetwork || e.Entry.Level != cdplog.EntryLevelError && e.Entry.Level != cdplog.EntryLevelWarning {
			return
		}
		wrong = fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text)
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, wrong)
}

// close checks what every page must keep at its end: its width fits, and nothing went
// wrong. It leaves nothing for the next page.
func (p *tab) close() {
	p.Helper()
	if p.shown != p {
		return
	}
	p.shown = nil
	if wide := tells[int](p, "document.documentElement.scrollWidth"); wide > phoneWidth {
		p.Errorf("the page is %d wide, the telephone %d", wide, phoneWidth)
	}
	tells[bool](p, "sessionStorage.clear() || true")
	p.do(chromedp.Navigate("about:blank"))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		p.Errorf("the page complains: %s", w)
	}
	p.wrong = nil
}

// do takes steps, none of which takes long.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, clitest.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.Fatal(err)
	}
}

// tells is what an expression of JavaScript comes to, in the end.
func tells[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, clitest.Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until an expression holds.
func (p *tab) await(expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, clitest.Patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0)))
		switch {
		case err == nil:
			return
		case ctx.Err() == nil && (strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated or closed")):
			// It was asked of the page before, which is gone meanwhile.
		default:
			p.Fatalf("%s: %v; the page shows:\n%s", expression, err, tells[string](p, "document.body.innerText"))
		}
	}
}

// shows waits until people see a text on the page.
func (p *tab) shows(text string) {
	p.Helper()
	p.await(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// looked waits until a campaign's page has looked for claims of before: it does not know
// of those that follow.
func (p *tab) looked() {
	p.Helper()
	p.await(`performance.getEntriesByType("resource").some(e => e.name.includes("/v1/me/claims"))`)
}

// reloaded says that the page was opened anew by its own doing.
const reloaded = `performance.getEntriesByType("navigation")[0].type === "reload"`

// press presses the button as a finger does, once it can be pressed and has stood still for a
// look: what comes with the first event moves it.
func (p *tab) press() {
	p.Helper()
	p.await(`(() => {
		const b = document.getElementById("press"), at = JSON.stringify(b?.getBoundingClientRect()), still = window.pressAt === at;
		window.pressAt = at;
		return b?.disabled === false && still;
	})()`)
	p.do(chromedp.Click(chromedp.CSS("#press"), chromedp.NodeVisible))
}
