package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestLanguage(t *testing.T) {
	l, err := newLanguages()
	if err != nil {
		t.Fatal(err)
	}
	for header, zh := range map[string]bool{
		"":                                  false,
		"zh":                                true,
		"zh-CN":                             true,
		"zh-TW,en;q=0.5":                    true,
		"zh-Hans-CN;q=0.9, en;q=0.8":        true,
		"en;q=0.8, zh;q=0.9":                true,
		"en, zh":                            false,
		"zh, en":                            true,
		"en-US,en;q=0.9,zh-CN;q=0.8":        false,
		"fr, zh;q=0.5, en;q=0.4":            true,
		"fr-CH, fr;q=0.9, de;q=0.7":         false,
		"zh;q=0, en;q=0.1":                  false,
		"zh;q=0":                            false,
		"*":                                 false,
		"*;q=0.5, zh;q=0.9":                 true,
		"de, *;q=0.5, zh;q=0.1":             false,
		"nonsense;;;":                       false,
		"zh;q=abc":                          false,
		strings.Repeat("fr,", 200) + "zh":   true,
		strings.Repeat("x", 5000):           false,
		strings.Repeat("zh-", 2000) + "zh":  false,
		"zh;q=0.0001, en;q=0.00001":         true,
		"ZH-cn":                             true,
		" zh-CN ; q=1.0 , en-GB ; q=0.9   ": true,
	} {
		for range 2 { // Read, then remembered.
			if got := l.chinese(http.Header{"Accept-Language": {header}}); got != zh {
				t.Errorf("%.60q: Chinese %v, want %v", header, got, zh)
			}
		}
	}
}
