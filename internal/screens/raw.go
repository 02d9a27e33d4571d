package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// inEnglish matches four English words in a row, which are a sentence that the server wrote.
var inEnglish = regexp.MustCompile(`[A-Za-z]+(?: [A-Za-z]+){3}`)

// chinese is the text of a page that should be in Chinese: without code, what a page says in both languages, a product's
// description, and what doctor finds, which is in English.
const chinese = `(() => {
	const hidden = [...document.querySelectorAll("pre, code, [lang]:not(html), #doctor")].filter((e) => !e.hidden);
	for (const e of hidden) e.hidden = true;
	const text = document.body.innerText, page = JSON.parse(document.getElementById("page")?.textContent || "{}");
	for (const e of hidden) e.hidden = false;
	return text.replaceAll(page.campaign?.product?.description || "\n", "\n");
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

// englishIn lists the lines of a text that have an English sentence, beside titles.
func englishIn(text string, titles []string) (wrong []string) {
	for line := range strings.Lines(text) {
		said := line
		for _, title := range titles {
			said = strings.ReplaceAll(said, title, "")
		}
		if inEnglish.MatchString(said) {
			wrong = append(wrong, fmt.Sprintf("English on a Chinese page: %q", line))
		}
	}
	return wrong
}

// titles are what people called the campaigns of the server.
func (b *browser) titles(ctx context.Context) (titles []string, err error) {
	b.mu.Lock()
	host := b.host
	b.mu.Unlock()
	var list struct{ Items []struct{ Title string } }
	err = fetch(ctx, http.DefaultClient, host+"/v1/campaigns?limit=100", "", func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&list)
	})
	for _, c := range list.Items {
		titles = append(titles, c.Title)
	}
	return titles, err
}

// raw lists what the page that is shown has written for programs, or with marks of the other language.
func (b *browser) raw(l look) ([]string, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](visible))
	if err != nil {
		return nil, err
	}
	wrong := rawIn(text)
	if l.language == "zh" {
		if text, err = chromedp.Run(ctx, chromedp.Evaluate[string](chinese)); err != nil {
			return nil, err
		}
		titles, err := b.titles(ctx)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, englishIn(text, titles)...)
	}
	return wrong, nil
}
