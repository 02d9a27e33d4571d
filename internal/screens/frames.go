package main

import (
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
)

// The rain is watched for rainFor, and must show at least leastFrames of the 60 frames that a second has: one in twenty
// may be missed.
const (
	rainFor     = 10 * time.Second
	leastFrames = 57
)

// frames is what countFrames tells: frames per second, and the longest time without one, in milliseconds.
type frames struct {
	Rate    float64 `json:"rate"`
	Longest float64 `json:"longest"`
}

// countFrames counts the frames of a page for some milliseconds.
const countFrames = `new Promise((done) => {
	let n = 0, longest = 0, begun = 0, last = 0;
	requestAnimationFrame(function frame(at) {
		begun ||= at;
		if (last) n++, longest = Math.max(longest, at - last);
		last = at;
		if (at - begun < %d) requestAnimationFrame(frame);
		else done({ rate: n / ((at - begun) / 1000), longest });
	});
})`

// measureRain prints how many frames a second the rain has on a slow telephone, and returns it as a fault when they are too
// few.
func measureRain(b *browser, url string) (faults []string, err error) {
	if err := b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2)), slow(throttled), chromedp.Navigate(url+"/c/redpacket-rain#token=dev_m3")); err != nil {
		return nil, err
	}
	if err := b.await(`!!document.querySelector("canvas.sky") && !!document.querySelector("#press:not(:disabled)")`); err != nil {
		return nil, err
	}
	f, err := evaluate[frames](b, fmt.Sprintf(countFrames, rainFor.Milliseconds()))
	if err != nil {
		return nil, err
	}
	fmt.Printf("Red-packet rain, processor %d times slower: %.1f frames per second, the longest pause %.0f ms\n", throttled, f.Rate, f.Longest)
	return f.faults(), b.do(slow(1), chromedp.Navigate("about:blank"))
}

// faults says that there are too few frames, when there are.
func (f frames) faults() []string {
	if f.Rate >= leastFrames {
		return nil
	}
	return []string{fmt.Sprintf("the rain has %.1f frames per second, at least %d", f.Rate, leastFrames)}
}
