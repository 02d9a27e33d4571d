package sqlledger

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// Deployments keeps the deployments of the engine. Which of them has a shard is in
// the shard's row in positions, which raiseEpoch writes.
//
// The rows are changed by nodes at their start, which may be many at once. Each
// decides by what it has read, and SaveDeployments refuses what was decided by
// something else than the rows of the moment.
type Deployments struct{ db *sqldb.DB }

// Deployments lists the deployments by their numbers, with what is live on each.
// Number 0 stands for the shards that were opened on a server that is in no row.
func (de *Deployments) Deployments(ctx context.Context) ([]live.Deployment, error) {
	return sqldb.Result(ctx, de.db.Read, "list deployments", func(s *sqldb.Session) ([]live.Deployment, error) {
		now, err := s.SharedNow(ctx)
		if err != nil {
			return nil, err
		}
		all, err := listDeployments(ctx, s)
		if err != nil {
			return nil, err
		}
		err = s.Each(ctx, `SELECT p.deployment, COUNT(*), MAX(COALESCE(e.seen_at, 0)) FROM campaigns c
			JOIN positions p ON p.campaign = c.number LEFT JOIN engine_servers e ON e.server = p.server
			WHERE c.state IN (?,?) AND c.ends_at > ? AND p.server <> '' GROUP BY p.deployment ORDER BY p.deployment`,
			[]any{string(dibs.Published), string(dibs.PausedState), now}, func(rows *sql.Rows) error {
				var d live.Deployment
				var seen int64
				if err := rows.Scan(&d.Number, &d.Live, &seen); err != nil {
					return err
				}
				d.Silent = now-seen >= dibs.ServerLife.Milliseconds()
				at := slices.IndexFunc(all, func(have live.Deployment) bool { return have.Number == d.Number })
				if at < 0 {
					all = slices.Insert(all, 0, d)
					return nil
				}
				all[at].Live, all[at].Silent = d.Live, d.Silent
				return nil
			})
		return all, err
	})
}

// listDeployments reads the rows. One without live shards is silent.
func listDeployments(ctx context.Context, s *sqldb.Session) ([]live.Deployment, error) {
	return sqldb.List(ctx, s, `SELECT number, identity, place FROM deployments ORDER BY number`, nil,
		func(rows *sql.Rows, d *live.Deployment) error {
			d.Silent = true
			return rows.Scan(&d.Number, &d.Identity, &d.Place)
		})
}

// SaveDeployments stores identity and place of deployments where the rows still have
// the identities of known. Number 1, when it is new, gets the shards that were opened
// on a server and are on no deployment. ErrConflict.
func (de *Deployments) SaveDeployments(ctx context.Context, known, save []live.Deployment) error {
	return de.db.Write(ctx, "save deployments", func(s *sqldb.Session) error {
		// Its row is there before any node gets here, and stands for a table that may
		// have no row to lock.
		if _, err := sqldb.Get[[]byte](ctx, s, `SELECT value FROM secrets WHERE name = ?`+s.ForUpdate, "identity"); err != nil && !isNoRows(err) {
			return err
		}
		have, err := listDeployments(ctx, s)
		if err != nil {
			return err
		}
		stored := slices.DeleteFunc(slices.Clone(known), func(d live.Deployment) bool { return d.Number == 0 })
		if !slices.EqualFunc(have, stored, func(a, b live.Deployment) bool { return a.Number == b.Number && a.Identity == b.Identity }) {
			return dibs.ErrConflict
		}
		now, err := s.SharedNow(ctx)
		if err != nil {
			return err
		}
		for i := range save {
			if err := saveDeployment(ctx, s, &save[i], now); err != nil {
				return err
			}
		}
		return nil
	})
}

// saveDeployment stores one deployment.
func saveDeployment(ctx context.Context, s *sqldb.Session, d *live.Deployment, now int64) error {
	fresh, err := s.InsertNew(ctx, `INSERT INTO deployments (number, identity, place, added_at) VALUES (?,?,?,?)`, d.Number, d.Identity, d.Place, now)
	switch {
	case err != nil:
		return err
	case fresh == 0:
		err = s.Do(ctx, `UPDATE deployments SET identity = ?, place = ? WHERE number = ?`, d.Identity, d.Place, d.Number)
	case d.Number == 1:
		err = s.Do(ctx, `UPDATE positions SET deployment = 1 WHERE deployment = 0 AND server <> ''`)
	}
	return err
}

// DeploymentOf returns the number of the deployment that has a shard; 0 when none
// has. ErrNotFound.
func (de *Deployments) DeploymentOf(ctx context.Context, shard dibs.ShardID) (number int, err error) {
	err = de.db.ReadRow(ctx, "read a shard's deployment", `SELECT deployment FROM positions WHERE campaign = ? AND shard = ?`,
		[]any{shard.Campaign, shard.Shard}, &number)
	return number, orNotFound(err, aShard, shard)
}

// Placements returns the deployments of the shards, 0 for none, of campaigns that are
// published, paused or ended and whose window ends after a time.
func (de *Deployments) Placements(ctx context.Context, after time.Time) (map[dibs.ShardID]int, error) {
	return byShard[int](ctx, de.db.Read, "list the shards of deployments", `SELECT p.campaign, p.shard, p.deployment
		FROM campaigns c JOIN positions p ON p.campaign = c.number WHERE c.state IN (?,?,?) AND c.ends_at > ?`,
		append([]any{string(dibs.EndedState)}, liveArguments(after)...)...)
}

// AbandonShard takes a shard off the deployment that it is on, which it returns. It raises
// the shard's epoch, so that nothing of before is settled any more, and drops its waiting
// commands, which the next load counts. unsold, unless nil, is how many units the ledger
// has left of the shard; an *Error of InvalidState when it has another number, or when the
// shard is on no deployment. ErrNotFound.
func (de *Deployments) AbandonShard(ctx context.Context, shard dibs.ShardID, unsold *int64) (from int, err error) {
	err = de.db.Write(ctx, "abandon shard "+shard.String(), func(s *sqldb.Session) error {
		var left int64
		if err := s.Row(ctx, `SELECT deployment, stock_left FROM positions WHERE campaign = ? AND shard = ?`+s.ForUpdate,
			[]any{shard.Campaign, shard.Shard}, &from, &left); err != nil {
			return orNotFound(err, aShard, shard)
		}
		switch {
		case from == 0:
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the shard is on no deployment of the engine", ZH: "分片不在任何引擎部署上"})
		case unsold != nil && *unsold != left:
			return dibs.Fail(dibs.InvalidState, dibs.Textf("%d units of the shard are unsold: confirm this number", "分片还有 %d 件未售出：请确认这个数量", left))
		}
		// No server holds it from here on: none is waited for.
		if err := s.Do(ctx, `UPDATE positions SET server = '', deployment = 0 WHERE campaign = ? AND shard = ?`, shard.Campaign, shard.Shard); err != nil {
			return err
		}
		_, err := raiseEpoch(ctx, s, shard, live.Opener{})
		return err
	})
	return from, err
}
