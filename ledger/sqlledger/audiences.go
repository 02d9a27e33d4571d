package sqlledger

import (
	"context"
	"database/sql"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// Audiences keeps lists of users, in parts, and the followers of merchants.
//
// A list's parts are stored before the row in audiences that makes their
// version the current one; parts of older versions go in the same transaction.
// A merchant's row has the number of its last change (seq) and how many follow.
// It is locked while its followers change, so that changes become visible in
// the order of their numbers. A follower's row stays when the user follows no
// longer, and says so.
type Audiences struct{ db *sqldb.DB }

// PutAudiencePart stores a part of a version of a list. It is not read before
// FinishAudience.
func (au *Audiences) PutAudiencePart(ctx context.Context, id string, version int64, part int, users []byte) error {
	return au.db.Write(ctx, "store a part of a list", func(s *sqldb.Session) error {
		_, err := s.InsertNew(ctx, `INSERT INTO audience_parts (id, version, part, users) VALUES (?,?,?,?)`, id, version, part, users)
		return err
	})
}

// FinishAudience makes a version, whose parts are stored, the current one, and
// drops the parts of older ones, in one transaction. ErrConflict when a later
// version is current.
func (au *Audiences) FinishAudience(ctx context.Context, a *dibs.Audience) error {
	return au.db.Write(ctx, "finish a list", func(s *sqldb.Session) error {
		// An upload that is older than the current version does not replace it,
		// whichever ends first.
		n, err := s.InsertNew(ctx, `INSERT INTO audiences (id, version, users, seed, updated_at) VALUES (?,?,?,?,?)`,
			a.ID, a.Version, a.Users, a.Seed, a.UpdatedAt.UnixMilli())
		if err == nil && n == 0 {
			err = s.DoOne(ctx, dibs.ErrConflict, `UPDATE audiences SET version = ?, users = ?, seed = ?, updated_at = ?
				WHERE id = ? AND version < ?`, a.Version, a.Users, a.Seed, a.UpdatedAt.UnixMilli(), a.ID, a.Version)
		}
		if err != nil {
			return err
		}
		return s.Do(ctx, `DELETE FROM audience_parts WHERE id = ? AND version < ?`, a.ID, a.Version)
	})
}

// DropAudience drops the parts of a version whose upload was broken off, but
// never those of the current version: FinishAudience may return an error after
// it took effect.
func (au *Audiences) DropAudience(ctx context.Context, id string, version int64) error {
	return au.db.Write(ctx, "drop a list", func(s *sqldb.Session) error {
		// The lock waits for a FinishAudience that is being committed, where
		// the list existed before.
		current, err := sqldb.Get[int64](ctx, s, `SELECT version FROM audiences WHERE id = ?`+s.ForUpdate, id)
		if err != nil && !isNoRows(err) {
			return err
		}
		if err == nil && current == version {
			return nil
		}
		return s.Do(ctx, `DELETE FROM audience_parts WHERE id = ? AND version = ?`, id, version)
	})
}

const selectAudiences = `SELECT id, version, users, seed, updated_at FROM audiences`

// Audience returns a list, without its parts. ErrNotFound.
func (au *Audiences) Audience(ctx context.Context, id string) (*dibs.Audience, error) {
	return sqldb.ReadOne(ctx, au.db, "read a list", selectAudiences+` WHERE id = ?`, []any{id}, notFound(aList, id), scanAudience)
}

// scanAudience reads the columns of selectAudiences.
func scanAudience(rows *sql.Rows, a *dibs.Audience) error {
	return rows.Scan(&a.ID, &a.Version, &a.Users, &a.Seed, ms(&a.UpdatedAt))
}

// AudienceList lists the lists by id.
func (au *Audiences) AudienceList(ctx context.Context, page dibs.Page) (dibs.List[dibs.Audience], error) {
	return readPage(ctx, au.db, "list the lists", page, "", func(after string) query {
		return query{selectAudiences + ` WHERE id > ? ORDER BY id LIMIT ?`, []any{after}}
	}, scanAudience, func(a *dibs.Audience) string { return a.ID })
}

// AudiencePart returns a part of a version. ErrNotFound when it does not exist,
// or no longer.
func (au *Audiences) AudiencePart(ctx context.Context, id string, version int64, part int) (users []byte, err error) {
	err = au.db.ReadRow(ctx, "read a part of a list", `SELECT users FROM audience_parts WHERE id = ? AND version = ? AND part = ?`,
		[]any{id, version, part}, &users)
	return users, orNotFound(err, aList, id)
}

// ReplaceAudiencePart stores a part of the current version without some of its
// users, in one transaction. left is how many users the list has then.
// ErrConflict when the list has changed since it was read, or another version
// is current.
func (au *Audiences) ReplaceAudiencePart(ctx context.Context, a *dibs.Audience, part int, users []byte, left int64) error {
	return au.db.Write(ctx, "replace a part of a list", func(s *sqldb.Session) error {
		if err := s.DoOne(ctx, dibs.ErrConflict, `UPDATE audiences SET users = ? WHERE id = ? AND version = ? AND users = ?`,
			left, a.ID, a.Version, a.Users); err != nil {
			return err
		}
		return s.Do(ctx, `UPDATE audience_parts SET users = ? WHERE id = ? AND version = ? AND part = ?`, users, a.ID, a.Version, part)
	})
}

// Follow makes users follow a merchant, or no longer, in one transaction, and
// returns how many changed. A new rank is stored without being counted.
func (au *Audiences) Follow(ctx context.Context, merchant string, users []gate.Follower, follows bool) (changed int64, err error) {
	return sqldb.Result(ctx, au.db.Write, "change followers", func(s *sqldb.Session) (int64, error) {
		s.ManyRows(int64(len(users)))
		return changeFollowers(ctx, s, merchant, users, follows)
	})
}

// changeFollowers is Follow within a transaction. Locking the merchant's row
// numbers the changes in the order in which they are committed.
func changeFollowers(ctx context.Context, s *sqldb.Session, merchant string, users []gate.Follower, follows bool) (changed int64, err error) {
	if _, err := s.InsertNew(ctx, `INSERT INTO merchants (id, seq, followers) VALUES (?,0,0)`, merchant); err != nil {
		return 0, err
	}
	f := followChange{merchant: merchant, follows: follows}
	if err := s.Row(ctx, `SELECT seq FROM merchants WHERE id = ?`+s.ForUpdate, []any{merchant}, &f.seq); err != nil {
		return 0, err
	}
	for part := range slices.Chunk(users, followRows) {
		if err := f.change(ctx, s, part); err != nil {
			return 0, err
		}
	}
	more := f.changed
	if !follows {
		more = -more
	}
	return f.changed, s.Do(ctx, `UPDATE merchants SET seq = ?, followers = followers + ? WHERE id = ?`, f.seq, more, merchant)
}

// followRows is how many followers are looked at together.
const followRows = 256

// followChange changes a merchant's followers.
type followChange struct {
	merchant string
	follows  bool
	// seq is that of the last change, and changed how many users changed.
	seq, changed int64
}

// followState is what a follower's row says: whether the user follows, as 0 or
// 1, and the rank.
type followState struct{ follows, rank int64 }

// change makes users follow, or no longer: new ones by few statements, others
// one by one.
func (f *followChange) change(ctx context.Context, s *sqldb.Session, users []gate.Follower) error {
	before, err := f.before(ctx, s, users)
	if err != nil {
		return err
	}
	// A new user who is listed twice is changed once more, after the rows are
	// written.
	var fresh []any
	var existing []*gate.Follower
	for i := range users {
		u := &users[i]
		if _, there := before[u.User]; there {
			existing = append(existing, u)
			continue
		}
		if !f.follows {
			continue
		}
		before[u.User] = followState{1, u.Rank}
		f.seq++
		f.changed++
		fresh = append(fresh, f.merchant, u.User, 1, u.Rank, u.Since.UnixMilli(), f.seq)
	}
	// Most changes are of users who never followed: they cost a row, and one
	// look-up by key, each.
	if err := s.InsertRows(ctx, `INSERT INTO followers (merchant, user_id, follows, standing, since, seq) VALUES `, fresh, 6); err != nil {
		return err
	}
	for _, u := range existing {
		now, err := f.update(ctx, s, u, before[u.User])
		if err != nil {
			return err
		}
		before[u.User] = now
	}
	return nil
}

// before reads the rows that users have. Users without a row are missing in the
// map.
func (f *followChange) before(ctx context.Context, s *sqldb.Session, users []gate.Follower) (map[string]followState, error) {
	keys := make([][]any, len(users))
	for i := range users {
		keys[i] = []any{f.merchant, users[i].User}
	}
	found := make(map[string]followState, len(users))
	err := s.EachByKey(ctx, `SELECT user_id, follows, standing FROM followers WHERE merchant = ? AND user_id = ?`, keys, func(rows *sql.Rows) error {
		var user string
		var one followState
		err := rows.Scan(&user, &one.follows, &one.rank)
		found[user] = one
		return err
	})
	return found, err
}

// update changes a user who has a row. A new rank alone is no change for those
// who follow the changes.
func (f *followChange) update(ctx context.Context, s *sqldb.Session, u *gate.Follower, before followState) (followState, error) {
	now := followState{int64(flag(f.follows)), u.Rank}
	switch {
	case before == now || before.follows == 0 && !f.follows:
		return before, nil
	case before.follows == 1 && f.follows:
		return now, s.Do(ctx, `UPDATE followers SET standing = ? WHERE merchant = ? AND user_id = ?`, u.Rank, f.merchant, u.User)
	}
	f.seq++
	f.changed++
	return now, s.Do(ctx, `UPDATE followers SET follows = ?, standing = ?, since = ?, seq = ? WHERE merchant = ? AND user_id = ?`,
		now.follows, u.Rank, u.Since.UnixMilli(), f.seq, f.merchant, u.User)
}

// Merchant returns a merchant. ErrNotFound for one that never had followers.
func (au *Audiences) Merchant(ctx context.Context, id string) (*gate.Merchant, error) {
	return sqldb.ReadOne(ctx, au.db, "read a merchant", `SELECT id, seq, followers FROM merchants WHERE id = ?`, []any{id},
		notFound(aMerchant, id), func(rows *sql.Rows, m *gate.Merchant) error {
			return rows.Scan(&m.ID, &m.Seq, &m.Followers)
		})
}

// followerCursor is where a page of followers ended.
type followerCursor struct{ Rank, Seq int64 }

// storedFollower is a follower with the number of its last change.
type storedFollower struct {
	gate.Follower
	seq int64
}

// Followers lists a merchant's followers, the highest rank first.
func (au *Audiences) Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[gate.Follower], error) {
	parts := []query{{"", nil}}
	var after followerCursor
	if more, err := readCursor(page.Cursor, &after); err != nil {
		return dibs.List[gate.Follower]{}, err
	} else if more {
		// The rest of those of a rank, then those below: each is a range of the
		// index.
		parts = []query{{` AND standing = ? AND seq > ?`, []any{after.Rank, after.Seq}}, {` AND standing < ?`, []any{after.Rank}}}
	}
	limit := limitOf(page)
	var found []storedFollower
	err := au.db.Read(ctx, "list followers", func(s *sqldb.Session) error {
		for _, p := range parts {
			if len(found) > limit {
				break
			}
			some, err := sqldb.List(ctx, s, `SELECT user_id, standing, since, seq FROM followers WHERE merchant = ? AND follows = 1`+p.statement+
				` ORDER BY standing DESC, seq LIMIT ?`, append(append([]any{merchant}, p.args...), limit+1-len(found)), scanFollower)
			if err != nil {
				return err
			}
			found = append(found, some...)
		}
		return nil
	})
	if err != nil {
		return dibs.List[gate.Follower]{}, err
	}
	cutOff, err := cut(found, limit, func(f *storedFollower) followerCursor { return followerCursor{f.Rank, f.seq} })
	list := dibs.List[gate.Follower]{NextCursor: cutOff.NextCursor}
	for i := range cutOff.Items {
		list.Items = append(list.Items, cutOff.Items[i].Follower)
	}
	return list, err
}

// scanFollower reads user, rank, time and seq.
func scanFollower(rows *sql.Rows, f *storedFollower) error {
	return rows.Scan(&f.User, &f.Rank, ms(&f.Since), &f.seq)
}

// FollowerChanges returns changes after a seq, in order, up to most.
func (au *Audiences) FollowerChanges(ctx context.Context, merchant string, after int64, most int) ([]gate.FollowerChange, error) {
	return sqldb.ReadList(ctx, au.db, "list changes of followers",
		`SELECT user_id, follows, seq FROM followers WHERE merchant = ? AND seq > ? ORDER BY seq LIMIT ?`, []any{merchant, after, most},
		func(rows *sql.Rows, c *gate.FollowerChange) error { return rows.Scan(&c.User, &c.Follows, &c.Seq) })
}

// MerchantSizes calls do for each number of followers that a merchant has, the lowest
// first, with how many merchants have it. It reads the counts that are kept beside the
// followers, and no follower.
func (au *Audiences) MerchantSizes(ctx context.Context, do func(followers, merchants int64)) error {
	return au.db.Read(ctx, "count followers", func(s *sqldb.Session) error {
		return s.Each(ctx, `SELECT followers, COUNT(*) FROM merchants WHERE followers > 0 GROUP BY followers ORDER BY followers`, nil,
			func(rows *sql.Rows) error {
				var followers, merchants int64
				err := rows.Scan(&followers, &merchants)
				do(followers, merchants)
				return err
			})
	})
}
