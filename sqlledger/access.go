package sqlledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
)

const keyColumns = `id, name, role, hash, created_at, revoked_at`

// InsertKey implements dibs.Access.
func (l *Ledger) InsertKey(ctx context.Context, k *access.APIKey) error {
	return l.write(ctx, "insert API key", func(s *session) error {
		_, err := s.exec(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES (?,?,?,?,?,?)`,
			k.ID, k.Name, string(k.Role), k.Hash, k.CreatedAt.UnixMilli(), optionalMS(k.RevokedAt))
		if err != nil && l.d.classify(err) == faultUnique {
			return exists(aKey, k.ID)
		}
		return err
	})
}

// optionalMS is milliseconds since 1970, 0 for no time.
func optionalMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// KeyByHash implements dibs.Access.
func (l *Ledger) KeyByHash(ctx context.Context, hash []byte) (*access.APIKey, error) {
	var k access.APIKey
	err := l.read(ctx, "read API key", func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE hash = ? AND revoked_at = 0`, hash)
		if err != nil {
			return err
		}
		none := dibs.Fail(dibs.NotFound, dibs.Text{EN: "There is no such API key", ZH: "API 密钥不存在"})
		return one(rows, none, func() error { return scanKey(rows, &k) })
	})
	if err != nil {
		return nil, err
	}
	return &k, nil
}

// Keys implements dibs.Access.
func (l *Ledger) Keys(ctx context.Context) ([]access.APIKey, error) {
	var found []access.APIKey
	err := l.read(ctx, "list API keys", func(s *session) error {
		return s.each(ctx, `SELECT `+keyColumns+` FROM api_keys ORDER BY created_at DESC, id DESC`, nil, func(rows *sql.Rows) error {
			found = append(found, access.APIKey{})
			return scanKey(rows, &found[len(found)-1])
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func scanKey(rows *sql.Rows, k *access.APIKey) error {
	var created, revoked int64
	err := rows.Scan(&k.ID, &k.Name, &k.Role, &k.Hash, &created, &revoked)
	k.CreatedAt, k.RevokedAt = fromMS(created), fromOptionalMS(revoked)
	return err
}

// RevokeKey implements dibs.Access. A key that was revoked before keeps its
// first time.
func (l *Ledger) RevokeKey(ctx context.Context, id string, at time.Time) error {
	return l.write(ctx, "revoke API key", func(s *session) error {
		n, err := s.exec(ctx, `UPDATE api_keys SET revoked_at = CASE revoked_at WHEN 0 THEN ? ELSE revoked_at END WHERE id = ?`,
			at.UnixMilli(), id)
		if err == nil && n == 0 {
			err = notFound(aKey, id)
		}
		return err
	})
}

// Request implements dibs.Access.
func (l *Ledger) Request(ctx context.Context, caller, key string) (*access.StoredRequest, error) {
	r := &access.StoredRequest{Caller: caller, Key: key}
	var at int64
	err := l.read(ctx, "read request", func(s *session) error {
		err := s.row(ctx, `SELECT hash, status, body, at FROM requests WHERE caller = ? AND request_key = ?`,
			[]any{caller, key}, &r.Hash, &r.Status, &r.Body, &at)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(aRequest, key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.At = fromMS(at)
	return r, nil
}

// SaveRequest implements dibs.Access.
func (l *Ledger) SaveRequest(ctx context.Context, r *access.StoredRequest) error {
	return l.write(ctx, "save request", func(s *session) error {
		// An empty body is no body at all to some drivers.
		body := append([]byte{}, r.Body...)
		_, err := s.exec(ctx, `INSERT INTO requests (caller, request_key, hash, status, body, at) VALUES (?,?,?,?,?,?)`,
			r.Caller, r.Key, append([]byte{}, r.Hash...), r.Status, body, r.At.UnixMilli())
		if err != nil && l.d.classify(err) == faultUnique {
			return exists(aRequest, r.Key)
		}
		return err
	})
}

// DropRequests implements dibs.Access.
func (l *Ledger) DropRequests(ctx context.Context, before time.Time) error {
	return l.write(long(ctx, longStatement), "drop requests", func(s *session) error {
		_, err := s.exec(ctx, `DELETE FROM requests WHERE at < ?`, before.UnixMilli())
		return err
	})
}

// Secret implements dibs.Access. The randomness is the operating system's.
func (l *Ledger) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	const find = `SELECT value FROM secrets WHERE name = ?`
	var value []byte
	err := l.read(ctx, "read secret", func(s *session) error {
		return s.row(ctx, find, []any{name}, &value)
	})
	if !errors.Is(err, sql.ErrNoRows) {
		return value, err
	}
	fresh := make([]byte, size)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	err = l.write(ctx, "make secret", func(s *session) error {
		// Another node may have been faster: what is stored counts.
		_, err := s.insertNew(ctx, `INSERT INTO secrets (name, value) VALUES (?,?)`, name, fresh)
		if err != nil {
			return err
		}
		return s.row(ctx, find, []any{name}, &value)
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}
