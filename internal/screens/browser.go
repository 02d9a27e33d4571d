package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take until it can be photographed.
// Most take a second; on a machine that does much else, one may take a hundred times as long.
const patience = 2 * time.Minute

// browser is the one tab of a Chromium without a window.
//
// One goroutine drives it. mu guards what stands below it: events of the browser come
// from another goroutine.
type browser struct {
	ctx   context.Context
	close func()

	mu    sync.Mutex
	wrong []string
	// host is the only one that pages may ask.
	host string
}

// openBrowser starts Chromium, as it is built to have no window at all: the whole one takes five times as much of the
// processor. Where it runs as root it has no sandbox; it is shown nothing but our own pages.
// Unless it is to be measured, its compilers that optimize are off: for scripts that run once they would take a quarter of
// the processor time.
// An error means that there is no Chromium, or that it does not start; nothing is
// left running then.
func openBrowser(ctx context.Context, measured bool) (*browser, error) {
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		return nil, err
	}
	// So that what a page's scripts hold can be told from what they have dropped.
	engine := "--expose-gc"
	if !measured {
		engine += " --no-opt --no-maglev"
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("js-flags", engine))
	ctx, stopAllocator := chromedp.NewExecAllocator(ctx, opts...)
	b := &browser{}
	tab, stopTab := chromedp.NewContext(ctx)
	b.ctx, b.close = tab, func() { stopTab(); stopAllocator() }
	if err := chromedp.Listen(tab, b.hear); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// hear notes what a page complains of, and whom it asks.
// Messages of any level count on the console: our pages say nothing there. Failed
// requests do not, since some screens show refusals.
func (b *browser) hear(event any) {
	wrong := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		wrong = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			wrong += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		wrong = fmt.Sprintf("console.%s", e.Type)
	case *cdplog.EventEntryAdded:
		if e.Entry.Source != cdplog.EntrySourceNetwork && (e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning) {
			wrong = fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; b.host != "" && strings.HasPrefix(u, "http") && !strings.HasPrefix(u, b.host) {
			wrong = "it asks for " + u
		}
	}
	if wrong == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, wrong)
}

// do takes steps within the patience.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// evaluate runs a script in the page, and returns what it comes to; what it promises, when it is there.
func evaluate[T any](b *browser, script string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// eval runs a script for what it does.
func (b *browser) eval(script string) error {
	_, err := evaluate[any](b, script)
	return err
}

// act takes an action as soon as it does not throw.
func (b *browser) act(script string) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](script, chromedp.EvalAwaitPromise))
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", script, err)
		}
	}
}

// await waits until an expression holds.
// It asks every 50 ms until the patience is over; the error names the expression.
func (b *browser) await(expression string) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0)))
		if err == nil {
			return nil
		}
		// It may have been asked of the page before, which is gone meanwhile.
		gone := strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated or closed")
		if ctx.Err() != nil || !gone {
			return fmt.Errorf("%s: %w", expression, err)
		}
	}
}

// signIn opens the address that signs in to the console.
func (b *browser) signIn(address string) error {
	if err := b.do(chromedp.Navigate(address)); err != nil {
		return err
	}
	return b.await(`!!document.querySelector("nav.menu")`)
}

// photograph shows a screen, and keeps its picture where a file is named. wrong is what the page complained of, in this
// look and, without being loaded again, in the looks of turns.
// An error ends the run; what the page did wrong does not, so that one run finds all.
func (b *browser) photograph(url string, s screen, l look, turns []look, file string) (wrong []string, err error) {
	if err := b.show(url, s, l); err != nil {
		return nil, err
	}
	if err := b.rest(s.moves); err != nil {
		return nil, err
	}
	if file != "" {
		if err := b.keep(s, file); err != nil {
			return nil, err
		}
	}
	if wrong, err = b.look(s, l, false); err != nil {
		return nil, err
	}
	for _, other := range turns {
		if err := b.do(other.viewport(s), other.media()); err != nil {
			return nil, err
		}
		if err := b.rest(false); err != nil {
			return nil, err
		}
		found, err := b.look(s, l, true)
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			wrong = append(wrong, "turned to "+other.name()+": "+w)
		}
	}
	if err := b.eval("sessionStorage.clear()"); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(wrong, b.wrong...), nil
}

// keep writes a picture of what is shown.
func (b *browser) keep(s screen, file string) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	take := chromedp.FullScreenshot(100)
	if s.tall > 0 {
		take = chromedp.CaptureScreenshot()
	}
	picture, err := chromedp.Run(ctx, take)
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o600)
}

// show opens a screen in a look, and brings it to where it is looked at.
func (b *browser) show(url string, s screen, l look) error {
	b.mu.Lock()
	b.wrong, b.host = nil, url
	b.mu.Unlock()
	speak := emulation.SetUserAgentOverrideParams{UserAgent: "Chromium", AcceptLanguage: map[string]string{"en": "en-US,en", "zh": "zh-CN,zh"}[l.language]}
	if err := b.do(chromedp.Navigate("about:blank"), l.viewport(s), l.media(),
		call(emulation.SetUserAgentOverride, speak), chromedp.Navigate(s.at(url))); err != nil {
		return err
	}
	// The errors of the last page are not this one's.
	if err := b.await(`document.readyState === "complete" && !document.querySelector(".boot")`); err != nil {
		return err
	}
	if s.act != "" {
		if err := b.act(s.act); err != nil {
			return err
		}
	}
	return b.await(s.ready)
}

// viewport is the size of the window. 844 is the height of a common telephone.
func (l look) viewport(s screen) chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(l.width, cmp.Or(s.tall, map[bool]int64{true: 844, false: 800}[l.width < 600]))
}

// media says which shade the person prefers.
func (l look) media() chromedp.Action[chromedp.Void] {
	shade := map[bool]string{true: "dark", false: "light"}[l.dark]
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: shade}}})
}

// rest waits until nothing of a page moves any more; what moves by its own clock gets most of a second more.
func (b *browser) rest(moves bool) error {
	still := `Promise.all(document.getAnimations().filter((a) => a.effect.getComputedTiming().iterations < Infinity).map((a) => a.finished)).catch(() => {}).then(() =>
		new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`
	if moves {
		still = `new Promise((done) => setTimeout(() => done(true), 1100))`
	}
	return b.eval(still)
}

// look lists what is wrong with the page as it is shown now; see violations for turned.
func (b *browser) look(s screen, l look, turned bool) (wrong []string, err error) {
	looks := []func() ([]string, error){
		func() ([]string, error) { return b.violations(turned) },
		func() ([]string, error) { return evaluate[[]string](b, tooSmall) },
		func() ([]string, error) { return evaluate[[]string](b, tooWide) },
	}
	if !s.program {
		looks = append(looks, func() ([]string, error) { return b.raw(l) })
	}
	for _, look := range looks {
		found, err := look()
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
	}
	return wrong, nil
}

// call is a command of the browser's protocol as a step.
func call[P any, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, command, params)
		return chromedp.Void{}, err
	}
}
