package rehearsal

import (
	"context"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// server is a dibs as the rehearsal sees it: over HTTP, from outside. An error
// of claim means that no answer arrived and nobody knows what happened; a
// refusal of any kind is an answer. The other calls return any answer but the
// wanted one as an error.
// claim and find are called concurrently.
type server interface {
	claim(ctx context.Context, req dibs.ClaimRequest) (answer, error)
	// find returns a claim as its user sees it, nil when the server has none.
	find(ctx context.Context, user, id string) (*api.ClaimView, error)

	end(ctx context.Context, id string) error
	claims(ctx context.Context, campaign, cursor string) (api.ListView[api.ClaimView], error)
	stats(ctx context.Context, campaign string) (api.StatsView, error)
	verify(ctx context.Context, campaign string) (audit.Report, error)
}

// answer is what came back for a claim.
type answer struct {
	// reason is `granted`, the problem's word, or the status when the body was
	// none of dibs's.
	reason   string
	replayed bool
	effect   dibs.Effect
	claim    api.ClaimView
	// again says that the server did not look at the request, or that its effect is
	// unknown: it may answer otherwise later.
	again bool
}

// granted is the word of a yes.
var granted = dibs.Granted.String()

// fair are the refusals that a rush explains. Any other reason is unexplained:
// the rehearsal's requests are valid, and so are its users.
var fair = map[string]bool{
	dibs.SoldOut.String(): true, dibs.LimitReached.String(): true, dibs.Paused.String(): true,
	dibs.NotStarted.String(): true, dibs.Ended.String(): true, dibs.RateLimited.String(): true,
	dibs.Unavailable.String(): true, dibs.Overloaded.String(): true, dibs.TooManyClaims.String(): true,
}

// deciding are the refusals after which the demand of a press is not met for a
// reason that promises know: stock, limit, or dibs.MaxClaimsPerUser.
var deciding = map[string]bool{dibs.SoldOut.String(): true, dibs.LimitReached.String(): true, dibs.TooManyClaims.String(): true}
