package sqlledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// TestEpochsEnd: a shard that has used up its epochs says so and stays.
func TestEpochsEnd(t *testing.T) {
	path, l, _, units := planted(t)
	raw(t, path, `UPDATE positions SET epoch = 4095`)
	for range 2 {
		_, err := l.LoadShard(t.Context(), units, dibs.ShardID{Campaign: units.Number}, live.Opener{})
		if !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("load a shard past its last epoch: %v", err)
		}
	}
}

// TestUpgradeWaiting: a ledger of before servers were noted that wait keeps those that it has seen.
func TestUpgradeWaiting(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		ctx := t.Context()
		l := openAt(t, url)
		if _, err := l.SeeServers(ctx, []string{"old"}, nil); err != nil {
			t.Fatal(err)
		}
		closeAll(t, l)
		raw(migrationsDown(t, url, 30)...)
		l = openAt(t, url)
		defer closeAll(t, l)
		now := time.Now().UTC().Truncate(time.Millisecond)
		c := &dibs.Campaign{
			ID: "c", Kind: dibs.Sale, State: dibs.Published, Title: "c", StartsAt: now, EndsAt: now.Add(time.Hour), CreatedAt: now, LimitPerUser: 1,
			Shards: 1, Version: 1, LatePayment: dibs.Reclaim, Stock: dibs.Stock{Kind: dibs.Units, Total: 1},
		}
		if err := l.InsertCampaign(ctx, c, nil); err != nil {
			t.Fatal(err)
		}
		id := dibs.ShardID{Campaign: c.Number}
		if _, err := l.LoadShard(ctx, c, id, live.Opener{Server: "old"}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.LoadShard(ctx, c, id, live.Opener{Server: "new"}); !errors.Is(err, dibs.ErrElsewhere) {
			t.Errorf("a load by another server: %v", err)
		}
	})
}
