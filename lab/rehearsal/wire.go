package rehearsal

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// wire is a server spoken to over HTTP. Its users and its administrators may reach it
// at two addresses.
type wire struct {
	users, admin *client.Client
	// chinese is admin, answered in Chinese; nil where nobody asks for that.
	chinese *client.Client
	// token makes a user's token.
	token func(user string) (string, error)
}

var _ server = (*wire)(nil)

// devToken is a user's token at `dibs dev`.
func devToken(user string) (string, error) { return "dev_" + user, nil }

// signedToken makes tokens under a server's secret, valid for ttl.
func signedToken(secret string, ttl time.Duration) func(user string) (string, error) {
	return func(user string) (string, error) { return httpapi.IssueToken([]byte(secret), user, ttl) }
}

func (w *wire) as(user string) (*client.Client, error) {
	token, err := w.token(user)
	if err != nil {
		return nil, err
	}
	return w.users.WithToken(token), nil
}

func (w *wire) claim(ctx context.Context, req dibs.ClaimRequest) (answer, error) {
	c, err := w.as(req.UserID)
	if err != nil {
		return answer{}, err
	}
	claim, replayed, err := c.Claim(ctx, req.CampaignID, req.Quantity, req.Key)
	var refusal *client.Error
	switch {
	case errors.As(err, &refusal) && (refusal.Status == http.StatusBadGateway || refusal.Status == http.StatusGatewayTimeout):
		// A proxy speaks: its server may have granted before it was lost.
		return answer{reason: "status " + strconv.Itoa(refusal.Status), effect: dibs.EffectUnknown, again: true}, nil
	case errors.As(err, &refusal) && refusal.Reason == "":
		return answer{reason: "status " + strconv.Itoa(refusal.Status), again: passing(refusal)}, nil
	}
	return answerOf(claim, replayed, err)
}

// answerOf is what a client returned for a claim.
func answerOf(claim api.ClaimView, replayed bool, err error) (answer, error) {
	var refusal *client.Error
	switch {
	case errors.As(err, &refusal):
		return answer{reason: refusal.Reason, effect: refusal.Effect, again: passing(refusal)}, nil
	case err != nil:
		return answer{}, err
	case claim.ID == "":
		return answer{reason: "a yes without a claim"}, nil
	}
	return answer{reason: granted, replayed: replayed, claim: claim}, nil
}

func (w *wire) find(ctx context.Context, user, id string) (*api.ClaimView, error) {
	c, err := w.as(user)
	if err != nil {
		return nil, err
	}
	v, err := c.Orders.Get(ctx, id)
	if refusal := (*client.Error)(nil); errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// greet checks that a user's token is accepted.
func (w *wire) greet(ctx context.Context, user string) error {
	c, err := w.as(user)
	if err != nil {
		return err
	}
	_, err = c.Orders.Mine(ctx, dibs.OrderQuery{}, dibs.Page{Limit: 1})
	return err
}

func (w *wire) end(ctx context.Context, id string) error {
	_, err := w.admin.Campaigns.End(ctx, id)
	return err
}

func (w *wire) claims(ctx context.Context, campaign, cursor string) (api.ListView[api.ClaimView], error) {
	return w.admin.Campaigns.Claims(ctx, campaign, client.ClaimFilter{}, dibs.Page{Limit: dibs.MaxPage, Cursor: cursor})
}

func (w *wire) stats(ctx context.Context, campaign string) (api.StatsView, error) {
	return w.admin.Campaigns.Stats(ctx, campaign)
}

func (w *wire) verify(ctx context.Context, campaign string) (audit.Report, error) {
	r, err := w.admin.Audit.Verify(ctx, campaign)
	if err != nil || w.chinese == nil {
		return r, err
	}
	zh, err := w.chinese.Audit.Verify(ctx, campaign)
	for i := range min(len(r.Campaigns), len(zh.Campaigns)) {
		said := zh.Campaigns[i].Promises
		for j := range r.Campaigns[i].Promises {
			// A change in between may have changed a verdict: then the first one stands.
			if p := &r.Campaigns[i].Promises[j]; j < len(said) && said[j].Promise == p.Promise && said[j].Held == p.Held {
				p.DetailZH = said[j].Detail
			}
		}
	}
	return r, err
}
