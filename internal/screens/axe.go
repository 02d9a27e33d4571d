package main

import (
	_ "embed"
	"fmt"
)

// axe finds what keeps people from using a page: axe-core 4.14.1, under the Mozilla Public License 2.0, as its makers
// ship it. It is for this command and for tests, and no part of what dibs serves.
//
//go:embed testdata/axe.min.js
var axe string

// axeRun runs every rule, best practices too, or those that are named, and tells each violation in a line. Rules that hold
// are not listed: that takes longer than to find a violation. Nothing is preloaded: only videos and experiments need it.
const axeRun = `axe.run(document, { resultTypes: ["violations"], preload: false %s }).then((r) => r.violations.flatMap((v) =>
	v.nodes.map((n) => v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + (n.any[0] || n.all[0] || n.none[0] || { message: v.help }).message)))`

// axeTurned names the rules whose answer depends on colours and sizes.
const axeTurned = `, runOnly: ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]`

// violations are what axe finds on the page that is shown; turned says that the page was seen in another look before,
// with every rule.
// The rules run in the page itself, so they see what a person sees at that moment.
func (b *browser) violations(turned bool) ([]string, error) {
	there, err := evaluate[bool](b, "!!window.axe")
	if err == nil && !there {
		err = b.eval(axe + "; true")
	}
	if err != nil {
		return nil, fmt.Errorf("axe: %w", err)
	}
	rules := ""
	if turned {
		rules = axeTurned
	}
	return evaluate[[]string](b, fmt.Sprintf(axeRun, rules))
}

// tooSmall are the things to press that a finger misses: smaller than 44 pixels either way. A link within a sentence may be
// smaller, and so may a box to tick whose label is large enough. Half a pixel is allowed for rounding.
const tooSmall = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary")].filter((e) => {
	const large = (x) => { const r = x.getBoundingClientRect(); return r.width === 0 || r.height > 43.5 && r.width > 43.5; };
	const inSentence = () => {
		if (e.tagName !== "A" || getComputedStyle(e).display !== "inline" || e.closest("td, th")) return false;
		let around = e.parentElement;
		while (getComputedStyle(around).display === "inline") around = around.parentElement;
		return around.innerText.trim().length > e.innerText.trim().length;
	};
	return e.checkVisibility() && !e.closest(".uplot") && !large(e.type === "checkbox" || e.type === "radio" ? e.closest("label") || e : e) && !inSentence();
}).map((e) => "too small for a finger: " + e.tagName + " " + (e.textContent.trim() || e.name || e.id).slice(0, 30) + " " + Math.round(e.getBoundingClientRect().width) + "x" + Math.round(e.getBoundingClientRect().height))`

// tooWide says that a page has to be pushed sideways to be read.
const tooWide = `document.documentElement.scrollWidth > innerWidth ? ["it is " + document.documentElement.scrollWidth + " wide, the window " + innerWidth] : []`
