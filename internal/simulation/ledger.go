package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/funds"
	parts "github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// ledger is a node's way to the database: what the node asks may be slow, end in
// a deadlock, or be carried out without an answer. Calls that are rare, or that can
// lose nothing, go straight to the database.
type ledger struct {
	*sqlledger.Ledger
	p *process
}

// newLedger is the ledger of one process: it dies with it, the database does not.
func newLedger(p *process) *ledger { return &ledger{p.w.base.ledger, p} }

// Parts returns the ledger as a node wants it, all of it by way of l.
func (l *ledger) Parts() parts.Ledger {
	all := l.Ledger.Parts()
	all.Live, all.Claims, all.Campaigns, all.Orders, all.Funds, all.Audit, all.Database = l, l, l, l, l, l, l
	all.Access, all.Events, all.Announce = l, l, l
	all.Sessions, all.Revoked, all.Approvals = l, l, l
	return all
}

// write is a transaction without a result.
// An error may come after the transaction was carried out: its effect is in the
// error.
func (l *ledger) write(ctx context.Context, op string, run func(context.Context) error) error {
	_, err := askLedger(ctx, l, op, true, func(ctx context.Context) (none, error) { return none{}, run(ctx) })
	return err
}

// LoadShard implements live.Ledger.
func (l *ledger) LoadShard(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, by live.Opener) (*dibs.ShardLoad, error) {
	by = l.unfenced(ctx, id, by)
	return askLedger(ctx, l, "load shard", true, func(ctx context.Context) (*dibs.ShardLoad, error) {
		load, err := l.Ledger.LoadShard(ctx, c, id, by)
		if err == nil {
			l.p.w.story.tell("ledger: %s gets shard %s for epoch %d, settled to %s, %d left", l.p.name, id, load.Epoch, load.Position, load.StockLeft)
		}
		return load, err
	})
}

// unfenced is an opener that gets any shard, with a planted fault.
func (l *ledger) unfenced(ctx context.Context, id dibs.ShardID, by live.Opener) live.Opener {
	if !l.p.w.planted.Unfenced {
		return by
	}
	if totals, err := l.Ledger.Totals(ctx, id); err == nil {
		by.Epoch = max(by.Epoch, totals.Epoch)
	}
	return by
}

// Fence implements live.Ledger.
func (l *ledger) Fence(ctx context.Context, id dibs.ShardID, by live.Opener, seen live.ShardTotals) (live.ShardTotals, error) {
	return askLedger(ctx, l, "fence", true, func(ctx context.Context) (live.ShardTotals, error) {
		totals, err := l.Ledger.Fence(ctx, id, by, seen)
		l.p.w.story.tell("ledger: %s raises the epoch of %s to %d: %v", l.p.name, id, totals.Epoch, err)
		return totals, err
	})
}

// SeeServers implements live.Ledger.
func (l *ledger) SeeServers(ctx context.Context, seen, gone []string) ([]dibs.ShardID, error) {
	return askLedger(ctx, l, "see servers", true, func(ctx context.Context) ([]dibs.ShardID, error) {
		return l.Ledger.SeeServers(ctx, seen, gone)
	})
}

// Settle implements live.Ledger.
func (l *ledger) Settle(ctx context.Context, batches []live.Batch) error {
	return l.write(ctx, "settle", func(ctx context.Context) error {
		if l.p.w.planted.Unfenced {
			batches = slices.Clone(batches)
			for i := range batches {
				batches[i].Fence = l.unfenced(ctx, batches[i].Shard, live.Opener{}).Epoch
			}
		}
		err := l.Ledger.Settle(ctx, batches)
		if err == nil {
			// It is noted here and not when the node has its answer, which may get lost.
			l.p.w.book.settled(batches)
		}
		for i := range batches {
			b := &batches[i]
			l.p.w.story.tell("ledger: %s settles %s from %s to %s: %v", l.p.name, b.Shard, b.From, b.To, err)
		}
		return err
	})
}

// SettleTransfer implements live.Ledger.
func (l *ledger) SettleTransfer(ctx context.Context, from dibs.ShardID, fence uint16, t dibs.Transfer, units int64) error {
	return l.write(ctx, "settle transfer", func(ctx context.Context) error {
		err := l.Ledger.SettleTransfer(ctx, from, fence, t, units)
		l.p.w.story.tell("ledger: %s settles %d of %s in epoch %d ahead (%s): %v", l.p.name, units, from, fence, t.Leaves(), err)
		return err
	})
}

// Quarantine implements live.Ledger.
func (l *ledger) Quarantine(ctx context.Context, b live.Batch, why string) error {
	return l.write(ctx, "quarantine", func(ctx context.Context) error {
		err := l.Ledger.Quarantine(ctx, b, why)
		l.p.w.story.tell("ledger: %s sets %s of %s aside, %s: %v", l.p.name, b.To, b.Shard, why, err)
		return err
	})
}

// Totals implements live.Ledger.
func (l *ledger) Totals(ctx context.Context, id dibs.ShardID) (live.ShardTotals, error) {
	return askLedger(ctx, l, "totals", false, func(ctx context.Context) (live.ShardTotals, error) {
		return polled(l.p.w.base, question{what: "totals", shard: id}, always, func() (live.ShardTotals, error) { return l.Ledger.Totals(ctx, id) })
	})
}

// Restock implements campaigns.Ledger.
func (l *ledger) Restock(ctx context.Context, r campaigns.Restock) error {
	return l.write(ctx, "restock", func(ctx context.Context) error {
		err := l.Ledger.Restock(ctx, r)
		l.p.w.story.tell("ledger: %s restocks %s by %+d (%s): %v", l.p.name, r.Shard, r.Delta, r.Ref, err)
		return err
	})
}

// StockChanges implements campaigns.Ledger.
func (l *ledger) StockChanges(ctx context.Context, campaign uint32, ref string) ([]int64, error) {
	return askLedger(ctx, l, "stock changes", false, func(ctx context.Context) ([]int64, error) {
		return l.Ledger.StockChanges(ctx, campaign, ref)
	})
}

// Commands implements live.Ledger.
func (l *ledger) Commands(ctx context.Context, after int64, most int) ([]live.Command, error) {
	return askLedger(ctx, l, "commands", false, func(ctx context.Context) ([]live.Command, error) {
		return polled(l.p.w.base, question{what: "commands", from: after, most: int64(most)}, empty, func() ([]live.Command, error) {
			return l.Ledger.Commands(ctx, after, most)
		})
	})
}

// DropCommands implements live.Ledger.
func (l *ledger) DropCommands(ctx context.Context, commands []live.Command) error {
	return l.write(ctx, "drop commands", func(ctx context.Context) error {
		err := l.Ledger.DropCommands(ctx, commands)
		for i := range commands {
			l.p.w.story.tell("ledger: %s drops command %d: %v", l.p.name, commands[i].ID, err)
		}
		return err
	})
}

// Move implements orders.Ledger.
func (l *ledger) Move(ctx context.Context, groups [][]dibs.Move) ([][]dibs.Moved, error) {
	return askLedger(ctx, l, "move", true, func(ctx context.Context) ([][]dibs.Moved, error) {
		moved, err := l.Ledger.Move(ctx, groups)
		if err != nil {
			return moved, err
		}
		for i, group := range groups {
			for j := range group {
				l.p.w.story.tell("ledger: %s moves %s by %s: %v", l.p.name, group[j].Position, group[j].Step, moved[i][j].Err)
			}
		}
		return moved, nil
	})
}

// Expire implements orders.Ledger.
func (l *ledger) Expire(ctx context.Context, now time.Time, most int) (int, error) {
	return askLedger(ctx, l, "expire", true, func(ctx context.Context) (int, error) {
		if !l.p.w.plan.expires() {
			return 0, nil
		}
		n, err := l.Ledger.Expire(ctx, now, most)
		if n > 0 || err != nil {
			l.p.w.story.tell("ledger: %s lets %d claims expire: %v", l.p.name, n, err)
		}
		return n, err
	})
}

// InsertCampaign implements campaigns.Ledger.
func (l *ledger) InsertCampaign(ctx context.Context, c *dibs.Campaign, items []string) error {
	// The caller's campaign changes only with the answer. A node must not see a new
	// version of a transaction whose answer was lost.
	own := *c
	err := l.write(ctx, "insert campaign", func(ctx context.Context) error { return l.Ledger.InsertCampaign(ctx, &own, items) })
	if err == nil {
		*c = own
	}
	return err
}

// UpdateCampaign implements campaigns.Ledger.
func (l *ledger) UpdateCampaign(ctx context.Context, c *dibs.Campaign) error {
	return l.update(ctx, c, l.Ledger.UpdateCampaign)
}

// FundCampaign implements campaigns.Ledger.
func (l *ledger) FundCampaign(ctx context.Context, c *dibs.Campaign) error {
	return l.update(ctx, c, l.Ledger.FundCampaign)
}

func (l *ledger) update(ctx context.Context, c *dibs.Campaign, run func(context.Context, *dibs.Campaign) error) error {
	own := *c
	err := l.write(ctx, "update campaign", func(ctx context.Context) error {
		err := run(ctx, &own)
		l.p.w.story.tell("ledger: %s makes campaign %s %s until %s: %v", l.p.name, own.ID, own.State, own.EndsAt.Format("15:04:05.000"), err)
		return err
	})
	if err == nil {
		*c = own
	}
	return err
}

// Campaign implements campaigns.Ledger.
func (l *ledger) Campaign(ctx context.Context, id string) (*dibs.Campaign, error) {
	return askLedger(ctx, l, "campaign", false, func(ctx context.Context) (*dibs.Campaign, error) { return l.Ledger.Campaign(ctx, id) })
}

// CampaignByNumber implements live.Ledger.
func (l *ledger) CampaignByNumber(ctx context.Context, n uint32) (*dibs.Campaign, error) {
	return askLedger(ctx, l, "campaign by number", false, func(ctx context.Context) (*dibs.Campaign, error) { return l.Ledger.CampaignByNumber(ctx, n) })
}

// LiveCampaigns implements live.Ledger.
func (l *ledger) LiveCampaigns(ctx context.Context, after time.Time) ([]*dibs.Campaign, error) {
	return askLedger(ctx, l, "live campaigns", false, func(ctx context.Context) ([]*dibs.Campaign, error) { return l.Ledger.LiveCampaigns(ctx, after) })
}

// LiveVersions implements live.Ledger.
func (l *ledger) LiveVersions(ctx context.Context, after time.Time) ([]live.CampaignVersion, error) {
	return askLedger(ctx, l, "live versions", false, func(ctx context.Context) ([]live.CampaignVersion, error) {
		return l.Ledger.LiveVersions(ctx, after)
	})
}

// Claim implements claims.Ledger.
func (l *ledger) Claim(ctx context.Context, p dibs.Position) (*dibs.Claim, error) {
	return askLedger(ctx, l, "claim", false, func(ctx context.Context) (*dibs.Claim, error) { return l.Ledger.Claim(ctx, p) })
}

// ClaimByKey implements claims.Ledger.
func (l *ledger) ClaimByKey(ctx context.Context, campaign uint32, user string, key uint64) (*dibs.Claim, error) {
	return askLedger(ctx, l, "claim by key", false, func(ctx context.Context) (*dibs.Claim, error) {
		return l.Ledger.ClaimByKey(ctx, campaign, user, key)
	})
}

// CreditClaims implements funds.Ledger.
func (l *ledger) CreditClaims(ctx context.Context, c *dibs.Campaign, at time.Time, most int) (int, error) {
	return askLedger(ctx, l, "credit", true, func(ctx context.Context) (int, error) {
		n, err := l.Ledger.CreditClaims(ctx, c, at, most)
		if n > 0 {
			l.p.w.story.tell("ledger: %s credits %d shares of %s: %v", l.p.name, n, c.ID, err)
		}
		return n, err
	})
}

// ReturnRemainder implements funds.Ledger.
func (l *ledger) ReturnRemainder(ctx context.Context, c *dibs.Campaign, at time.Time) (bool, error) {
	return askLedger(ctx, l, "return", true, func(ctx context.Context) (bool, error) {
		home, err := l.Ledger.ReturnRemainder(ctx, c, at)
		l.p.w.story.tell("ledger: %s returns what is left of %s: %v %v", l.p.name, c.ID, home, err)
		return home, err
	})
}

// OpenPackets implements funds.Ledger.
func (l *ledger) OpenPackets(ctx context.Context) ([]*funds.OpenPacket, error) {
	return askLedger(ctx, l, "open packets", false, func(ctx context.Context) ([]*funds.OpenPacket, error) {
		return polled(l.p.w.base, question{what: "open packets"}, empty, func() ([]*funds.OpenPacket, error) { return l.Ledger.OpenPackets(ctx) })
	})
}

// Quarantined implements live.Ledger.
func (l *ledger) Quarantined(ctx context.Context, f live.QuarantineFilter, most int) ([]live.Quarantined, error) {
	return polled(l.p.w.base, question{what: "quarantine", aside: f, most: int64(most)}, empty, func() ([]live.Quarantined, error) {
		return l.Ledger.Quarantined(ctx, f, most)
	})
}

// RunningAnnouncements implements announce.Ledger.
func (l *ledger) RunningAnnouncements(ctx context.Context, most int) ([]announce.Announcement, error) {
	return polled(l.p.w.base, question{what: "announcements", most: int64(most)}, empty, func() ([]announce.Announcement, error) {
		return l.Ledger.RunningAnnouncements(ctx, most)
	})
}

// RevocationMark implements access.RevocationLedger.
func (l *ledger) RevocationMark(ctx context.Context) (string, error) {
	return polled(l.p.w.base, question{what: "revocations"}, always, func() (string, error) { return l.Ledger.RevocationMark(ctx) })
}

// DropRequests implements access.Ledger. It has nothing to do, as all that forgets has not:
// what it would drop is days old or of people who sign in, and a run takes minutes.
func (l *ledger) DropRequests(context.Context, time.Time) error { return nil }

// DropAdminActions implements access.Ledger.
func (l *ledger) DropAdminActions(context.Context, time.Time) error { return nil }

// DropSessions implements access.SessionLedger.
func (l *ledger) DropSessions(context.Context, time.Time) error { return nil }

// DropSignIns implements access.SessionLedger.
func (l *ledger) DropSignIns(context.Context, time.Time) error { return nil }

// DropPending implements access.SessionLedger.
func (l *ledger) DropPending(context.Context, time.Time) error { return nil }

// DropRevocations implements access.RevocationLedger.
func (l *ledger) DropRevocations(context.Context, time.Time) error { return nil }

// DropApprovals implements access.ApprovalLedger.
func (l *ledger) DropApprovals(context.Context, time.Time) error { return nil }

// TrimFeed implements events.Ledger.
func (l *ledger) TrimFeed(context.Context, time.Time, time.Duration) (int64, error) { return 0, nil }

// Ping implements ledger.Database.
func (l *ledger) Ping(ctx context.Context) error {
	_, err := askLedger(ctx, l, "ping", false, func(ctx context.Context) (none, error) { return none{}, l.Ledger.Ping(ctx) })
	return err
}

// String names the node whose ledger it is.
func (l *ledger) String() string { return fmt.Sprintf("the ledger of %s", l.p.name) }
