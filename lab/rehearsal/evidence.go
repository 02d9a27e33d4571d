package rehearsal

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// readersAtOnce is how many claims are repeated or read back at a time, after
// the load.
// It is far below a load: what is judged is the answers, and not how fast they come.
const readersAtOnce = 64

// evidence is what promises are judged by. Evidence that could not be gathered is left
// at its zero value, with the reason in the error beside it.
// It is gathered step by step by one goroutine, after the load; verdicts only read
// it.
type evidence struct {
	plan *plan
	// ours says that the campaign was made for the rehearsal: nobody else
	// claims from it.
	ours     bool
	limit    int64
	quantity int64
	// before is what the campaign's numbers were at the start.
	before api.StatsView
	tally  *tally

	// repeatsErr, and so on, say why a part is missing; nil when it is there.
	repeatsErr, readErr, ledgerErr, statsErr, verifyErr error

	// repeats are the granted presses that were repeated after the load;
	// badRepeats those that did not return the first result.
	repeats    int64
	badRepeats []dibs.Text
	// unrepeated are those that the server would not look at again, and why.
	unrepeated []dibs.Text
	// read are the claims that were read back; lost those that the server did
	// not know, and changed those that it knew otherwise.
	read          int64
	lost, changed []dibs.Text
	// ledger are the campaign's claims as the server lists them.
	ledger []api.ClaimView
	after  api.StatsView
	report audit.Report
	// packet says that the campaign is a red packet; funds is where its money is
	// after its end, and fundsErr why that could not be told.
	packet   bool
	funds    api.FundsView
	fundsErr error
}

// collector gathers faults from many callers.
// mu guards list; it is read when all callers are done.
type collector struct {
	mu   sync.Mutex
	list []dibs.Text
}

func (c *collector) add(en, zh string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, dibs.Textf(en, zh, args...))
}

// each calls do for every one of a list, a bounded number at a time. There is an
// error when it was not done for all.
func each[T any](ctx context.Context, p progress, phase string, list []T, do func(context.Context, *T) error) (int64, error) {
	var done atomic.Int64
	if len(list) == 0 {
		return 0, ctx.Err()
	}
	defer p.watch(phase, len(list), done.Load, none)()
	group, in := errgroup.WithContext(ctx)
	group.SetLimit(readersAtOnce)
	for i := range list {
		if in.Err() != nil {
			break
		}
		group.Go(func() error {
			defer done.Add(1)
			return do(in, &list[i])
		})
	}
	err := group.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return done.Load(), err
}

// repeatAll sends every granted request once more: now that all is decided, the
// first result must come back, whatever stock is left. A refusal for a reason that
// passes says nothing: the request is sent again.
func (e *evidence) repeatAll(ctx context.Context, s server, campaign string, p progress) {
	var bad, open collector
	e.repeats, e.repeatsErr = each(ctx, p, "repeating", e.firstGrants(), func(ctx context.Context, g *grant) error {
		a, err := s.claim(ctx, e.plan.claim(campaign, e.quantity, g.press))
		switch {
		case err != nil:
			open.add("the request that was granted %s got no answer any more: %s", "获得 %s 的请求重发后没有答复：%s", g.claim.ID, err)
		case a.again:
			open.add("the request that was granted %s was put off to the end: %s", "获得 %s 的请求重发后一直被推迟：%s", g.claim.ID, a.reason)
		case a.reason != granted:
			bad.add("the request that was granted %s was then refused: %s", "获得 %s 的请求重发后被拒绝：%s", g.claim.ID, a.reason)
		case a.claim.ID != g.claim.ID:
			bad.add("the request that was granted %s was then granted %s", "获得 %s 的请求重发后获得 %s", g.claim.ID, a.claim.ID)
		case !a.replayed:
			bad.add("the request that was granted %s was granted again as if it were new", "获得 %s 的请求重发后被当作新请求再次发放", g.claim.ID)
		}
		return nil
	})
	e.badRepeats, e.unrepeated = bad.list, open.list
}

// firstGrants are the grants with different claims.
func (e *evidence) firstGrants() []grant {
	seen := make(map[string]bool, len(e.tally.grants))
	var firsts []grant
	for _, g := range e.tally.grants {
		if !seen[g.claim.ID] {
			seen[g.claim.ID] = true
			firsts = append(firsts, g)
		}
	}
	return firsts
}

// readBack looks every granted claim up, as the user who was told of it.
// A claim that cannot be read leaves the promise unjudged: only a server that answers
// can have lost one.
func (e *evidence) readBack(ctx context.Context, s server, p progress) {
	var lost, changed collector
	e.read, e.readErr = each(ctx, p, "reading", e.firstGrants(), func(ctx context.Context, g *grant) error {
		user := e.plan.userID(g.press.user)
		c, err := s.find(ctx, user, g.claim.ID)
		switch {
		case err != nil:
			return fmt.Errorf("reading claim %s: %w", g.claim.ID, err)
		case c == nil:
			lost.add("there is no claim %s of %s", "领取记录 %s（用户 %s）不存在", g.claim.ID, user)
		case c.ID != g.claim.ID || c.UserID != user || c.CampaignID != g.claim.CampaignID || c.Quantity != g.claim.Quantity:
			changed.add("claim %s of %s for %d is now %s of %s for %d", "领取记录 %s（用户 %s，%d 件）变成了 %s（用户 %s，%d 件）",
				g.claim.ID, user, g.claim.Quantity, c.ID, c.UserID, c.Quantity)
		}
		return nil
	})
	e.lost, e.changed = lost.list, changed.list
}

// ask gathers what the server itself says: the list of claims, the numbers, and
// its comparison of engine and ledger.
// The list comes first: what is granted between the calls makes the numbers greater,
// and never the list.
func (e *evidence) ask(ctx context.Context, s server, campaign string) {
	e.ledger, e.ledgerErr = listAll(ctx, s, campaign)
	e.after, e.statsErr = s.stats(ctx, campaign)
	e.report, e.verifyErr = s.verify(ctx, campaign)
}

func listAll(ctx context.Context, s server, campaign string) ([]api.ClaimView, error) {
	var all []api.ClaimView
	for cursor := ""; ; {
		page, err := s.claims(ctx, campaign, cursor)
		if err != nil {
			return nil, fmt.Errorf("listing the claims: %w", err)
		}
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}
