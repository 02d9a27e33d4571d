package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

var (
	aList     = dibs.Text{EN: "list of users", ZH: "用户名单"}
	aMerchant = dibs.Text{EN: "merchant with followers", ZH: "有关注者的商家"}
)

// PutAudiencePart implements dibs.Audiences.
func (l *Ledger) PutAudiencePart(ctx context.Context, id string, version int64, part int, users []byte) error {
	return l.write(ctx, "store a part of a list", func(s *session) error {
		_, err := s.insertNew(ctx, `INSERT INTO audience_parts (id, version, part, users) VALUES (?,?,?,?)`, id, version, part, users)
		return err
	})
}

// FinishAudience implements dibs.Audiences.
func (l *Ledger) FinishAudience(ctx context.Context, a *dibs.Audience) error {
	return l.write(ctx, "finish a list", func(s *session) error {
		n, err := s.insertNew(ctx, `INSERT INTO audiences (id, version, users, seed, updated_at) VALUES (?,?,?,?,?)`,
			a.ID, a.Version, a.Users, a.Seed, a.UpdatedAt.UnixMilli())
		if err != nil {
			return err
		}
		if n == 0 {
			n, err = s.exec(ctx, `UPDATE audiences SET version = ?, users = ?, seed = ?, updated_at = ? WHERE id = ? AND version < ?`,
				a.Version, a.Users, a.Seed, a.UpdatedAt.UnixMilli(), a.ID, a.Version)
			if err != nil {
				return err
			}
			if n == 0 {
				return dibs.ErrConflict
			}
		}
		_, err = s.exec(ctx, `DELETE FROM audience_parts WHERE id = ? AND version < ?`, a.ID, a.Version)
		return err
	})
}

// DropAudience implements dibs.Audiences.
func (l *Ledger) DropAudience(ctx context.Context, id string, version int64) error {
	return l.write(ctx, "drop a list", func(s *session) error {
		// The row is held: a finish that is still being committed is waited for, where
		// the list was there before.
		var counts int64
		err := s.row(ctx, `SELECT version FROM audiences WHERE id = ?`+s.d.forUpdate, []any{id}, &counts)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && counts == version {
			return nil
		}
		_, err = s.exec(ctx, `DELETE FROM audience_parts WHERE id = ? AND version = ?`, id, version)
		return err
	})
}

// Audience implements dibs.Audiences.
func (l *Ledger) Audience(ctx context.Context, id string) (*dibs.Audience, error) {
	var a dibs.Audience
	err := l.read(ctx, "read a list", func(s *session) error {
		rows, err := s.query(ctx, `SELECT id, version, users, seed, updated_at FROM audiences WHERE id = ?`, id)
		if err != nil {
			return err
		}
		return one(rows, notFound(aList, id), func() error { return scanAudience(rows, &a) })
	})
	if err != nil {
		return nil, err
	}
	return &a, nil
}

func scanAudience(rows *sql.Rows, a *dibs.Audience) error {
	var at int64
	err := rows.Scan(&a.ID, &a.Version, &a.Users, &a.Seed, &at)
	a.UpdatedAt = fromMS(at)
	return err
}

// AudienceList implements dibs.Audiences.
func (l *Ledger) AudienceList(ctx context.Context, page dibs.Page) (dibs.List[dibs.Audience], error) {
	var after string
	if _, err := readCursor(page, &after); err != nil {
		return dibs.List[dibs.Audience]{}, err
	}
	limit := limitOf(page)
	var found []dibs.Audience
	err := l.read(ctx, "list the lists", func(s *session) error {
		return s.each(ctx, `SELECT id, version, users, seed, updated_at FROM audiences WHERE id > ? ORDER BY id LIMIT ?`,
			[]any{after, limit + 1}, func(rows *sql.Rows) error {
				found = append(found, dibs.Audience{})
				return scanAudience(rows, &found[len(found)-1])
			})
	})
	if err != nil {
		return dibs.List[dibs.Audience]{}, err
	}
	return cut(found, limit, func(a *dibs.Audience) any { return a.ID })
}

// AudiencePart implements dibs.Audiences.
func (l *Ledger) AudiencePart(ctx context.Context, id string, version int64, part int) ([]byte, error) {
	var users []byte
	err := l.read(ctx, "read a part of a list", func(s *session) error {
		err := s.row(ctx, `SELECT users FROM audience_parts WHERE id = ? AND version = ? AND part = ?`, []any{id, version, part}, &users)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(aList, id)
		}
		return err
	})
	return users, err
}

// Follow implements dibs.Audiences.
func (l *Ledger) Follow(ctx context.Context, merchant string, users []gate.Follower, follows bool) (changed int64, err error) {
	err = l.write(ctx, "change followers", func(s *session) error {
		s.many(int64(len(users)))
		changed, err = changeFollowers(ctx, s, merchant, users, follows)
		return err
	})
	return changed, err
}

// changeFollowers is Follow within a transaction.
func changeFollowers(ctx context.Context, s *session, merchant string, users []gate.Follower, follows bool) (changed int64, err error) {
	if _, err := s.insertNew(ctx, `INSERT INTO merchants (id, seq, followers) VALUES (?,0,0)`, merchant); err != nil {
		return 0, err
	}
	// The row is held to the end: changes are numbered as they can be seen.
	f := followChange{merchant: merchant, follows: follows}
	if err := s.row(ctx, `SELECT seq FROM merchants WHERE id = ?`+s.d.forUpdate, []any{merchant}, &f.seq); err != nil {
		return 0, err
	}
	for part := range slices.Chunk(users, followRows) {
		if err := f.change(ctx, s, part); err != nil {
			return 0, err
		}
	}
	sign := int64(-1)
	if follows {
		sign = 1
	}
	_, err = s.exec(ctx, `UPDATE merchants SET seq = ?, followers = followers + ? WHERE id = ?`, f.seq, sign*f.changed, merchant)
	return f.changed, err
}

// followRows is how many followers are looked at together.
const followRows = 256

// followChange changes a merchant's followers.
type followChange struct {
	merchant string
	follows  bool
	// seq is that of the last change, and changed how many users there were.
	seq, changed int64
}

// standing is a follower's row: whether the user follows, and the rank.
type standing struct{ follows, rank int64 }

// change makes users follow, or no longer: those who are new by few statements,
// others one by one.
func (f *followChange) change(ctx context.Context, s *session, users []gate.Follower) error {
	before, err := f.before(ctx, s, users)
	if err != nil {
		return err
	}
	// Who comes twice is changed once more, after the rows are there.
	var fresh []any
	var again []*gate.Follower
	for i := range users {
		u := &users[i]
		if _, there := before[u.User]; there {
			again = append(again, u)
			continue
		}
		if !f.follows {
			continue
		}
		before[u.User] = standing{1, u.Rank}
		f.seq++
		f.changed++
		fresh = append(fresh, f.merchant, u.User, 1, u.Rank, u.Since.UnixMilli(), f.seq)
	}
	if err := insertRows(ctx, s, `INSERT INTO followers (merchant, user_id, follows, standing, since, seq) VALUES `, fresh, 6); err != nil {
		return err
	}
	for _, u := range again {
		now, err := f.again(ctx, s, u, before[u.User])
		if err != nil {
			return err
		}
		before[u.User] = now
	}
	return nil
}

// before reads the rows that users have.
func (f *followChange) before(ctx context.Context, s *session, users []gate.Follower) (map[string]standing, error) {
	keys := make([][]any, len(users))
	for i := range users {
		keys[i] = []any{f.merchant, users[i].User}
	}
	found := make(map[string]standing, len(users))
	err := eachByKey(ctx, s, `SELECT user_id, follows, standing FROM followers WHERE merchant = ? AND user_id = ?`, keys, func(rows *sql.Rows) error {
		var user string
		var one standing
		err := rows.Scan(&user, &one.follows, &one.rank)
		found[user] = one
		return err
	})
	return found, err
}

// again changes a user who has a row.
func (f *followChange) again(ctx context.Context, s *session, u *gate.Follower, before standing) (standing, error) {
	now := standing{int64(flag(f.follows)), u.Rank}
	switch {
	case before == now || before.follows == 0 && !f.follows:
		return before, nil
	case before.follows == 1 && f.follows:
		_, err := s.exec(ctx, `UPDATE followers SET standing = ? WHERE merchant = ? AND user_id = ?`, u.Rank, f.merchant, u.User)
		return now, err
	}
	f.seq++
	f.changed++
	_, err := s.exec(ctx, `UPDATE followers SET follows = ?, standing = ?, since = ?, seq = ? WHERE merchant = ? AND user_id = ?`,
		now.follows, u.Rank, u.Since.UnixMilli(), f.seq, f.merchant, u.User)
	return now, err
}

// Merchant implements dibs.Audiences.
func (l *Ledger) Merchant(ctx context.Context, id string) (*gate.Merchant, error) {
	m := &gate.Merchant{ID: id}
	err := l.read(ctx, "read a merchant", func(s *session) error {
		err := s.row(ctx, `SELECT seq, followers FROM merchants WHERE id = ?`, []any{id}, &m.Seq, &m.Followers)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(aMerchant, id)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// followerKey is where a page of followers ends.
type followerKey struct{ Rank, Seq int64 }

// Followers implements dibs.Audiences.
func (l *Ledger) Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[gate.Follower], error) {
	type placed struct {
		gate.Follower
		seq int64
	}
	type part struct {
		where string
		args  []any
	}
	parts := []part{{"", nil}}
	var after followerKey
	if more, err := readCursor(page, &after); err != nil {
		return dibs.List[gate.Follower]{}, err
	} else if more {
		// The rest of those of a rank, then those below: each is a range of the index.
		parts = []part{{` AND standing = ? AND seq > ?`, []any{after.Rank, after.Seq}}, {` AND standing < ?`, []any{after.Rank}}}
	}
	limit := limitOf(page)
	var found []placed
	err := l.read(ctx, "list followers", func(s *session) error {
		for _, p := range parts {
			if len(found) > limit {
				break
			}
			if err := s.each(ctx, `SELECT user_id, standing, since, seq FROM followers WHERE merchant = ? AND follows = 1`+p.where+
				` ORDER BY standing DESC, seq LIMIT ?`, append(append([]any{merchant}, p.args...), limit+1-len(found)), func(rows *sql.Rows) error {
				var f placed
				var since int64
				err := rows.Scan(&f.User, &f.Rank, &since, &f.seq)
				f.Since = fromMS(since)
				found = append(found, f)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return dibs.List[gate.Follower]{}, err
	}
	cutOff, err := cut(found, limit, func(f *placed) any { return followerKey{f.Rank, f.seq} })
	list := dibs.List[gate.Follower]{NextCursor: cutOff.NextCursor}
	for i := range cutOff.Items {
		list.Items = append(list.Items, cutOff.Items[i].Follower)
	}
	return list, err
}

// FollowerChanges implements dibs.Audiences.
func (l *Ledger) FollowerChanges(ctx context.Context, merchant string, after int64, most int) ([]gate.FollowerChange, error) {
	var found []gate.FollowerChange
	err := l.read(ctx, "list changes of followers", func(s *session) error {
		return s.each(ctx, `SELECT user_id, follows, seq FROM followers WHERE merchant = ? AND seq > ? ORDER BY seq LIMIT ?`,
			[]any{merchant, after, most}, func(rows *sql.Rows) error {
				var c gate.FollowerChange
				err := rows.Scan(&c.User, &c.Follows, &c.Seq)
				found = append(found, c)
				return err
			})
	})
	return found, err
}

// ReplaceAudiencePart implements dibs.Audiences.
func (l *Ledger) ReplaceAudiencePart(ctx context.Context, a *dibs.Audience, part int, users []byte, left int64) error {
	return l.write(ctx, "replace a part of a list", func(s *session) error {
		n, err := s.exec(ctx, `UPDATE audiences SET users = ? WHERE id = ? AND version = ? AND users = ?`, left, a.ID, a.Version, a.Users)
		if err == nil && n == 0 {
			err = dibs.ErrConflict
		}
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, `UPDATE audience_parts SET users = ? WHERE id = ? AND version = ? AND part = ?`, users, a.ID, a.Version, part)
		return err
	})
}
