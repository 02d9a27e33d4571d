package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/chromedp/chromedp"
)

// forPrograms matches text that only programs should read: times of RFC 3339, amounts in minor units, members of JSON.
var forPrograms = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d|minor units|最小货币单位|"amount":`)

// halfWidth matches a half-width mark after Chinese.
var halfWidth = regexp.MustCompile(`\p{Han}[,.:;!?()]`)

// visible is the text of the page that a person sees, without the YAML that the wizard shows on purpose.
// The elements stay where they are: innerText leaves out what is not shown, which a copy of them would not know.
const visible = `(() => {
	const yaml = [...document.querySelectorAll("pre.yaml")];
	for (const e of yaml) e.hidden = true;
	const text = document.body.innerText;
	for (const e of yaml) e.hidden = false;
	return text;
})()`

// around is how many bytes of a line before and after what was found are told.
const around = 40

// rawIn lists what of a text is written for programs, and half-width marks after Chinese, each with what stands around it.
func rawIn(text string) (wrong []string) {
	for line := range strings.Lines(text) {
		for what, pattern := range map[string]*regexp.Regexp{"written for programs": forPrograms, "a half-width mark after Chinese": halfWidth} {
			for _, at := range pattern.FindAllStringIndex(line, -1) {
				wrong = append(wrong, fmt.Sprintf("%s: %q", what, line[max(0, at[0]-around):min(len(line), at[1]+around)]))
			}
		}
	}
	return wrong
}

// raw lists what the page that is shown has written for programs, or with marks of the other language.
func (b *browser) raw() ([]string, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](visible))
	if err != nil {
		return nil, err
	}
	return rawIn(text), nil
}
