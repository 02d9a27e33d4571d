package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

// Codes are asked for by pages, or all as a file.
func TestCodeCalls(t *testing.T) {
	e, c := serve(t, client.Options{AdminKey: "admin-key"})
	e.body = `{"items":[{"code":"A1"}],"next_cursor":"n"}`
	l, err := c.Campaigns.UnclaimedCodes(t.Context(), "a", dibs.Page{Limit: 5})
	if err != nil || len(l.Items) != 1 || l.Items[0].Code != "A1" || l.NextCursor != "n" || e.last.URL.RequestURI() != "/v1/campaigns/a/codes?limit=5" {
		t.Errorf("%+v, %v from %s", l, err, e.last.URL)
	}
	e.body = "code\nA1\n"
	var file strings.Builder
	err = c.Campaigns.UnclaimedCodesCSV(t.Context(), "a", &file)
	if err != nil || file.String() != e.body || e.last.URL.RequestURI() != "/v1/campaigns/a/codes?format=csv" || e.last.Header.Get("Authorization") != "Bearer admin-key" {
		t.Errorf("%q, %v from %s", file.String(), err, e.last.URL)
	}
}

func TestImportCodes(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key POST /v1/campaigns/a/codes": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Campaigns.ImportCodes(ctx, "a", strings.NewReader("A1\n"), "", nil)
			return err
		},
	})
}
