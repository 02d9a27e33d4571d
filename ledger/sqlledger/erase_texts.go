package sqlledger

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/slots"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// eraseRows is how many rows with texts one transaction reads.
const eraseRows = 200

// withoutUser puts the pseudonym into a JSON text in the user's place, and takes away where goods went. It
// returns false for a text that does not name the user. It works on the text
// and does not parse it, so that the rest of an answer stays as it was, byte
// for byte.
func (x *eraser) withoutUser(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte(x.e.UserID)) {
		return text, false
	}
	body := slots.Body(string(text))
	erased, changed := body.Erase(x.e.UserID, x.e.Pseudonym, false)
	if len(changed) == 0 {
		return text, false
	}
	return []byte(erased.Text), true
}

// changedText is a row whose text has changed.
type changedText struct {
	key  []any
	text []byte
}

// changed is the row of a text, by its key, as withoutUser leaves it; nil for one that
// stays.
func (x *eraser) changed(text []byte, key ...any) *changedText {
	erased, changed := x.withoutUser(text)
	if !changed {
		return nil
	}
	return &changedText{key, erased}
}

// texts reads rows after the cursor, and writes those that have changed. scan
// returns the row's own cursor, and nil for a row that stays. write is the
// statement that stores the texts of a row by its key.
func (x *eraser) texts(ctx context.Context, q query, scan func(*sql.Rows) (at any, changed *changedText, err error), write string,
) (n int64, next string, err error) {
	var last any
	var read int
	var rows []changedText
	if err := x.s.Each(ctx, q.statement, append(q.args, eraseRows), func(r *sql.Rows) error {
		at, changed, err := scan(r)
		last = at
		read++
		if changed != nil {
			rows = append(rows, *changed)
		}
		return err
	}); err != nil {
		return 0, "", err
	}
	for i := range rows {
		m, err := x.s.Exec(ctx, write, append([]any{rows[i].text}, rows[i].key...)...)
		if err != nil {
			return 0, "", err
		}
		n += m
	}
	// Fewer rows than asked for are the last ones.
	if read == eraseRows {
		next, err = cursorText(last)
	}
	return n, next, err
}

// requests rewrites the remembered answers to administrators, and deletes those
// to the user.
func (x *eraser) requests(ctx context.Context) (int64, string, error) {
	var after [2]string
	if _, err := readCursor(x.e.Cursor, &after); err != nil {
		return 0, "", err
	}
	// Answers to the user are about the user alone, and of no use to others.
	dropped, err := x.s.Exec(ctx, `DELETE FROM requests WHERE caller = ?`, "user:"+x.e.UserID)
	if err != nil {
		return 0, "", err
	}
	where, args := x.s.Compare([]string{"caller", "request_key"}, ">", after[0], after[1])
	n, next, err := x.texts(ctx, query{`SELECT caller, request_key, body FROM requests WHERE ` + where + ` ORDER BY caller, request_key LIMIT ?`, args},
		func(rows *sql.Rows) (any, *changedText, error) {
			var at [2]string
			var body []byte
			err := rows.Scan(&at[0], &at[1], &body)
			return at, x.changed(body, at[0], at[1]), err
		}, `UPDATE requests SET body = ? WHERE caller = ? AND request_key = ?`)
	return n + dropped, next, err
}

// announced rewrites events of announcements, which name their recipients:
// those that are not taken yet would name the user.
func (x *eraser) announced(ctx context.Context) (int64, string, error) {
	var after int64
	if _, err := readCursor(x.e.Cursor, &after); err != nil {
		return 0, "", err
	}
	return x.texts(ctx, query{`SELECT f.id, f.payload FROM announcement_rows r JOIN feed f ON f.id = r.feed_row WHERE r.feed_row > ? ORDER BY r.feed_row LIMIT ?`,
		[]any{after}}, func(rows *sql.Rows) (any, *changedText, error) {
		var row storedRow
		if err := rows.Scan(&row.id, &row.payload); err != nil {
			return nil, nil, err
		}
		var p events.Push
		if err := row.decode(&p); err != nil {
			return nil, nil, err
		}
		at := slices.Index(p.Users, x.e.UserID)
		if at < 0 {
			return row.id, nil, nil
		}
		p.Users[at] = x.e.Pseudonym
		payload, err := json.Marshal(&p)
		return row.id, &changedText{[]any{row.id}, payload}, err
	}, `UPDATE feed SET payload = ? WHERE id = ?`)
}

// deliveries rewrites events for webhooks. Those that were delivered are stored
// for a while, and may be sent again.
func (x *eraser) deliveries(ctx context.Context) (int64, string, error) {
	var after int64
	if _, err := readCursor(x.e.Cursor, &after); err != nil {
		return 0, "", err
	}
	return x.texts(ctx, query{`SELECT id, body FROM webhook_deliveries WHERE id > ? ORDER BY id LIMIT ?`, []any{after}},
		func(rows *sql.Rows) (any, *changedText, error) {
			var id int64
			var body []byte
			err := rows.Scan(&id, &body)
			return id, x.changed(body, id), err
		}, `UPDATE webhook_deliveries SET body = ? WHERE id = ?`)
}

// audit rewrites the admin log. Where it names the user, the items of claims go
// too. The chain over the log gets a record of each entry as it is then.
func (x *eraser) audit(ctx context.Context) (n int64, next string, err error) {
	var after string
	if _, err := readCursor(x.e.Cursor, &after); err != nil {
		return 0, "", err
	}
	// The lock comes first: an action that ends meanwhile must not be written over.
	end, err := lockChain(ctx, x.s)
	if err != nil {
		return 0, "", err
	}
	actions, err := sqldb.List(ctx, x.s, `SELECT `+storedColumns+` FROM audit WHERE id > ? ORDER BY id LIMIT ?`, []any{after, eraseRows}, scanStoredAction)
	if err != nil {
		return 0, "", err
	}
	for i := range actions {
		a := &actions[i]
		if !a.WithoutUser(a.parts, x.e.UserID, x.e.Pseudonym) {
			continue
		}
		if err := x.isAsked(ctx, end); err != nil {
			return 0, "", err
		}
		if err := end.rewrite(ctx, x.s, a, x.e.ID); err != nil {
			return 0, "", err
		}
		n++
	}
	if len(actions) == eraseRows {
		next, err = cursorText(actions[eraseRows-1].ID)
	}
	if err != nil {
		return 0, "", err
	}
	return n, next, end.save(ctx, x.s)
}

// isAsked adds an entry of its own for an erasure that none in the log has asked for, or not for long: one that goes on for
// months, or from before entries said so. Without such an entry nothing in the log is changed.
func (x *eraser) isAsked(ctx context.Context, end *chainEnd) error {
	if !x.e.AskedAt.IsZero() && x.now.Before(x.e.AskedAt.Add(access.AskServes)) {
		return nil
	}
	at := dibs.Ms(x.now)
	a := &access.AdminAction{
		ID: access.NewAdminActionID(at), At: at, Key: "dibs", KeyName: "an erasure goes on", Role: access.RoleAdmin, Action: access.EraseAction,
		Target: "/v1/erasures/" + x.e.ID, Status: http.StatusAccepted,
	}
	if err := end.begin(ctx, x.s, a); err != nil {
		return err
	}
	stored, err := actionByID(ctx, x.s, a.ID)
	if err != nil {
		return err
	}
	x.e.AskedAt = at
	return end.ask(ctx, x.s, &stored, x.e)
}
