package httpapi_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
)

// Codes that a spreadsheet would take for formulas are shown as text.
func TestCodesCSV(t *testing.T) {
	s := newStack(t, nil)
	_, err := s.admin.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "spring", Kind: dibs.Coupon, Title: "Spring", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Items: []string{"=1+1", "A-1", "＠SUM(1)", "'-2", "'A"}},
	}, "")
	must(t, err)
	if a := s.ask("GET", "/v1/campaigns/spring/codes?format=csv", "", asAdmin); a.status != 200 || a.body != "code\n'=1+1\nA-1\n'＠SUM(1)\n''-2\n'A\n" {
		t.Errorf("%d %q", a.status, a.body)
	}
	// Imported again they are the same codes.
	file := s.ask("GET", "/v1/campaigns/spring/codes?format=csv", "", asAdmin).body
	_, err = s.admin.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "again", Kind: dibs.Coupon, Title: "Again", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Items: []string{}},
	}, "")
	must(t, err)
	if a := s.ask("POST", "/v1/campaigns/again/codes", file, asAdmin, "Content-Type: text/csv"); a.status != 200 && a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	first, again := s.ask("GET", "/v1/campaigns/spring/codes", "", asAdmin), s.ask("GET", "/v1/campaigns/again/codes", "", asAdmin)
	if first.body != again.body {
		t.Errorf("exported %s, and imported %s", first.body, again.body)
	}
}

func TestClaimsCSVAndPages(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	const n = 230
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`seat "%d", row`, i)
	}
	limit := int64(2)
	_, err := s.admin.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "seats", Kind: dibs.Coupon, Title: "Seats", Limit: &limit,
		StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Items: items},
	}, "")
	must(t, err)
	_, err = s.admin.Campaigns.Publish(ctx, "seats")
	must(t, err)
	ids := map[string]bool{}
	for i := range n {
		r, err := s.service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "seats", UserID: fmt.Sprintf("u%d", i/2)})
		must(t, err)
		ids[r.Claim.ID] = true
	}
	a := s.ask("GET", "/v1/campaigns/seats/claims?format=csv", "", asAdmin)
	if a.status != 200 || a.header.Get("Content-Type") != "text/csv; charset=utf-8" || a.header.Get("Content-Disposition") != `attachment; filename="seats.csv"` {
		t.Fatalf("%d %v", a.status, a.header)
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	must(t, err)
	if len(rows) != n+1 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		if !ids[row[0]] || row[1] != "seats" || row[5] != "confirmed" || !strings.HasPrefix(row[8], `seat "`) {
			t.Fatalf("row %q", row)
		}
		delete(ids, row[0])
	}
	pages, seen, cursor := 0, map[string]bool{}, ""
	for {
		l, err := s.admin.Campaigns.Claims(ctx, "seats", clientFilter{}, dibs.Page{Limit: 100, Cursor: cursor})
		must(t, err)
		for _, c := range l.Items {
			seen[c.ID] = true
		}
		pages++
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	if pages != 3 || len(seen) != n {
		t.Errorf("%d claims on %d pages", len(seen), pages)
	}
	l, err := s.admin.Campaigns.Claims(ctx, "seats", clientFilter{UserID: "u3", Status: "confirmed"}, dibs.Page{})
	must(t, err)
	if len(l.Items) != 2 {
		t.Errorf("u3 holds %d", len(l.Items))
	}
	if b := s.ask("GET", "/v1/campaigns/seats/claims?format=csv&user_id=u3&status=released", "", asAdmin); strings.Count(b.body, "\n") != 1 {
		t.Errorf("a filtered CSV: %s", b.body)
	}
}

type clientFilter = client.ClaimFilter

// midway has a list of claims that breaks on the second page.
type midway struct{ httpapi.Claims }

func (m midway) OfCampaign(_ context.Context, _ string, _ dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	if page.Cursor != "" {
		return dibs.List[dibs.Claim]{}, errors.New("the ledger is gone")
	}
	return dibs.List[dibs.Claim]{Items: make([]dibs.Claim, 100), NextCursor: "more"}, nil
}

func TestBrokenCSVIsNoWholeCSV(t *testing.T) {
	s := newStack(t, func(s *httpapi.Services) { s.Claims = midway{s.Claims} })
	req, err := http.NewRequest("GET", s.url+"/v1/campaigns/x/claims?format=csv", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+adminKey)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		must(t, resp.Body.Close())
	}
	if err == nil {
		t.Error("half a CSV arrived as a whole one")
	}
	if err := s.admin.Campaigns.ClaimsCSV(context.Background(), "x", clientFilter{}, io.Discard); err == nil {
		t.Error("the client took half a CSV for a whole one")
	}
}

// A spreadsheet shows what users and payment providers write, and computes none of it.
func TestCSVHasNoFormulas(t *testing.T) {
	s := newStack(t, nil)
	ctx := t.Context()
	_, err := s.admin.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "seats", Kind: dibs.Sale, Title: "Seats", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Items: []string{"＠SUM(1)"}}, PayWithin: new(dibs.Duration(time.Hour)), Price: &dibs.Money{Amount: 5, Currency: "CNY"},
	}, "")
	must(t, err)
	_, err = s.admin.Campaigns.Publish(ctx, "seats")
	must(t, err)
	r, err := s.service.Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: "seats", UserID: "-2"})
	must(t, err)
	_, _, err = s.admin.Orders.Confirm(ctx, r.Claim.ID, dibs.PaymentSpec{PaymentRef: `=HYPERLINK("http://evil.example","open")`, Amount: &dibs.Money{Amount: 5, Currency: "CNY"}})
	must(t, err)
	for _, path := range []string{"/v1/campaigns/seats/claims?format=csv", "/v1/claims?format=csv"} {
		a := s.ask("GET", path, "", asAdmin)
		rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
		must(t, err)
		if len(rows) != 2 || rows[1][3] != "'-2" || rows[1][8] != "'＠SUM(1)" || !strings.HasPrefix(rows[1][14], "'=HYPERLINK(") {
			t.Errorf("%s: %q", path, rows)
		}
	}
}
