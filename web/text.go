package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/dibs-dev/dibs"
)

// catalogue is a set of texts by key, each in English and Chinese.
type catalogue map[string][2]string

// sets are the catalogues that pages load, by the files that each is put together from.
var sets = map[string][]string{"shop": {"common", "shop"}, "console": {"common", "console"}}

// languages are the codes of the languages that pages speak, in the order of a catalogue's entries.
var languages = [2]string{"en", "zh"}

// readTexts reads a file of texts.
func readTexts(name string) (catalogue, error) {
	raw, err := files.ReadFile("text/" + name + ".json")
	if err != nil {
		return nil, err
	}
	c := catalogue{}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("text/%s.json: %w", name, err)
	}
	return c, nil
}

// reasonTexts are the server's own titles of refusals, so that pages say what the API says.
func reasonTexts() catalogue {
	c := catalogue{}
	for i := range dibs.ReasonCount {
		if info := dibs.Reason(i).Info(); c["reason."+info.Word][0] == "" {
			c["reason."+info.Word] = [2]string{info.Title.EN, info.Title.ZH}
		}
	}
	return c
}

// addTexts makes a module of each set in each language, text/shop.en.js say.
func (s *Site) addTexts() error {
	reasons := reasonTexts()
	for set, names := range sets {
		all := maps.Clone(reasons)
		for _, name := range names {
			c, err := readTexts(name)
			if err != nil {
				return err
			}
			maps.Copy(all, c)
		}
		for i, language := range languages {
			one := make(map[string]string, len(all))
			for key, text := range all {
				one[key] = text[i]
			}
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(one); err != nil {
				return err
			}
			s.add("text/"+set+"."+language+".js", kinds[".js"], []byte("export default "+b.String()))
		}
	}
	return nil
}
