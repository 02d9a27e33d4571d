package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// throttled is how much slower than this machine a telephone is taken to be.
const throttled = 4

// measuredPages are those that people open first. Each is opened with an empty cache.
var measuredPages = []screen{
	{name: "storefront", path: "/", ready: `document.querySelectorAll(".offer").length > 2`},
	{name: "press", path: "/c/phone-noon", user: "m1", ready: `!!document.querySelector("#remaining")`},
	{name: "rain", path: "/c/redpacket-rain", user: "m2", ready: `!!document.querySelector("#press")`},
	{name: "console overview", path: "/console/", ready: loaded},
	{name: "console, a campaign live", path: "/console/campaigns/phone-noon", ready: `document.querySelectorAll("canvas").length === 2`},
}

// loading is what painted tells: when the page showed its first content, in milliseconds, how far things moved after
// that and which, the longest task, and how many bytes came over the wire.
type loading struct {
	First   float64 `json:"first"`
	Moved   float64 `json:"moved"`
	What    string  `json:"what"`
	Longest float64 `json:"longest"`
	Bytes   float64 `json:"bytes"`
}

// The limits of a page that loads: when it shows something, in milliseconds, and how far things move then, by the measure
// that browsers call CLS.
const (
	maxFirst = 2000
	maxMoved = 0.05
)

// painted waits until the page is at rest, and tells how it loaded.
const painted = `new Promise((done) => {
	let moved = 0, longest = 0, what = new Set();
	const name = (n) => (n.nodeType === 3 ? name(n.parentElement) : n.tagName.toLowerCase() + (n.id ? "#" + n.id : "") + (typeof n.className === "string" && n.className ? "." + n.className : ""));
	new PerformanceObserver((l) => l.getEntries().forEach((e) => {
		if (e.hadRecentInput) return;
		moved += e.value;
		for (const s of e.sources) if (s.node) what.add(name(s.node));
	})).observe({ type: "layout-shift", buffered: true });
	new PerformanceObserver((l) => l.getEntries().forEach((e) => (longest = Math.max(longest, e.duration)))).observe({ type: "longtask", buffered: true });
	setTimeout(() => {
		const bytes = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((a, e) => a + e.transferSize, 0);
		done({ first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1, moved, what: [...what].join(", "), longest, bytes });
	}, 1500);
})`

// measure prints how fast pages show, how smoothly packets fall, and what people who watch cost the server, and returns
// what breaks a limit.
func measure(ctx context.Context, b *browser, url string) (faults []string, err error) {
	fmt.Printf("Pages, first load, processor %d times slower:\n  %-26s %14s %8s %14s %10s\n", throttled, "page", "first content", "CLS", "longest task", "bytes")
	for _, s := range measuredPages {
		m, err := b.measurePage(url, s)
		if err != nil {
			return faults, fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("  %-26s %11.0f ms %8.3f %11.0f ms %7.1f KB\n", s.name, m.First, m.Moved, m.Longest, m.Bytes/1024)
		faults = append(faults, m.faults(s.name)...)
	}
	smooth, err := measureRain(b, url)
	faults = append(faults, smooth...)
	if err != nil {
		return faults, err
	}
	costly, err := watchers(ctx, url)
	return append(faults, costly...), err
}

// faults lists the limits that a page has broken.
func (m loading) faults(page string) (list []string) {
	if m.First < 0 || m.First > maxFirst {
		list = append(list, fmt.Sprintf("%s: the first content came after %.0f ms, at most %d", page, m.First, maxFirst))
	}
	if m.Moved > maxMoved {
		list = append(list, fmt.Sprintf("%s: things move by %.3f, at most %.2f: %s", page, m.Moved, maxMoved, m.What))
	}
	return list
}

// measurePage opens a page as a slow telephone does that was never here.
func (b *browser) measurePage(url string, s screen) (m loading, err error) {
	if err := b.do(chromedp.Navigate("about:blank"), call(network.ClearBrowserCache, cdp.Empty{}),
		slow(throttled), chromedp.EmulateViewport(390, 844), chromedp.Navigate(s.at(url))); err != nil {
		return m, err
	}
	if err := b.await(s.ready); err != nil {
		return m, err
	}
	if m, err = evaluate[loading](b, painted); err != nil {
		return m, err
	}
	return m, b.do(slow(1), chromedp.Navigate("about:blank"))
}

// watched is how many customers watch a campaign, and for how long; maxWatching is what they may cost together, as a share
// of a core.
const (
	watched     = 1000
	watchedFor  = 30 * time.Second
	maxWatching = 0.10
)

// watchers has customers follow a campaign, as its page does, prints what that costs the server, and returns it as a fault
// when it is too much.
func watchers(ctx context.Context, url string) (faults []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport := &http.Transport{MaxConnsPerHost: watched, MaxIdleConnsPerHost: watched}
	defer transport.CloseIdleConnections()
	var all sync.WaitGroup
	var open atomic.Int64
	for range watched {
		all.Go(func() {
			_ = fetch(ctx, &http.Client{Transport: transport}, url+"/v1/campaigns/phone-noon/events", "", func(body io.Reader) error {
				open.Add(1)
				// Until the measurement is over.
				_, err := io.Copy(io.Discard, body)
				return err
			})
		})
	}
	for deadline := time.Now().Add(patience); open.Load() < watched; {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("only %d of %d could watch", open.Load(), watched)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	before, err := processorTime(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, watchedFor); err != nil {
		return nil, err
	}
	after, err := processorTime(ctx, url)
	if err != nil {
		return nil, err
	}
	share := (after - before) / watchedFor.Seconds()
	fmt.Printf("%d customers watch a campaign for %s: %.1f %% of a core\n", watched, watchedFor, share*100)
	cancel()
	all.Wait()
	return watchingFaults(share), nil
}

// watchingFaults says that the customers who watch cost too much, when they do.
func watchingFaults(share float64) []string {
	if share < maxWatching {
		return nil
	}
	return []string{fmt.Sprintf("%d customers who watch cost %.1f %% of a core, at most %.0f %%", watched, share*100, maxWatching*100)}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// processorTime is what the server has used of processors since it started, in seconds, as its metrics tell.
func processorTime(ctx context.Context, url string) (spent float64, err error) {
	err = fetch(ctx, http.DefaultClient, url+"/metrics", "", func(body io.Reader) error {
		for lines := bufio.NewScanner(body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
				spent, err = strconv.ParseFloat(text, 64)
				return err
			}
		}
		return errors.New("the metrics do not tell the time of processors")
	})
	return spent, err
}

// slow makes the processor of a page so many times slower.
func slow(rate float64) chromedp.Action[chromedp.Void] {
	return call(emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: rate})
}
