package sqlledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/access"
)

// Access keeps API keys, remembered requests, secrets and the admin log.
//
// A key is known by its SHA-256, so that the ledger never has the key itself. A
// request is remembered once by caller and request key: of two nodes that
// answer the same request, the second gets ErrAlreadyExists. A row of the admin
// log is written before the action, without its result, and once more after it;
// only result and new state ever change in it, but for an erasure. audit_chain has
// a record of each write.
type Access struct{ db *sqldb.DB }

// keyColumns are the columns of an API key. hash is its SHA-256; revoked_at, expires_at
// and last_used_at are 0 when there is no such time. person is empty for a key that was made, roots
// for one of no other origin than itself.
const keyColumns = `id, name, role, hash, created_at, revoked_at, expires_at, last_used_at, scopes, person, roots`

// InsertKey stores an API key. ErrAlreadyExists when its id is taken.
func (ac *Access) InsertKey(ctx context.Context, k *access.APIKey) error {
	return ac.db.Write(ctx, "insert API key", func(s *sqldb.Session) error {
		return orExists(s, insertKey(ctx, s, k), aKey, k.ID)
	})
}

func insertKey(ctx context.Context, s *sqldb.Session, k *access.APIKey) error {
	_, err := s.Exec(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES (`+sqldb.Repeat("?", 11)+`)`, k.ID, k.Name, string(k.Role), k.Hash,
		k.CreatedAt.UnixMilli(), toOptionalMS(k.RevokedAt), toOptionalMS(k.ExpiresAt), toOptionalMS(k.LastUsedAt), k.Scopes.String(), storable(k.Person), rootsText(k.Roots))
	return err
}

// KeyByHash returns a key that is not revoked, by its SHA-256. ErrNotFound.
func (ac *Access) KeyByHash(ctx context.Context, hash []byte) (*access.APIKey, error) {
	return sqldb.ReadOne(ctx, ac.db, "read API key", `SELECT `+keyColumns+` FROM api_keys WHERE hash = ? AND revoked_at = 0`, []any{hash},
		dibs.Fail(dibs.NotFound, dibs.Text{EN: "There is no such API key", ZH: "API 密钥不存在"}), scanKey)
}

// Keys lists all keys, the newest first.
func (ac *Access) Keys(ctx context.Context) ([]access.APIKey, error) {
	return sqldb.ReadList(ctx, ac.db, "list API keys", `SELECT `+keyColumns+` FROM api_keys ORDER BY created_at DESC, id DESC`, nil, scanKey)
}

// scanKey reads keyColumns.
func scanKey(rows *sql.Rows, k *access.APIKey) error {
	var created, revoked, expires, used int64
	var scopes, roots string
	if err := rows.Scan(&k.ID, &k.Name, &k.Role, &k.Hash, &created, &revoked, &expires, &used, &scopes, &k.Person, &roots); err != nil {
		return err
	}
	k.CreatedAt, k.RevokedAt, k.ExpiresAt, k.LastUsedAt = fromMS(created), fromOptionalMS(revoked), fromOptionalMS(expires), fromOptionalMS(used)
	var err error
	if k.Roots, err = rootsOf(roots); err != nil {
		return err
	}
	k.Scopes, err = access.ReadScopes(scopes)
	return err
}

// rootsText is a key's origins as a JSON text, empty for none: the name of a person may have any character.
func rootsText(roots []string) string {
	if len(roots) == 0 {
		return ""
	}
	// Texts can always be written.
	raw, _ := json.Marshal(roots)
	return string(raw)
}

func rootsOf(text string) (roots []string, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &roots)
	}
	return roots, err
}

// keyTerms is the version of the tables from which on keys have terms, keyPersons the one from which on some are of
// persons.
const (
	keyTerms   = 15
	keyPersons = 21
)

// HasAdminKey reports whether there is a valid key of an admin that does not end with a person's sign-in, at a version
// of the tables that may be an older one.
func HasAdminKey(ctx context.Context, l *Ledger, version int64, now time.Time) (has bool, err error) {
	valid, args := `role = ? AND revoked_at = 0`, []any{string(access.RoleAdmin)}
	if version >= keyTerms {
		valid, args = valid+` AND scopes = '' AND (expires_at = 0 OR expires_at > ?)`, append(args, now.UnixMilli())
	}
	if version >= keyPersons {
		valid += ` AND person = ''`
	}
	err = l.Access.db.Read(ctx, "look for an API key", func(s *sqldb.Session) error {
		var keys int64
		err := s.Row(ctx, `SELECT COUNT(*) FROM api_keys WHERE `+valid, args, &keys)
		has = keys > 0
		return err
	})
	return has, err
}

// ExpireKey lets a key end at a time, or earlier where it ends earlier. ErrNotFound.
func (ac *Access) ExpireKey(ctx context.Context, id string, at time.Time) error {
	return ac.db.Write(ctx, "expire API key", func(s *sqldb.Session) error {
		ms := at.UnixMilli()
		n, err := s.Exec(ctx, `UPDATE api_keys SET expires_at = CASE WHEN expires_at > 0 AND expires_at < ? THEN expires_at ELSE ? END WHERE id = ?`, ms, ms, id)
		if err != nil || n > 0 {
			return err
		}
		// No row is changed, too, where it ends at that time already.
		var one int
		err = s.Row(ctx, `SELECT 1 FROM api_keys WHERE id = ?`, []any{id}, &one)
		if isNoRows(err) {
			err = notFound(aKey, id)
		}
		return err
	})
}

// TouchKeys notes when keys were used last.
func (ac *Access) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return ac.db.Write(ctx, "note the use of API keys", func(s *sqldb.Session) error {
		// In one order, so that two nodes do not wait for each other.
		for _, id := range slices.Sorted(maps.Keys(used)) {
			ms := used[id].UnixMilli()
			if _, err := s.Exec(ctx, `UPDATE api_keys SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, ms, id, ms); err != nil {
				return err
			}
		}
		return nil
	})
}

// RevokeKey ends a key. A key that was revoked before keeps its first time.
// ErrNotFound.
func (ac *Access) RevokeKey(ctx context.Context, id string, at time.Time) error {
	return ac.db.Write(ctx, "revoke API key", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `UPDATE api_keys SET revoked_at = CASE revoked_at WHEN 0 THEN ? ELSE revoked_at END WHERE id = ?`,
			at.UnixMilli(), id)
		if err == nil && n == 0 {
			err = notFound(aKey, id)
		}
		return err
	})
}

// Request returns the remembered answer to a caller's request key. ErrNotFound.
func (ac *Access) Request(ctx context.Context, caller, key string) (*access.StoredRequest, error) {
	return sqldb.ReadOne(ctx, ac.db, "read request", `SELECT caller, request_key, hash, status, body, at FROM requests WHERE caller = ? AND request_key = ?`,
		[]any{caller, key}, notFound(aRequest, key), func(rows *sql.Rows, r *access.StoredRequest) error {
			var at int64
			err := rows.Scan(&r.Caller, &r.Key, &r.Hash, &r.Status, &r.Body, &at)
			r.At = fromMS(at)
			return err
		})
}

// SaveRequest remembers an answer. ErrAlreadyExists when the caller's key has
// one.
func (ac *Access) SaveRequest(ctx context.Context, r *access.StoredRequest) error {
	return ac.db.Write(ctx, "save request", func(s *sqldb.Session) error {
		// Some drivers store a nil slice as NULL.
		body := append([]byte{}, r.Body...)
		_, err := s.Exec(ctx, `INSERT INTO requests (caller, request_key, hash, status, body, at) VALUES (?,?,?,?,?,?)`,
			r.Caller, r.Key, append([]byte{}, r.Hash...), r.Status, body, r.At.UnixMilli())
		return orExists(s, err, aRequest, r.Key)
	})
}

// DropRequests forgets answers that were saved before a time.
func (ac *Access) DropRequests(ctx context.Context, before time.Time) error {
	return ac.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "drop requests", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `DELETE FROM requests WHERE at < ?`, before.UnixMilli())
		return err
	})
}

// Secret returns the secret of a name. The first call makes it from size random
// bytes of the operating system; every node gets the same one.
func (ac *Access) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	const find = `SELECT value FROM secrets WHERE name = ?`
	var value []byte
	err := ac.db.Read(ctx, "read secret", func(s *sqldb.Session) error {
		return s.Row(ctx, find, []any{name}, &value)
	})
	if !isNoRows(err) {
		return value, err
	}
	fresh := make([]byte, size)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	err = ac.db.Write(ctx, "make secret", func(s *sqldb.Session) error {
		// Another node may have stored one since: the stored one counts.
		_, err := s.InsertNew(ctx, `INSERT INTO secrets (name, value) VALUES (?,?)`, name, fresh)
		if err != nil {
			return err
		}
		return s.Row(ctx, find, []any{name}, &value)
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// ForgetSecrets deletes secrets by their names, and returns how many there were. Secret makes
// each anew for the process that asks first.
func (ac *Access) ForgetSecrets(ctx context.Context, names ...string) (n int64, err error) {
	err = ac.db.Write(ctx, "forget secrets", func(s *sqldb.Session) error {
		n = 0
		for _, name := range names {
			gone, err := s.Exec(ctx, `DELETE FROM secrets WHERE name = ?`, name)
			if err != nil {
				return err
			}
			n += gone
		}
		return nil
	})
	return n, err
}

// ConsoleSessions keeps the sessions of the console. A session whose key was revoked, or has
// expired, has ended too: the key decides, so that no second write can be missed.
type ConsoleSessions struct{ db *sqldb.DB }

const sessionColumns = `s.id, s.key_id, COALESCE(k.name, ''), s.address, s.agent, s.created_at, s.expires_at, s.last_used_at, s.ended_at`

// insertSessionText takes seven values.
const insertSessionText = `INTO console_sessions (id, key_id, address, agent, created_at, expires_at, last_used_at, ended_at) VALUES (?,?,?,?,?,?,?,0)`

func sessionValues(s *access.Session) []any {
	return []any{s.ID, s.Key, storable(s.Address), storable(s.Agent), s.CreatedAt.UnixMilli(), s.ExpiresAt.UnixMilli(), s.LastUsedAt.UnixMilli()}
}

// InsertSession stores a session.
func (cs *ConsoleSessions) InsertSession(ctx context.Context, s *access.Session) error {
	return cs.db.Write(ctx, "begin a session", func(tx *sqldb.Session) error {
		_, err := tx.Exec(ctx, `INSERT `+insertSessionText, sessionValues(s)...)
		return err
	})
}

// InsertSignIn stores a session of a person with its key; false when there is a session of that ID. Of two nodes that
// store the same one, the second finds the row of the first.
func (cs *ConsoleSessions) InsertSignIn(ctx context.Context, k *access.APIKey, is *access.Session) (stored bool, err error) {
	err = cs.db.Write(ctx, "sign in", func(s *sqldb.Session) error {
		n, err := s.InsertNew(ctx, `INSERT `+insertSessionText, sessionValues(is)...)
		if stored = n > 0; err != nil || !stored {
			return err
		}
		return insertKey(ctx, s, k)
	})
	return stored, err
}

// InsertPending stores a person who waits for a command line, unless most wait at that time. Two that are stored at the
// same moment may be one more.
func (cs *ConsoleSessions) InsertPending(ctx context.Context, p *access.PendingSignIn, most int, at time.Time) (stored bool, err error) {
	err = cs.db.Write(ctx, "keep a sign-in", func(s *sqldb.Session) error {
		var n int
		if err := s.Row(ctx, `SELECT COUNT(*) FROM pending_sign_ins WHERE expires_at > ?`, []any{at.UnixMilli()}, &n); err != nil {
			return err
		}
		if stored = n < most; !stored {
			return nil
		}
		_, err := s.Exec(ctx, `INSERT INTO pending_sign_ins (hash, person, name, role, challenge, expires_at) VALUES (?,?,?,?,?,?)`,
			p.Hash, storable(p.Person.Subject), storable(p.Person.Name), string(p.Person.Role), p.Challenge, p.Until.UnixMilli())
		return err
	})
	return stored, err
}

// TakePending returns the person of a code who waits at a time, and forgets them. The deletion decides: of two nodes
// that read the row, one deletes it. ErrNotFound.
func (cs *ConsoleSessions) TakePending(ctx context.Context, hash []byte, challenge string, at time.Time) (is access.Person, err error) {
	err = cs.db.Write(ctx, "take a sign-in", func(s *sqldb.Session) error {
		err := s.Row(ctx, `SELECT person, name, role FROM pending_sign_ins WHERE hash = ? AND challenge = ? AND expires_at > ?`,
			[]any{hash, challenge, at.UnixMilli()}, &is.Subject, &is.Name, &is.Role)
		if err == nil {
			var n int64
			if n, err = s.Exec(ctx, `DELETE FROM pending_sign_ins WHERE hash = ?`, hash); err == nil && n == 0 {
				err = sql.ErrNoRows
			}
		}
		if isNoRows(err) {
			err = dibs.Fail(dibs.NotFound, dibs.Text{EN: "no sign-in waits for this code", ZH: "没有与此登录码对应的登录"})
		}
		return err
	})
	if err != nil {
		return access.Person{}, err
	}
	return is, nil
}

// DropPending forgets those who waited for a command line until before a time.
func (cs *ConsoleSessions) DropPending(ctx context.Context, before time.Time) error {
	return cs.db.Write(ctx, "drop sign-ins that wait", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `DELETE FROM pending_sign_ins WHERE expires_at < ?`, before.UnixMilli())
		return err
	})
}

// Session returns a session, an ended one too. ErrNotFound.
func (cs *ConsoleSessions) Session(ctx context.Context, id string) (*access.Session, error) {
	return sqldb.ReadOne(ctx, cs.db, "read a session", `SELECT `+sessionColumns+` FROM console_sessions s LEFT JOIN api_keys k ON k.id = s.key_id WHERE s.id = ?`, []any{id}, errNoSession, scanSession)
}

var errNoSession = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such session", ZH: "该会话不存在"})

// Sessions lists the sessions of a key, or of all keys when it is empty, that last at a time.
func (cs *ConsoleSessions) Sessions(ctx context.Context, key string, at time.Time) ([]access.Session, error) {
	where, args := "", []any{at.UnixMilli(), at.UnixMilli()}
	if key != "" {
		where, args = ` AND s.key_id = ?`, append(args, key)
	}
	return sqldb.ReadList(ctx, cs.db, "list sessions", `SELECT `+sessionColumns+` FROM console_sessions s JOIN api_keys k ON k.id = s.key_id
		WHERE s.ended_at = 0 AND s.expires_at > ? AND k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > ?)`+where+` ORDER BY s.created_at DESC, s.id DESC`, args, scanSession)
}

// scanSession reads sessionColumns.
func scanSession(rows *sql.Rows, s *access.Session) error {
	var created, expires, used, ended int64
	err := rows.Scan(&s.ID, &s.Key, &s.Name, &s.Address, &s.Agent, &created, &expires, &used, &ended)
	s.CreatedAt, s.ExpiresAt, s.LastUsedAt, s.EndedAt = fromMS(created), fromMS(expires), fromMS(used), fromOptionalMS(ended)
	return err
}

// EndSession ends a session, and revokes its key when that is a person's. ErrNotFound.
func (cs *ConsoleSessions) EndSession(ctx context.Context, id string, at time.Time) error {
	return cs.db.Write(ctx, "end a session", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `UPDATE console_sessions SET ended_at = ? WHERE id = ? AND ended_at = 0`, at.UnixMilli(), id)
		if err != nil {
			return err
		}
		if n > 0 {
			_, err = s.Exec(ctx, `UPDATE api_keys SET revoked_at = ? WHERE id = (SELECT key_id FROM console_sessions WHERE id = ?) AND person <> '' AND revoked_at = 0`,
				at.UnixMilli(), id)
			return err
		}
		var one int
		err = s.Row(ctx, `SELECT 1 FROM console_sessions WHERE id = ?`, []any{id}, &one)
		if isNoRows(err) {
			err = errNoSession
		}
		return err
	})
}

// TouchSessions notes when sessions were used last.
func (cs *ConsoleSessions) TouchSessions(ctx context.Context, used map[string]time.Time) error {
	return cs.db.Write(ctx, "note the use of sessions", func(s *sqldb.Session) error {
		// In one order, so that two nodes do not wait for each other.
		for _, id := range slices.Sorted(maps.Keys(used)) {
			ms := used[id].UnixMilli()
			if _, err := s.Exec(ctx, `UPDATE console_sessions SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, ms, id, ms); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropSessions forgets sessions that expired before a time.
func (cs *ConsoleSessions) DropSessions(ctx context.Context, before time.Time) error {
	return cs.db.Write(ctx, "drop sessions", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `DELETE FROM console_sessions WHERE expires_at < ?`, before.UnixMilli())
		return err
	})
}

// DropSignIns forgets keys of persons that expired before a time. Keys that were made are kept.
func (cs *ConsoleSessions) DropSignIns(ctx context.Context, before time.Time) error {
	return cs.db.Write(ctx, "drop sign-ins", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `DELETE FROM api_keys WHERE person <> '' AND expires_at < ?`, before.UnixMilli())
		return err
	})
}

// RevokedTokens keeps which tokens count no longer. jti is empty for a row about all tokens of a
// user, user_id for one about a single token.
type RevokedTokens struct{ db *sqldb.DB }

const revocationColumns = `id, jti, user_id, issued_before, why, created_at, expires_at`

// InsertRevocation stores a revocation, unless there are most already. Two that are stored at
// the same moment may be one more.
func (rv *RevokedTokens) InsertRevocation(ctx context.Context, r *access.Revocation, most int) (stored bool, err error) {
	err = rv.db.Write(ctx, "revoke tokens", func(s *sqldb.Session) error {
		var n int
		if err := s.Row(ctx, `SELECT COUNT(*) FROM token_revocations`, nil, &n); err != nil {
			return err
		}
		if stored = n < most; !stored {
			return nil
		}
		_, err := s.Exec(ctx, `INSERT INTO token_revocations (`+revocationColumns+`) VALUES (?,?,?,?,?,?,?)`,
			r.ID, r.JTI, r.User, toOptionalMS(r.IssuedBefore), storable(r.Why), r.CreatedAt.UnixMilli(), r.ExpiresAt.UnixMilli())
		return err
	})
	return stored, err
}

// Revocations lists all revocations, newest first.
func (rv *RevokedTokens) Revocations(ctx context.Context) ([]access.Revocation, error) {
	return sqldb.ReadList(ctx, rv.db, "list revoked tokens",
		`SELECT `+revocationColumns+` FROM token_revocations ORDER BY created_at DESC, id DESC`, nil, func(rows *sql.Rows, r *access.Revocation) error {
			var before, created, expires int64
			err := rows.Scan(&r.ID, &r.JTI, &r.User, &before, &r.Why, &created, &expires)
			r.IssuedBefore, r.CreatedAt, r.ExpiresAt = fromOptionalMS(before), fromMS(created), fromMS(expires)
			return err
		})
}

// RevocationMark changes with the list: a row that comes or goes changes one of the three
// numbers, but for rows of the same millisecond that take each other's place between two looks.
func (rv *RevokedTokens) RevocationMark(ctx context.Context) (mark string, err error) {
	err = rv.db.Read(ctx, "look for revoked tokens", func(s *sqldb.Session) error {
		// The sum is beyond 64 bits in some databases' types: it is compared as text.
		var n, newest int64
		var sum string
		if err := s.Row(ctx, `SELECT COUNT(*), COALESCE(MAX(created_at), 0), COALESCE(SUM(created_at + expires_at), 0) FROM token_revocations`, nil, &n, &newest, &sum); err != nil {
			return err
		}
		mark = fmt.Sprint(n, " ", newest, " ", sum)
		return nil
	})
	return mark, err
}

// DeleteRevocation takes a revocation back. ErrNotFound.
func (rv *RevokedTokens) DeleteRevocation(ctx context.Context, id string) error {
	return rv.db.Write(ctx, "take a revocation back", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `DELETE FROM token_revocations WHERE id = ?`, id)
		if err == nil && n == 0 {
			err = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such revocation", ZH: "该吊销记录不存在"})
		}
		return err
	})
}

// DropRevocations forgets revocations that expired before a time.
func (rv *RevokedTokens) DropRevocations(ctx context.Context, before time.Time) error {
	return rv.db.Write(ctx, "drop revocations", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `DELETE FROM token_revocations WHERE expires_at < ?`, before.UnixMilli())
		return err
	})
}

// PendingActs keeps acts that wait for a second person, in the table approvals. A decided act
// loses its call and its target, which may name a user.
type PendingActs struct{ db *sqldb.DB }

const approvalColumns = `id, action, target, call_json, state, asked_by, asked_name, asked_at, expires_at, decided_by, decided_name, decided_at, why, status, asked_person, asked_roots`

// InsertApproval stores an approval, unless most wait already. Two that are stored at the same
// moment may be one more.
func (p *PendingActs) InsertApproval(ctx context.Context, a *access.Approval, most int) (stored bool, err error) {
	err = p.db.Write(ctx, "ask for an approval", func(s *sqldb.Session) error {
		var n int
		if err := s.Row(ctx, `SELECT COUNT(*) FROM approvals WHERE state = ? AND expires_at > ?`, []any{string(access.ApprovalPending), a.AskedAt.UnixMilli()}, &n); err != nil {
			return err
		}
		if stored = n < most; !stored {
			return nil
		}
		_, err := s.Exec(ctx, `INSERT INTO approvals (`+approvalColumns+`) VALUES (`+sqldb.Repeat("?", 16)+`)`,
			a.ID, a.Action, storable(a.Target), string(a.Call), string(a.State), a.AskedBy, storable(a.AskedName), a.AskedAt.UnixMilli(), a.ExpiresAt.UnixMilli(),
			a.DecidedBy, storable(a.DecidedName), toOptionalMS(a.DecidedAt), storable(a.Why), a.Status, storable(a.AskedPerson), rootsText(a.AskedRoots))
		return err
	})
	return stored, err
}

// Approval returns an approval. ErrNotFound.
func (p *PendingActs) Approval(ctx context.Context, id string) (*access.Approval, error) {
	return sqldb.ReadOne(ctx, p.db, "read an approval", `SELECT `+approvalColumns+` FROM approvals WHERE id = ?`, []any{id},
		dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such approval", ZH: "该审批不存在"}), scanApproval)
}

// Approvals lists all approvals, newest first.
func (p *PendingActs) Approvals(ctx context.Context) ([]access.Approval, error) {
	return sqldb.ReadList(ctx, p.db, "list approvals", `SELECT `+approvalColumns+` FROM approvals ORDER BY asked_at DESC, id DESC`, nil, scanApproval)
}

// scanApproval reads approvalColumns.
func scanApproval(rows *sql.Rows, a *access.Approval) error {
	var call, roots string
	var asked, expires, decided int64
	err := rows.Scan(&a.ID, &a.Action, &a.Target, &call, &a.State, &a.AskedBy, &a.AskedName, &asked, &expires, &a.DecidedBy, &a.DecidedName, &decided, &a.Why, &a.Status, &a.AskedPerson, &roots)
	if err != nil {
		return err
	}
	a.AskedAt, a.ExpiresAt, a.DecidedAt = fromMS(asked), fromMS(expires), fromOptionalMS(decided)
	if call != "" {
		a.Call = []byte(call)
	}
	a.AskedRoots, err = rootsOf(roots)
	return err
}

// DecideApproval decides about an approval that is pending and has not expired; false for any
// other. Of two nodes that decide at once, one changes the row.
func (p *PendingActs) DecideApproval(ctx context.Context, a *access.Approval) (decided bool, err error) {
	err = p.db.Write(ctx, "decide about an approval", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `UPDATE approvals SET state = ?, decided_by = ?, decided_name = ?, decided_at = ?, why = ?, call_json = '', target = ''
			WHERE id = ? AND state = ? AND expires_at > ?`,
			string(a.State), a.DecidedBy, storable(a.DecidedName), a.DecidedAt.UnixMilli(), storable(a.Why), a.ID, string(access.ApprovalPending), a.DecidedAt.UnixMilli())
		decided = n > 0
		return err
	})
	return decided, err
}

// FinishApproval stores what came of an approval.
func (p *PendingActs) FinishApproval(ctx context.Context, a *access.Approval) error {
	return p.db.Write(ctx, "finish an approval", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `UPDATE approvals SET state = ?, status = ? WHERE id = ? AND state = ?`, string(a.State), a.Status, a.ID, string(access.ApprovalApproved))
		return err
	})
}

// DropApprovals forgets approvals that were asked for before a time.
func (p *PendingActs) DropApprovals(ctx context.Context, before time.Time) error {
	return p.db.Write(ctx, "drop approvals", func(s *sqldb.Session) error {
		_, err := s.Exec(ctx, `DELETE FROM approvals WHERE asked_at < ?`, before.UnixMilli())
		return err
	})
}
