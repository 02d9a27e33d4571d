package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
)

func TestCampaigns(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/campaigns/a%2Fb": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Get(ctx, "a/b")
			return err
		},
		"admin-key GET /v1/campaigns": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.List(ctx, dibs.Page{})
			return err
		},
		"admin-key POST /v1/campaigns": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Create(ctx, dibs.CampaignSpec{}, "")
			return err
		},
		"admin-key PATCH /v1/campaigns/a": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Patch(ctx, "a", dibs.CampaignPatch{})
			return err
		},
		"admin-key POST /v1/campaigns/a/publish": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Publish(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/pause": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Pause(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/resume": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Resume(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/end": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.End(ctx, "a")
			return err
		},
		"admin-key POST /v1/campaigns/a/stock": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.ChangeStock(ctx, "a", dibs.StockChange{}, "")
			return err
		},
		"admin-key GET /v1/campaigns/a/stats": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Stats(ctx, "a")
			return err
		},
		"admin-key GET /v1/campaigns/a/claims?status=pending&user_id=7": func(ctx context.Context, c *client.Client) error {
			_, err := c.Campaigns.Claims(ctx, "a", client.ClaimFilter{UserID: "7", Status: "pending"}, dibs.Page{})
			return err
		},
		"admin-key GET /v1/campaigns/a/claims?format=csv": func(ctx context.Context, c *client.Client) error {
			return c.Campaigns.ClaimsCSV(ctx, "a", client.ClaimFilter{}, io.Discard)
		},
	})
}

// inTurn answers with one answer after another, a status and a body, and then with the last one.
type inTurn []struct {
	status int
	body   string
}

func (l *inTurn) RoundTrip(*http.Request) (*http.Response, error) {
	is := (*l)[0]
	if len(*l) > 1 {
		*l = (*l)[1:]
	}
	return &http.Response{StatusCode: is.status, Body: io.NopCloser(strings.NewReader(is.body))}, nil
}

// Watching goes on when a proxy reaches no node for a while. It ends when there is no such campaign.
func TestWatchBehindAProxy(t *testing.T) {
	const snapshot = `id: %d
data: {"remaining":%d}

`
	for _, last := range []string{`{"reason":"not_found"}`, "<html>"} {
		synctest.Test(t, func(t *testing.T) {
			event := func(n string) string { return strings.ReplaceAll(snapshot, "%d", n) }
			c, err := client.New("http://dibs.test", client.Options{HTTPClient: &http.Client{Transport: &inTurn{
				{502, "<html>"}, {200, event("3")}, {503, ""}, {504, "<html>"}, {200, event("2")}, {404, last},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			var heard []int64
			err = c.Campaigns.Watch(t.Context(), "a", func(v api.SnapshotView) bool {
				heard = append(heard, v.Remaining)
				return true
			})
			var e *client.Error
			if !slices.Equal(heard, []int64{3, 2}) || !errors.As(err, &e) || e.Status != 404 {
				t.Errorf("heard %v, then %v", heard, err)
			}
		})
	}
}
