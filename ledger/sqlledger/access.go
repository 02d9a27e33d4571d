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
	return s.Do(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES (`+sqldb.Repeat("?", 11)+`)`, k.ID, k.Name, string(k.Role), k.Hash,
		k.CreatedAt.UnixMilli(), toOptionalMS(k.RevokedAt), toOptionalMS(k.ExpiresAt), toOptionalMS(k.LastUsedAt), k.Scopes.String(), storable(k.Person), rootsText(k.Roots))
}

// KeyByHash returns a key that is not revoked, by its SHA-256. ErrNotFound.
func (ac *Access) KeyByHash(ctx context.Context, hash []byte) (*access.APIKey, error) {
	return sqldb.ReadOne(ctx, ac.db, "read API key", `SELECT `+keyColumns+` FROM api_keys WHERE hash = ? AND revoked_at = 0`, []any{hash},
		dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such API key", ZH: "API 密钥不存在"}), scanKey)
}

// Keys lists all keys, the newest first.
func (ac *Access) Keys(ctx context.Context) ([]access.APIKey, error) {
	return sqldb.ReadList(ctx, ac.db, "list API keys", `SELECT `+keyColumns+` FROM api_keys ORDER BY created_at DESC, id DESC`, nil, scanKey)
}

// scanKey reads keyColumns.
func scanKey(rows *sql.Rows, k *access.APIKey) error {
	var scopes, roots string
	err := rows.Scan(&k.ID, &k.Name, &k.Role, &k.Hash, ms(&k.CreatedAt), optionalMS(&k.RevokedAt), optionalMS(&k.ExpiresAt),
		optionalMS(&k.LastUsedAt), &scopes, &k.Person, &roots)
	if err == nil {
		k.Roots, err = rootsOf(roots)
	}
	if err == nil {
		k.Scopes, err = access.ReadScopes(scopes)
	}
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
	q := query{`SELECT COUNT(*) FROM api_keys WHERE role = ? AND revoked_at = 0`, []any{string(access.RoleAdmin)}}
	if version >= keyTerms {
		q.and(`scopes = '' AND (expires_at = 0 OR expires_at > ?)`, now.UnixMilli())
	}
	if version >= keyPersons {
		q.and(`person = ''`)
	}
	var keys int64
	err = l.Access.db.ReadRow(ctx, "look for an API key", q.statement, q.args, &keys)
	return keys > 0, err
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
		return mustExist(ctx, s, `SELECT 1 FROM api_keys WHERE id = ?`, aKey, id)
	})
}

// TouchKeys notes when keys were used last.
func (ac *Access) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return touch(ctx, ac.db, "note the use of API keys", `UPDATE api_keys SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, used)
}

// touch notes by a statement when things were used last.
func touch(ctx context.Context, db *sqldb.DB, op, statement string, used map[string]time.Time) error {
	return db.Write(ctx, op, func(s *sqldb.Session) error {
		// In one order, so that two nodes do not wait for each other.
		for _, id := range slices.Sorted(maps.Keys(used)) {
			at := used[id].UnixMilli()
			if err := s.Do(ctx, statement, at, id, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// RevokeKey ends a key. A key that was revoked before keeps its first time.
// ErrNotFound.
func (ac *Access) RevokeKey(ctx context.Context, id string, at time.Time) error {
	return ac.db.DoOne(ctx, "revoke API key", notFound(aKey, id),
		`UPDATE api_keys SET revoked_at = CASE revoked_at WHEN 0 THEN ? ELSE revoked_at END WHERE id = ?`, at.UnixMilli(), id)
}

// Request returns the remembered answer to a caller's request key. ErrNotFound.
func (ac *Access) Request(ctx context.Context, caller, key string) (*access.StoredRequest, error) {
	return sqldb.ReadOne(ctx, ac.db, "read request", `SELECT caller, request_key, hash, status, body, at FROM requests WHERE caller = ? AND request_key = ?`,
		[]any{caller, key}, notFound(aRequest, key), func(rows *sql.Rows, r *access.StoredRequest) error {
			return rows.Scan(&r.Caller, &r.Key, &r.Hash, &r.Status, &r.Body, ms(&r.At))
		})
}

// SaveRequest remembers an answer. ErrAlreadyExists when the caller's key has
// one.
func (ac *Access) SaveRequest(ctx context.Context, r *access.StoredRequest) error {
	return ac.db.Write(ctx, "save request", func(s *sqldb.Session) error {
		// Some drivers store a nil slice as NULL.
		body := append([]byte{}, r.Body...)
		return orExists(s, s.Do(ctx, `INSERT INTO requests (caller, request_key, hash, status, body, at) VALUES (?,?,?,?,?,?)`,
			r.Caller, r.Key, append([]byte{}, r.Hash...), r.Status, body, r.At.UnixMilli()), aRequest, r.Key)
	})
}

// DropRequests forgets answers that were saved before a time.
func (ac *Access) DropRequests(ctx context.Context, before time.Time) error {
	ctx = sqldb.Long(ctx, sqldb.LongStatement)
	return ac.db.Do(ctx, "drop requests", `DELETE FROM requests WHERE at < ?`, before.UnixMilli())
}

// Secret returns the secret of a name. The first call makes it from size random
// bytes of the operating system; every node gets the same one.
func (ac *Access) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	const find = `SELECT value FROM secrets WHERE name = ?`
	var value []byte
	err := ac.db.ReadRow(ctx, "read secret", find, []any{name}, &value)
	if !isNoRows(err) {
		return value, err
	}
	fresh := make([]byte, size)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	return sqldb.Result(ctx, ac.db.Write, "make secret", func(s *sqldb.Session) ([]byte, error) {
		// Another node may have stored one since: the stored one counts.
		if _, err := s.InsertNew(ctx, `INSERT INTO secrets (name, value) VALUES (?,?)`, name, fresh); err != nil {
			return nil, err
		}
		return sqldb.Get[[]byte](ctx, s, find, name)
	})
}

// ForgetSecrets deletes secrets by their names, and returns how many there were. Secret makes
// each anew for the process that asks first.
func (ac *Access) ForgetSecrets(ctx context.Context, names ...string) (int64, error) {
	return sqldb.Result(ctx, ac.db.Write, "forget secrets", func(s *sqldb.Session) (n int64, err error) {
		for _, name := range names {
			gone, err := s.Exec(ctx, `DELETE FROM secrets WHERE name = ?`, name)
			if err != nil {
				return 0, err
			}
			n += gone
		}
		return n, nil
	})
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
	return cs.db.Do(ctx, "begin a session", `INSERT `+insertSessionText, sessionValues(s)...)
}

// InsertSignIn stores a session of a person with its key; false when there is a session of that ID. Of two nodes that
// store the same one, the second finds the row of the first.
func (cs *ConsoleSessions) InsertSignIn(ctx context.Context, k *access.APIKey, is *access.Session) (stored bool, err error) {
	return sqldb.Result(ctx, cs.db.Write, "sign in", func(s *sqldb.Session) (bool, error) {
		n, err := s.InsertNew(ctx, `INSERT `+insertSessionText, sessionValues(is)...)
		if err != nil || n == 0 {
			return false, err
		}
		return true, insertKey(ctx, s, k)
	})
}

// InsertPending stores a person who waits for a command line, unless most wait at that time. Two that are stored at the
// same moment may be one more.
func (cs *ConsoleSessions) InsertPending(ctx context.Context, p *access.PendingSignIn, most int, at time.Time) (stored bool, err error) {
	others := query{`SELECT COUNT(*) FROM pending_sign_ins WHERE expires_at > ?`, []any{at.UnixMilli()}}
	return insertUnless(ctx, cs.db, "keep a sign-in", others, most,
		`INSERT INTO pending_sign_ins (hash, person, name, role, challenge, expires_at) VALUES (?,?,?,?,?,?)`,
		p.Hash, storable(p.Person.Subject), storable(p.Person.Name), string(p.Person.Role), p.Challenge, p.Until.UnixMilli())
}

// insertUnless inserts a row unless a query counts most others already; false then.
func insertUnless(
	ctx context.Context, db *sqldb.DB, op string, others query, most int, insert string, values ...any,
) (bool, error) {
	return sqldb.Result(ctx, db.Write, op, func(s *sqldb.Session) (bool, error) {
		n, err := sqldb.Get[int](ctx, s, others.statement, others.args...)
		if err != nil || n >= most {
			return false, err
		}
		return true, s.Do(ctx, insert, values...)
	})
}

// TakePending returns the person of a code who waits at a time, and forgets them. The deletion decides: of two nodes
// that read the row, one deletes it. ErrNotFound.
func (cs *ConsoleSessions) TakePending(ctx context.Context, hash []byte, challenge string, at time.Time) (access.Person, error) {
	return sqldb.Result(ctx, cs.db.Write, "take a sign-in", func(s *sqldb.Session) (is access.Person, err error) {
		err = s.Row(ctx, `SELECT person, name, role FROM pending_sign_ins WHERE hash = ? AND challenge = ? AND expires_at > ?`,
			[]any{hash, challenge, at.UnixMilli()}, &is.Subject, &is.Name, &is.Role)
		if err == nil {
			err = s.DoOne(ctx, sql.ErrNoRows, `DELETE FROM pending_sign_ins WHERE hash = ?`, hash)
		}
		if isNoRows(err) {
			err = dibs.Fail(dibs.NotFound, dibs.Text{EN: "no sign-in waits for this code", ZH: "没有与此登录码对应的登录"})
		}
		return is, err
	})
}

// DropPending forgets those who waited for a command line until before a time.
func (cs *ConsoleSessions) DropPending(ctx context.Context, before time.Time) error {
	return cs.db.Do(ctx, "drop sign-ins that wait", `DELETE FROM pending_sign_ins WHERE expires_at < ?`, before.UnixMilli())
}

// Session returns a session, an ended one too. ErrNotFound.
func (cs *ConsoleSessions) Session(ctx context.Context, id string) (*access.Session, error) {
	return sqldb.ReadOne(ctx, cs.db, "read a session", `SELECT `+sessionColumns+` FROM console_sessions s LEFT JOIN api_keys k ON k.id = s.key_id WHERE s.id = ?`, []any{id}, errNoSession, scanSession)
}

var errNoSession = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such session", ZH: "该会话不存在"})

// Sessions lists the sessions of a key, or of all keys when it is empty, that last at a time.
func (cs *ConsoleSessions) Sessions(ctx context.Context, key string, at time.Time) ([]access.Session, error) {
	q := query{`SELECT ` + sessionColumns + ` FROM console_sessions s JOIN api_keys k ON k.id = s.key_id
		WHERE s.ended_at = 0 AND s.expires_at > ? AND k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > ?)`,
		[]any{at.UnixMilli(), at.UnixMilli()}}
	if key != "" {
		q.and(`s.key_id = ?`, key)
	}
	q.then(` ORDER BY s.created_at DESC, s.id DESC`)
	return sqldb.ReadList(ctx, cs.db, "list sessions", q.statement, q.args, scanSession)
}

// scanSession reads sessionColumns.
func scanSession(rows *sql.Rows, s *access.Session) error {
	return rows.Scan(&s.ID, &s.Key, &s.Name, &s.Address, &s.Agent,
		ms(&s.CreatedAt), ms(&s.ExpiresAt), ms(&s.LastUsedAt), optionalMS(&s.EndedAt))
}

// EndSession ends a session, and revokes its key when that is a person's. ErrNotFound.
func (cs *ConsoleSessions) EndSession(ctx context.Context, id string, at time.Time) error {
	return cs.db.Write(ctx, "end a session", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `UPDATE console_sessions SET ended_at = ? WHERE id = ? AND ended_at = 0`, at.UnixMilli(), id)
		if err != nil {
			return err
		}
		if n > 0 {
			return s.Do(ctx, `UPDATE api_keys SET revoked_at = ? WHERE id = (SELECT key_id FROM console_sessions WHERE id = ?) AND person <> '' AND revoked_at = 0`,
				at.UnixMilli(), id)
		}
		_, err = sqldb.Get[int](ctx, s, `SELECT 1 FROM console_sessions WHERE id = ?`, id)
		if isNoRows(err) {
			err = errNoSession
		}
		return err
	})
}

// TouchSessions notes when sessions were used last.
func (cs *ConsoleSessions) TouchSessions(ctx context.Context, used map[string]time.Time) error {
	return touch(ctx, cs.db, "note the use of sessions", `UPDATE console_sessions SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, used)
}

// DropSessions forgets sessions that expired before a time.
func (cs *ConsoleSessions) DropSessions(ctx context.Context, before time.Time) error {
	return cs.db.Do(ctx, "drop sessions", `DELETE FROM console_sessions WHERE expires_at < ?`, before.UnixMilli())
}

// DropSignIns forgets keys of persons that expired before a time. Keys that were made are kept.
func (cs *ConsoleSessions) DropSignIns(ctx context.Context, before time.Time) error {
	return cs.db.Do(ctx, "drop sign-ins", `DELETE FROM api_keys WHERE person <> '' AND expires_at < ?`, before.UnixMilli())
}

// RevokedTokens keeps which tokens count no longer. jti is empty for a row about all tokens of a
// user, user_id for one about a single token.
type RevokedTokens struct{ db *sqldb.DB }

const revocationColumns = `id, jti, user_id, issued_before, why, created_at, expires_at`

// InsertRevocation stores a revocation, unless there are most already. Two that are stored at
// the same moment may be one more.
func (rv *RevokedTokens) InsertRevocation(ctx context.Context, r *access.Revocation, most int) (stored bool, err error) {
	return insertUnless(ctx, rv.db, "revoke tokens", query{`SELECT COUNT(*) FROM token_revocations`, nil}, most,
		`INSERT INTO token_revocations (`+revocationColumns+`) VALUES (?,?,?,?,?,?,?)`,
		r.ID, r.JTI, r.User, toOptionalMS(r.IssuedBefore), storable(r.Why), r.CreatedAt.UnixMilli(), r.ExpiresAt.UnixMilli())
}

// Revocations lists all revocations, newest first.
func (rv *RevokedTokens) Revocations(ctx context.Context) ([]access.Revocation, error) {
	return sqldb.ReadList(ctx, rv.db, "list revoked tokens",
		`SELECT `+revocationColumns+` FROM token_revocations ORDER BY created_at DESC, id DESC`, nil, func(rows *sql.Rows, r *access.Revocation) error {
			return rows.Scan(&r.ID, &r.JTI, &r.User, optionalMS(&r.IssuedBefore), &r.Why, ms(&r.CreatedAt), ms(&r.ExpiresAt))
		})
}

// RevocationMark changes with the list: a row that comes or goes changes one of the three
// numbers, but for rows of the same millisecond that take each other's place between two looks.
func (rv *RevokedTokens) RevocationMark(ctx context.Context) (mark string, err error) {
	// The sum is beyond 64 bits in some databases' types: it is compared as text.
	var n, newest int64
	var sum string
	if err := rv.db.ReadRow(ctx, "look for revoked tokens", `SELECT COUNT(*), COALESCE(MAX(created_at), 0),
		COALESCE(SUM(created_at + expires_at), 0) FROM token_revocations`, nil, &n, &newest, &sum); err != nil {
		return "", err
	}
	return fmt.Sprint(n, " ", newest, " ", sum), nil
}

// DeleteRevocation takes a revocation back. ErrNotFound.
func (rv *RevokedTokens) DeleteRevocation(ctx context.Context, id string) error {
	none := dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such revocation", ZH: "该吊销记录不存在"})
	return rv.db.DoOne(ctx, "take a revocation back", none, `DELETE FROM token_revocations WHERE id = ?`, id)
}

// DropRevocations forgets revocations that expired before a time.
func (rv *RevokedTokens) DropRevocations(ctx context.Context, before time.Time) error {
	return rv.db.Do(ctx, "drop revocations", `DELETE FROM token_revocations WHERE expires_at < ?`, before.UnixMilli())
}

// PendingActs keeps acts that wait for a second person, in the table approvals. A decided act
// loses its call and its target, which may name a user.
type PendingActs struct{ db *sqldb.DB }

const approvalColumns = `id, action, target, call_json, state, asked_by, asked_name, asked_at, expires_at, decided_by, decided_name, decided_at, why, status, asked_person, asked_roots`

// InsertApproval stores an approval, unless most wait already. Two that are stored at the same
// moment may be one more.
func (p *PendingActs) InsertApproval(ctx context.Context, a *access.Approval, most int) (stored bool, err error) {
	others := query{`SELECT COUNT(*) FROM approvals WHERE state = ? AND expires_at > ?`, []any{string(access.ApprovalPending), a.AskedAt.UnixMilli()}}
	return insertUnless(ctx, p.db, "ask for an approval", others, most,
		`INSERT INTO approvals (`+approvalColumns+`) VALUES (`+sqldb.Repeat("?", 16)+`)`,
		a.ID, a.Action, storable(a.Target), string(a.Call), string(a.State), a.AskedBy, storable(a.AskedName), a.AskedAt.UnixMilli(), a.ExpiresAt.UnixMilli(),
		a.DecidedBy, storable(a.DecidedName), toOptionalMS(a.DecidedAt), storable(a.Why), a.Status, storable(a.AskedPerson), rootsText(a.AskedRoots))
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
	err := rows.Scan(&a.ID, &a.Action, &a.Target, &call, &a.State, &a.AskedBy, &a.AskedName, ms(&a.AskedAt), ms(&a.ExpiresAt),
		&a.DecidedBy, &a.DecidedName, optionalMS(&a.DecidedAt), &a.Why, &a.Status, &a.AskedPerson, &roots)
	if err != nil {
		return err
	}
	if call != "" {
		a.Call = []byte(call)
	}
	a.AskedRoots, err = rootsOf(roots)
	return err
}

// DecideApproval decides about an approval that is pending and has not expired; false for any
// other. Of two nodes that decide at once, one changes the row.
func (p *PendingActs) DecideApproval(ctx context.Context, a *access.Approval) (decided bool, err error) {
	return sqldb.Result(ctx, p.db.Write, "decide about an approval", func(s *sqldb.Session) (bool, error) {
		n, err := s.Exec(ctx, `UPDATE approvals SET state = ?, decided_by = ?, decided_name = ?, decided_at = ?, why = ?, call_json = '', target = ''
			WHERE id = ? AND state = ? AND expires_at > ?`,
			string(a.State), a.DecidedBy, storable(a.DecidedName), a.DecidedAt.UnixMilli(), storable(a.Why), a.ID, string(access.ApprovalPending), a.DecidedAt.UnixMilli())
		return n > 0, err
	})
}

// FinishApproval stores what came of an approval.
func (p *PendingActs) FinishApproval(ctx context.Context, a *access.Approval) error {
	return p.db.Do(ctx, "finish an approval", `UPDATE approvals SET state = ?, status = ? WHERE id = ? AND state = ?`,
		string(a.State), a.Status, a.ID, string(access.ApprovalApproved))
}

// DropApprovals forgets approvals that were asked for before a time.
func (p *PendingActs) DropApprovals(ctx context.Context, before time.Time) error {
	return p.db.Do(ctx, "drop approvals", `DELETE FROM approvals WHERE asked_at < ?`, before.UnixMilli())
}
