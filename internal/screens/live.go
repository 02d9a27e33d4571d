package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// grantsPerSecond is the load under which a live screen is watched.
const grantsPerSecond = 1000

// The limits of a live screen: how much it may grow, in bytes, and how long a task of it may take. Under fewer grants a
// second than leastGrants, it has not been tried.
const (
	maxGrowth   = 5 << 20
	maxTask     = 50 * time.Millisecond
	leastGrants = 950
)

// makeLive publishes the campaign `live`, of which nothing runs out, and returns a key that may look at it.
func makeLive(b *browser) (key string, err error) {
	return evaluate[string](b, `(async () => {
		const csrf = (await (await fetch("/v1/session")).json()).csrf_token, post = async (at, body) => {
			const r = await fetch(at, { method: "POST", headers: { "Dibs-Csrf": csrf, "Content-Type": "application/json" }, body: JSON.stringify(body) });
			if (!r.ok && r.status !== 409) throw new Error(await r.text());
			return r.json();
		};
		await post("/v1/campaigns", { id: "live", kind: "sale", title: "Live", starts_at: new Date(Date.now() - 60000).toISOString(), ends_at: new Date(Date.now() + 864e5).toISOString(), stock: { units: 50000000 } });
		await post("/v1/campaigns/live/publish", {});
		return (await post("/v1/keys", { name: "watcher", role: "viewer" })).secret;
	})()`)
}

// watchedScreen is what became of a live screen: the load that it was watched under, how much it grew, in bytes, from what, and
// its longest task, in milliseconds.
type watchedScreen struct{ rate, before, grown, longest float64 }

// live watches a campaign's live screen while claims are granted, and returns what breaks its limits.
func live(ctx context.Context, b *browser, url string, span time.Duration) (faults []string, err error) {
	if _, err := makeLive(b); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var granted atomic.Int64
	var load sync.WaitGroup
	load.Go(func() { claimAll(ctx, url, &granted) })
	defer load.Wait()
	defer cancel()
	if err := b.do(chromedp.Navigate(url + "/console/campaigns/live")); err != nil {
		return nil, err
	}
	if err := b.await(`document.querySelectorAll("canvas").length === 2`); err != nil {
		return nil, err
	}
	// The memory of the last ten minutes fills up first.
	if err := pause(ctx, span/10); err != nil {
		return nil, err
	}
	// The collections that the heap is measured after are tasks, too: none falls into the time that is watched.
	w := watchedScreen{before: b.heap()}
	if err := b.eval(`window.longest = 0; new PerformanceObserver((l) => l.getEntries().forEach((e) => (window.longest = Math.max(window.longest, e.duration)))).observe({ type: "longtask" }); true`); err != nil {
		return nil, err
	}
	had, began := granted.Load(), time.Now()
	if err := pause(ctx, span); err != nil {
		return nil, err
	}
	w.rate = float64(granted.Load()-had) / time.Since(began).Seconds()
	if w.longest, err = evaluate[float64](b, "window.longest"); err != nil {
		return nil, err
	}
	w.grown = b.heap() - w.before
	fmt.Printf("A live screen for %s under %.0f grants/s: its heap grew by %.2f MB, its longest task took %.0f ms\n", span, w.rate, w.grown/(1<<20), w.longest)
	return w.faults(), nil
}

// faults lists the limits that a live screen has broken, and says when it was not tried.
func (w watchedScreen) faults() (list []string) {
	if w.rate < leastGrants {
		list = append(list, fmt.Sprintf("%.0f grants a second, at least %d: this machine is too slow, or too busy, to try the screen", w.rate, leastGrants))
	}
	if w.before <= 0 || w.grown > maxGrowth {
		list = append(list, fmt.Sprintf("the heap grew by %.0f bytes from %.0f, at most %d", w.grown, w.before, maxGrowth))
	}
	if w.longest > float64(maxTask.Milliseconds()) {
		list = append(list, fmt.Sprintf("a task took %.0f ms, at most %s", w.longest, maxTask))
	}
	return list
}

// claiming is how many claims are under way at once.
const claiming = 64

// claimAll claims as often as grantsPerSecond says, each time as another user, until ctx ends.
func claimAll(ctx context.Context, url string, granted *atomic.Int64) {
	transport := &http.Transport{MaxIdleConnsPerHost: claiming}
	defer transport.CloseIdleConnections()
	client, places := &http.Client{Transport: transport}, make(chan struct{}, claiming)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	for user := 0; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		// A tick that came late is made up for.
		for due := int(time.Since(began).Seconds() * grantsPerSecond); user < due && ctx.Err() == nil; user++ {
			// Where all places are taken, the server is slower than the load: the rate that is printed says so.
			places <- struct{}{}
			name := "w" + strconv.Itoa(user)
			all.Go(func() {
				defer func() { <-places }()
				if claimAs(ctx, client, url, name) == nil {
					granted.Add(1)
				}
			})
		}
	}
}

// claimAs claims of the campaign `live` as a user of dev.
func claimAs(ctx context.Context, client *http.Client, url, user string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/campaigns/live/claims", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer dev_"+user)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("a claim was answered with %s", answer.Status)
	}
	return err
}

// heap is what the page's scripts hold after a collection, in bytes; 0 when the browser does not tell.
func (b *browser) heap() float64 {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any]("gc()")); err != nil {
		return 0
	}
	size, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (float64, error) {
		usage, err := cdp.Call(ctx, target, runtime.GetHeapUsage, cdp.Empty{})
		return usage.UsedSize, err
	})
	if err != nil {
		return 0
	}
	return size
}
