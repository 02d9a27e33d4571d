package sqlledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/dibs-dev/dibs"
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
func (l *Ledger) Follow(ctx context.Context, merchant string, users []dibs.Follower, follows bool) (changed int64, err error) {
	err = l.write(ctx, "change followers", func(s *session) error {
		changed, err = changeFollowers(ctx, s, merchant, users, follows)
		return err
	})
	return changed, err
}

// changeFollowers is Follow within a transaction.
func changeFollowers(ctx context.Context, s *session, merchant string, users []dibs.Follower, follows bool) (changed int64, err error) {
	if _, err := s.insertNew(ctx, `INSERT INTO merchants (id, seq, followers) VALUES (?,0,0)`, merchant); err != nil {
		return 0, err
	}
	// The row is held to the end: changes are numbered as they can be seen.
	var seq int64
	if err := s.row(ctx, `SELECT seq FROM merchants WHERE id = ?`+s.d.forUpdate, []any{merchant}, &seq); err != nil {
		return 0, err
	}
	for i := range users {
		n, err := follow(ctx, s, merchant, &users[i], follows, seq+1)
		if err != nil {
			return 0, err
		}
		if n.written {
			seq++
		}
		changed += n.changed
	}
	sign := int64(-1)
	if follows {
		sign = 1
	}
	_, err = s.exec(ctx, `UPDATE merchants SET seq = ?, followers = followers + ? WHERE id = ?`, seq, sign*changed, merchant)
	return changed, err
}

// followed is what became of one user.
type followed struct {
	written bool
	changed int64
}

func follow(ctx context.Context, s *session, merchant string, f *dibs.Follower, follows bool, seq int64) (followed, error) {
	var before, standing int64
	err := s.row(ctx, `SELECT follows, standing FROM followers WHERE merchant = ? AND user_id = ?`, []any{merchant, f.User}, &before, &standing)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if !follows {
			return followed{}, nil
		}
		_, err = s.exec(ctx, `INSERT INTO followers (merchant, user_id, follows, standing, since, seq) VALUES (?,?,1,?,?,?)`,
			merchant, f.User, f.Rank, f.Since.UnixMilli(), seq)
		return followed{true, 1}, err
	case err != nil:
		return followed{}, err
	case before == int64(flag(follows)) && (!follows || standing == f.Rank):
		return followed{}, nil
	case before == 1 && follows:
		_, err = s.exec(ctx, `UPDATE followers SET standing = ? WHERE merchant = ? AND user_id = ?`, f.Rank, merchant, f.User)
		return followed{}, err
	}
	_, err = s.exec(ctx, `UPDATE followers SET follows = ?, standing = ?, since = ?, seq = ? WHERE merchant = ? AND user_id = ?`,
		flag(follows), f.Rank, f.Since.UnixMilli(), seq, merchant, f.User)
	return followed{true, 1}, err
}

// Merchant implements dibs.Audiences.
func (l *Ledger) Merchant(ctx context.Context, id string) (*dibs.Merchant, error) {
	m := &dibs.Merchant{ID: id}
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
type followerKey struct {
	Rank int64
	User string
}

// Followers implements dibs.Audiences.
func (l *Ledger) Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[dibs.Follower], error) {
	where, args := ``, []any{merchant}
	var after followerKey
	if more, err := readCursor(page, &after); err != nil {
		return dibs.List[dibs.Follower]{}, err
	} else if more {
		condition, values := l.d.compare([]string{"standing", "user_id"}, "<", after.Rank, after.User)
		where, args = ` AND `+condition, append(args, values...)
	}
	limit := limitOf(page)
	var found []dibs.Follower
	err := l.read(ctx, "list followers", func(s *session) error {
		return s.each(ctx, `SELECT user_id, standing, since FROM followers WHERE merchant = ? AND follows = 1`+where+
			` ORDER BY standing DESC, user_id DESC LIMIT ?`, append(args, limit+1), func(rows *sql.Rows) error {
			var f dibs.Follower
			var since int64
			err := rows.Scan(&f.User, &f.Rank, &since)
			f.Since = fromMS(since)
			found = append(found, f)
			return err
		})
	})
	if err != nil {
		return dibs.List[dibs.Follower]{}, err
	}
	return cut(found, limit, func(f *dibs.Follower) any { return followerKey{f.Rank, f.User} })
}

// FollowerChanges implements dibs.Audiences.
func (l *Ledger) FollowerChanges(ctx context.Context, merchant string, after int64, most int) ([]dibs.FollowerChange, error) {
	var found []dibs.FollowerChange
	err := l.read(ctx, "list changes of followers", func(s *session) error {
		return s.each(ctx, `SELECT user_id, follows, seq FROM followers WHERE merchant = ? AND seq > ? ORDER BY seq LIMIT ?`,
			[]any{merchant, after, most}, func(rows *sql.Rows) error {
				var c dibs.FollowerChange
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

var _ dibs.Audiences = (*Ledger)(nil)
