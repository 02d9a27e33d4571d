package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/erasure"
)

// actionColumns are the columns of the admin log's table, audit. actor is the
// id of an API key and actor_name what it was called; target is the path of the
// request, status that of the response, 0 while there is none.
const actionColumns = `id, at, actor, actor_name, role, address, request_id, action, target, status, reason, before_json, after_json`

// SaveAdminActions stores admin actions that are new, and Status, Reason and After of
// those that are stored, in one transaction; each with a record in the chain.
func (ac *Access) SaveAdminActions(ctx context.Context, actions []*access.AdminAction) error {
	return ac.db.Write(ctx, "save admin actions", func(s *sqldb.Session) error {
		end, err := lockChain(ctx, s)
		if err != nil {
			return err
		}
		for _, a := range actions {
			if err := saveAction(ctx, s, end, a); err != nil {
				return err
			}
		}
		return end.save(ctx, s)
	})
}

// saveAction stores one action, and its record. An action that is stored already gets no record again.
func saveAction(ctx context.Context, s *sqldb.Session, end *chainEnd, a *access.AdminAction) error {
	stored, err := actionByID(ctx, s, a.ID)
	if isNoRows(err) {
		stored.AdminAction = *a
		stored.KeyName, stored.Target = storable(a.KeyName), storable(a.Target)
		return end.begin(ctx, s, &stored.AdminAction)
	}
	if err != nil || stored.Status == a.Status && stored.Reason == a.Reason && string(stored.After) == string(a.After) {
		return err
	}
	// The rest stays as it is stored: an erasure may have changed it since.
	stored.Status, stored.Reason, stored.After = a.Status, a.Reason, a.After
	if stored.parts == nil {
		parts := access.SealEntry(&stored.AdminAction)
		stored.parts = &parts
	} else {
		stored.parts.SealAfter(&stored.AdminAction)
	}
	return end.note(ctx, s, &stored, access.NewChainRecord(access.ChainEnd, &stored.AdminAction, stored.parts), 0)
}

// storedAction is an action with what else its row has: the number of its last record, 0 for an action from before the
// chain, and its seals, nil for one of which no record has any.
type storedAction struct {
	access.AdminAction
	n     int64
	parts *access.EntryParts
}

const storedColumns = actionColumns + `, chain_n, parts`

// actionByID reads an action. sql.ErrNoRows.
func actionByID(ctx context.Context, s *sqldb.Session, id string) (a storedAction, err error) {
	err = sqldb.One(ctx, s, `SELECT `+storedColumns+` FROM audit WHERE id = ?`, []any{id}, sql.ErrNoRows, &a, scanStoredAction)
	return a, err
}

// scanStoredAction reads storedColumns.
func scanStoredAction(rows *sql.Rows, a *storedAction) error {
	var parts sql.NullString
	err := scanActionWith(rows, &a.AdminAction, &a.n, &parts)
	if err == nil {
		a.parts, err = partsOf(parts, a.ID)
	}
	return err
}

// partsOf reads the seals of an entry. ErrCorrupt.
func partsOf(text sql.NullString, id string) (*access.EntryParts, error) {
	if text.String == "" {
		return nil, nil
	}
	parts := &access.EntryParts{}
	if err := json.Unmarshal([]byte(text.String), parts); err != nil {
		return nil, fmt.Errorf("%w: the entry %s of the admin log: %w", dibs.ErrCorrupt, id, err)
	}
	return parts, nil
}

// AdminActions lists admin actions, the newest first: ids begin with the time.
func (ac *Access) AdminActions(ctx context.Context, f access.AdminActionFilter, page dibs.Page) (dibs.List[access.AdminAction], error) {
	q := query{statement: `SELECT ` + actionColumns + ` FROM audit WHERE 1 = 1`}
	for _, c := range []struct{ column, value string }{{"actor", f.Key}, {"action", f.Action}} {
		if c.value != "" {
			q.and(c.column+" = ?", c.value)
		}
	}
	if f.Target != "" {
		// What is under a path begins with it and a slash; in all databases the column is compared byte by byte, and 0
		// comes after the slash.
		q.and("(target = ? OR target > ? AND target < ?)", f.Target, f.Target+"/", f.Target+"0")
	}
	if !f.Since.IsZero() {
		q.and("at >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		q.and("at < ?", f.Until.UnixMilli())
	}
	return readPage(ctx, ac.db, "list admin actions", page, "", func(after string) query {
		if after != "" {
			q.and("id < ?", after)
		}
		return q.then(` ORDER BY id DESC LIMIT ?`)
	}, scanAction, func(a *access.AdminAction) string { return a.ID })
}

// scanAction reads actionColumns. An empty JSON text means that there is none.
func scanAction(rows *sql.Rows, a *access.AdminAction) error { return scanActionWith(rows, a) }

// scanActionWith reads actionColumns, and columns after them.
func scanActionWith(rows *sql.Rows, a *access.AdminAction, more ...any) error {
	var before, after string
	err := rows.Scan(append([]any{
		&a.ID, ms(&a.At), &a.Key, &a.KeyName, &a.Role, &a.Address, &a.RequestID, &a.Action, &a.Target, &a.Status, &a.Reason, &before, &after,
	}, more...)...)
	if before != "" {
		a.Before = []byte(before)
	}
	if after != "" {
		a.After = []byte(after)
	}
	return err
}

// DropAdminActions forgets admin actions from before a time, with the records of the chain
// that are of such actions alone. The chain says what was dropped.
func (ac *Access) DropAdminActions(ctx context.Context, before time.Time) error {
	return ac.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "drop admin actions", func(s *sqldb.Session) error {
		end, err := lockChain(ctx, s)
		if err != nil {
			return err
		}
		dropped, err := end.cut(ctx, s, before.UnixMilli())
		if err != nil {
			return err
		}
		// An entry stays as long as a record of it.
		if err := s.Do(ctx, `DELETE FROM audit WHERE at < ? AND NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.entry = audit.id)`, before.UnixMilli()); err != nil {
			return err
		}
		if dropped != nil {
			if err := s.Row(ctx, `SELECT COUNT(*) FROM audit WHERE chain_n = 0`, nil, &dropped.Unchained); err != nil {
				return err
			}
			if err := end.append(ctx, s, *dropped, 0); err != nil {
				return err
			}
		}
		// It may have begun the chain, too.
		return end.save(ctx, s)
	})
}

// chainEnd is the end of the chain over the admin log, in a transaction that has locked it:
// the row of audit_head. Writers of all nodes take that lock before they look at any entry,
// so that there is one end, and two of them never wait for each other.
type chainEnd struct {
	n    int64
	hash string
	// moved: the row has to be written.
	moved bool
}

// lockChain takes the lock. The first one begins the chain, with how many entries there are
// that are not in it.
func lockChain(ctx context.Context, s *sqldb.Session) (*chainEnd, error) {
	end := &chainEnd{}
	if err := s.Row(ctx, `SELECT n, hash FROM audit_head WHERE one = 1`+s.ForUpdate, nil, &end.n, &end.hash); err != nil || end.n > 0 {
		return end, err
	}
	start := access.ChainRecord{Kind: access.ChainStart}
	if err := s.Row(ctx, `SELECT COUNT(*) FROM audit`, nil, &start.Unchained); err != nil {
		return nil, err
	}
	end.hash = access.ChainOrigin
	return end, end.append(ctx, s, start, 0)
}

// append adds a record at a time of its entry, 0 for none. It stores where the chain ends
// only with save.
func (e *chainEnd) append(ctx context.Context, s *sqldb.Session, r access.ChainRecord, at int64) error {
	l, err := r.Link(e.n+1, e.hash)
	if err != nil {
		return err
	}
	if err := s.Do(ctx, `INSERT INTO audit_chain (n, entry, at, record, salt, prev, hash) VALUES (?,?,?,?,?,?,?)`,
		l.N, r.Entry, at, l.Record, l.Salt, l.Prev, l.Hash); err != nil {
		return err
	}
	e.n, e.hash, e.moved = l.N, l.Hash, true
	return nil
}

// begin stores a new action, and its first record.
func (e *chainEnd) begin(ctx context.Context, s *sqldb.Session, a *access.AdminAction) error {
	parts := access.SealEntry(a)
	if err := e.append(ctx, s, access.NewChainRecord(access.ChainBegin, a, &parts), a.At.UnixMilli()); err != nil {
		return err
	}
	sealed, err := json.Marshal(&parts)
	if err != nil {
		return err
	}
	return s.Do(ctx, `INSERT INTO audit (`+storedColumns+`) VALUES (`+sqldb.Repeat("?", 15)+`)`,
		a.ID, a.At.UnixMilli(), a.Key, a.KeyName, string(a.Role), a.Address, a.RequestID, a.Action, a.Target,
		a.Status, a.Reason, string(a.Before), string(a.After), e.n, string(sealed))
}

// note stores what has changed of an action, and the record that says so. The record is kept longer than the action is
// old.
func (e *chainEnd) note(ctx context.Context, s *sqldb.Session, a *storedAction, r access.ChainRecord, longer time.Duration) error {
	if err := e.append(ctx, s, r, a.At.Add(longer).UnixMilli()); err != nil {
		return err
	}
	a.n = e.n
	return a.save(ctx, s)
}

// save stores what changes of an action.
func (a *storedAction) save(ctx context.Context, s *sqldb.Session) error {
	var parts sql.NullString
	if a.parts != nil {
		sealed, err := json.Marshal(a.parts)
		if err != nil {
			return err
		}
		parts = sql.NullString{String: string(sealed), Valid: true}
	}
	return s.Do(ctx, `UPDATE audit SET target = ?, status = ?, reason = ?, before_json = ?, after_json = ?, chain_n = ?, parts = ? WHERE id = ?`,
		a.Target, a.Status, a.Reason, string(a.Before), string(a.After), a.n, parts, a.ID)
}

// asksLonger is how much longer than other records of their age those stay that ask for an erasure. The day is for clocks
// of nodes that differ.
const asksLonger = access.AskServes + 24*time.Hour

// ask notes that an action asked for an erasure.
func (e *chainEnd) ask(ctx context.Context, s *sqldb.Session, a *storedAction, x *erasure.Erasure) error {
	return e.note(ctx, s, a, access.NewAskRecord(&a.AdminAction, a.parts, x.ID, x.Pseudonym), asksLonger)
}

// rewrite stores an action in which an erasure has changed something. The salts of its records without a version go:
// their digests tell nothing of the texts any more.
func (e *chainEnd) rewrite(ctx context.Context, s *sqldb.Session, a *storedAction, erasure string) error {
	if a.n == 0 {
		return a.save(ctx, s)
	}
	if a.parts == nil {
		parts := access.SealEntry(&a.AdminAction)
		a.parts = &parts
	}
	if err := s.Do(ctx, `UPDATE audit_chain SET salt = '' WHERE entry = ? AND salt <> ''`, a.ID); err != nil {
		return err
	}
	r := access.NewChainRecord(access.ChainErase, &a.AdminAction, a.parts)
	r.Erasure = erasure
	return e.note(ctx, s, a, r, 0)
}

// cut deletes the records before the first one of an entry that is not older than a time. It
// returns the record that says so, nil when there was nothing to delete.
func (e *chainEnd) cut(ctx context.Context, s *sqldb.Session, before int64) (*access.ChainRecord, error) {
	var first, left sql.NullInt64
	// Records without an entry have the time 0, and go with those around them.
	err := s.Row(ctx, `SELECT (SELECT MIN(n) FROM audit_chain), (SELECT MIN(n) FROM audit_chain WHERE at >= ?)`, []any{before}, &first, &left)
	if err != nil || !first.Valid {
		return nil, err
	}
	dropped := access.NewDropRecord(time.UnixMilli(before), e.n+1, e.hash)
	if left.Valid {
		dropped.First = left.Int64
		if err := s.Row(ctx, `SELECT prev FROM audit_chain WHERE n = ?`, []any{left.Int64}, &dropped.Prev); err != nil {
			return nil, err
		}
	}
	// A chain of nothing but its beginning stays.
	old, err := sqldb.Get[int64](ctx, s, `SELECT COUNT(*) FROM audit_chain WHERE n < ? AND at > 0`, dropped.First)
	if err != nil || old == 0 {
		return nil, err
	}
	return &dropped, s.Do(ctx, `DELETE FROM audit_chain WHERE n < ?`, dropped.First)
}

// save stores where the chain ends.
func (e *chainEnd) save(ctx context.Context, s *sqldb.Session) error {
	if !e.moved {
		return nil
	}
	return s.Do(ctx, `UPDATE audit_head SET n = ?, hash = ? WHERE one = 1`, e.n, e.hash)
}

// ChainLinks lists the links of the chain after a number, oldest first.
func (ac *Access) ChainLinks(ctx context.Context, after int64, limit int) ([]access.ChainLink, error) {
	return sqldb.ReadList(ctx, ac.db, "read the chain of the admin log", `SELECT c.n, c.prev, c.hash, c.record, c.salt, c.entry,
		COALESCE(a.chain_n, -1), COALESCE(a.at, 0), COALESCE(a.actor, ''), COALESCE(a.actor_name, ''), COALESCE(a.role, ''), COALESCE(a.address, ''),
		COALESCE(a.request_id, ''), COALESCE(a.action, ''), COALESCE(a.target, ''), COALESCE(a.status, 0), COALESCE(a.reason, ''), COALESCE(a.before_json, ''), COALESCE(a.after_json, ''), a.parts
		FROM audit_chain c LEFT JOIN audit a ON a.id = c.entry AND c.entry <> '' WHERE c.n > ? ORDER BY c.n LIMIT ?`, []any{after, limit}, scanLink)
}

// scanLink reads what ChainLinks selects; -1 stands for an entry that is not there.
func scanLink(rows *sql.Rows, l *access.ChainLink) error {
	var a access.AdminAction
	var before, then string
	var parts sql.NullString
	if err := rows.Scan(&l.N, &l.Prev, &l.Hash, &l.Record, &l.Salt, &a.ID, &l.EntryN, ms(&a.At), &a.Key, &a.KeyName, &a.Role, &a.Address, &a.RequestID,
		&a.Action, &a.Target, &a.Status, &a.Reason, &before, &then, &parts); err != nil {
		return err
	}
	if l.EntryN >= 0 {
		a.Before, a.After = []byte(before), []byte(then)
		l.Entry = &a
	}
	// Seals that cannot be read seal nothing: the check finds it.
	l.Parts, _ = partsOf(parts, a.ID)
	return nil
}

// maxStrays is how many entries ChainEnds names.
const maxStrays = 10

// ChainEnds says where the chain ends, and which entries are not in it, in one state of the
// ledger.
func (ac *Access) ChainEnds(ctx context.Context) (*access.ChainEnds, error) {
	const op = "read the end of the admin log's chain"
	return sqldb.Result(ctx, ac.db.Snapshot, op, func(s *sqldb.Session) (_ *access.ChainEnds, err error) {
		ends := &access.ChainEnds{}
		if err := s.Row(ctx, `SELECT n, hash, (SELECT COUNT(*) FROM audit WHERE chain_n = 0) FROM audit_head WHERE one = 1`, nil,
			&ends.N, &ends.Hash, &ends.Unchained); err != nil {
			return nil, err
		}
		ends.Strays, err = sqldb.List(ctx, s, fmt.Sprintf(`SELECT id FROM audit WHERE chain_n <> 0
			AND NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.n = audit.chain_n AND c.entry = audit.id) ORDER BY id LIMIT %d`, maxStrays), nil, sqldb.Scan1[string])
		if err != nil {
			return nil, err
		}
		ends.Erasures, err = sqldb.List(ctx, s, `SELECT id FROM erasures`, nil, sqldb.Scan1[string])
		return ends, err
	})
}
