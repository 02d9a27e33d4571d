package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

// send makes a call with a JSON body and returns status and answer.
func send(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(raw)
}

// Notes on a claim go where they belong: a caller's reference to everybody who may see
// the claim, an administrator's comment to administrators alone.
func TestReferencesAndComments(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	s.sale("noon", 10, 5)
	const there = `https://shop.example/?a=1&b="中"`
	u, err := client.New(s.url, client.Options{Token: "dev_42"})
	must(t, err)
	defer u.CloseIdle()
	claim, _, err := u.ClaimWith(ctx, "noon", 1, "k", there)
	must(t, err)
	if claim.Reference != there || !claim.UpdatedAt.Equal(claim.CreatedAt) {
		t.Errorf("the answer: %+v", claim)
	}
	if _, _, err := u.ClaimWith(ctx, "noon", 1, "k", "another"); err == nil || !strings.Contains(err.Error(), "reference") {
		t.Errorf("another reference under the key: %v", err)
	}
	if _, _, err := u.ClaimWith(ctx, "noon", 1, "k2", strings.Repeat("x", 257)); err == nil || !strings.Contains(err.Error(), "reference") {
		t.Errorf("257 characters: %v", err)
	}
	commented, err := s.admin.Orders.Comment(ctx, claim.ID, "gift wrap")
	must(t, err)
	if commented.Comment != "gift wrap" || commented.UpdatedAt.Before(claim.CreatedAt) {
		t.Errorf("the comment: %+v", commented)
	}
	mine, err := u.Orders.Get(ctx, claim.ID)
	must(t, err)
	if mine.Comment != "" || mine.Reference != there {
		t.Errorf("the user sees %+v", mine)
	}
	list, err := s.admin.Orders.List(ctx, dibs.OrderQuery{Reference: there}, dibs.Page{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].Comment != "gift wrap" || list.Items[0].Reference != there {
		t.Errorf("the list: %+v", list.Items)
	}
	var csv bytes.Buffer
	must(t, s.admin.Orders.CSV(ctx, dibs.OrderQuery{CampaignID: "noon"}, &csv))
	if !strings.Contains(csv.String(), "reference,comment,updated_at") || !strings.Contains(csv.String(), ",gift wrap,") {
		t.Errorf("the CSV: %s", csv.String())
	}
	for body, want := range map[string]int{`{"comment":null}`: 200, `{}`: 400, `{"comment":"a\nb"}`: 400, `{"status":"paid"}`: 400} {
		if code, answer := send(t, http.MethodPatch, s.url+"/v1/claims/"+claim.ID, adminKey, body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if code, _ := send(t, http.MethodPatch, s.url+"/v1/claims/"+claim.ID, "dev_42", `{"comment":"x"}`); code != http.StatusForbidden {
		t.Errorf("a user's comment: %d", code)
	}
	again, err := s.admin.Orders.Get(ctx, claim.ID)
	must(t, err)
	if again.Comment != "" {
		t.Errorf("the comment that null took away: %q", again.Comment)
	}
}

// A null takes a field away, or is refused: it is never ignored.
func TestNullInAPatch(t *testing.T) {
	s := newStack(t, nil)
	ctx := context.Background()
	_, err := s.admin.Products.Create(ctx, dibs.ProductSpec{ID: "mug", Name: "Mug", Description: "white", Price: &dibs.Money{Amount: 500, Currency: "CNY"}}, "")
	must(t, err)
	spec := dibs.CampaignSpec{
		ID: "mugs", Kind: dibs.Sale, Title: "Mugs", ProductID: new("mug"), StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour), Stock: dibs.StockSpec{Units: new(int64(5))},
		Gate: &dibs.GateSpec{Limits: []dibs.LimitSpec{{Per: "user", Rate: 5}}},
	}
	_, err = s.admin.Campaigns.Create(ctx, spec, "")
	must(t, err)
	for _, test := range []struct {
		path, body string
		code       int
		has, lacks string
	}{
		{"/v1/campaigns/mugs", `{"gate":null}`, 200, `"id":"mugs"`, `"gate":{`},
		{"/v1/campaigns/mugs", `{"title":null}`, 400, `"/title"`, ""},
		{"/v1/campaigns/mugs", `{"stock":{"units":9},"comment":"x"}`, 200, `"units":9`, ""},
		{"/v1/products/mug", `{"description":null,"price":null}`, 200, `"price":null`, "white"},
		{"/v1/products/mug", `{"name":null}`, 400, `"/name"`, ""},
		{"/v1/products/mug", `{"status":"off_sale"}`, 200, `"status":"off_sale"`, ""},
		{"/v1/products/mug", `{"status":"gone"}`, 400, `"/status"`, ""},
	} {
		code, answer := send(t, http.MethodPatch, s.url+test.path, adminKey, test.body)
		if code != test.code || !strings.Contains(answer, test.has) || test.lacks != "" && strings.Contains(answer, test.lacks) {
			t.Errorf("%s %s: %d %s", test.path, test.body, code, answer)
		}
	}
	of, err := s.admin.Campaigns.Of(ctx, "mug", dibs.Page{})
	must(t, err)
	none, err := s.admin.Campaigns.Of(ctx, "none", dibs.Page{})
	must(t, err)
	if len(of.Items) != 1 || of.Items[0].ID != "mugs" || len(none.Items) != 0 {
		t.Errorf("of the product %d, of another %d", len(of.Items), len(none.Items))
	}
	if _, err := s.admin.Campaigns.Publish(ctx, "mugs"); err == nil || !strings.Contains(err.Error(), "off sale") {
		t.Errorf("publishing: %v", err)
	}
	v, err := s.admin.Announcements.Threshold(ctx, 99)
	must(t, err)
	if v.Cover != 99 || v.Threshold == 0 || v.Proposed != 0 {
		t.Errorf("the threshold: %+v", v)
	}
}
