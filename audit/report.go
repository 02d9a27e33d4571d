package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
)

// Report is the outcome of a verification: engine against ledger, campaign by
// campaign, promise by promise.
type Report struct {
	OK        bool             `json:"ok"`
	Campaigns []CampaignReport `json:"campaigns"`
}

// CampaignReport is one campaign's part of a report.
type CampaignReport struct {
	CampaignID string `json:"campaign_id"`
	OK         bool   `json:"ok"`
	// Stock, Remaining and Granted are units, as the ledger's rows add up.
	Stock     int64 `json:"stock"`
	Remaining int64 `json:"remaining"`
	Granted   int64 `json:"granted"`
	Claims    int64 `json:"claims"`
	// Quarantined is how many journal entries could not be settled.
	Quarantined int64          `json:"quarantined"`
	Promises    []PromiseCheck `json:"promises"`
}

// PromiseCheck is one promise's verdict.
type PromiseCheck struct {
	// Promise is its short name, `no oversell`.
	Promise string `json:"promise"`
	Held    bool   `json:"held"`
	// Detail says what was compared, or what is broken.
	Detail string `json:"detail"`
	// DetailZH is Detail in Chinese. It is empty in a report that came over HTTP, which
	// has one language.
	DetailZH string `json:"-"`
}

// In returns the report in one language, Chinese when zh is set, else English.
func (r *Report) In(zh bool) Report {
	said := *r
	if !zh {
		return said
	}
	said.Campaigns = slices.Clone(r.Campaigns)
	for i := range said.Campaigns {
		c := &said.Campaigns[i]
		c.Promises = slices.Clone(c.Promises)
		for j := range c.Promises {
			p := &c.Promises[j]
			p.Detail = cmp.Or(p.DetailZH, p.Detail)
		}
	}
	return said
}

// grouped is a number that any verb shows with a comma between thousands.
type grouped int64

// Format implements fmt.Formatter.
func (n grouped) Format(to fmt.State, _ rune) {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	_, _ = to.Write([]byte(text))
}

// sentence formats both languages, as dibs.Textf does. An argument that is a text is
// put in by its language, an int64 with a comma between thousands.
func sentence(en, zh string, args ...any) dibs.Text {
	in := func(zh bool) []any {
		said := slices.Clone(args)
		for i, a := range said {
			switch v := a.(type) {
			case dibs.Text:
				said[i] = v.In(zh)
			case int64:
				said[i] = grouped(v)
			}
		}
		return said
	}
	return dibs.Text{EN: fmt.Sprintf(en, in(false)...), ZH: fmt.Sprintf(zh, in(true)...)}
}

// listed writes a list of what is wrong, or that nothing is.
func listed(list []dibs.Text) dibs.Text {
	if len(list) == 0 {
		return dibs.Text{EN: "none", ZH: "无"}
	}
	var en, zh []string
	for _, t := range list {
		en, zh = append(en, t.EN), append(zh, t.In(true))
	}
	return dibs.Text{EN: strings.Join(en, ", "), ZH: strings.Join(zh, "，")}
}

// plain are the words of a ledger, of users and of rows, which are alike in both
// languages.
func plain(words []string) []dibs.Text {
	texts := make([]dibs.Text, len(words))
	for i, w := range words {
		texts[i] = dibs.Text{EN: w}
	}
	return texts
}

// RepairRequest says what to repair, and what to do where nobody but an
// administrator can know.
type RepairRequest struct {
	// Campaigns are ids, or `product:ID` for a product's regular orders; none for all.
	Campaigns []string
	// OlderLedger is what to do about campaigns whose ledger is older than their
	// journal; empty leaves them halted.
	OlderLedger OlderLedger
}

// RepairReport is the outcome of a repair.
type RepairReport struct {
	// OK is whether every promise holds after it.
	OK     bool    `json:"ok"`
	Before *Report `json:"before"`
	// Steps are what was done, and what was left undone, in order.
	Steps []RepairStep `json:"steps"`
	After *Report      `json:"after"`
}

// RepairStep is one thing that a repair did, or could not do.
type RepairStep struct {
	CampaignID string `json:"campaign_id"`
	Done       bool   `json:"done"`
	// What says what was done, or what is wrong and what to do about it.
	What string `json:"what"`
}
