package sqlledger

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
)

// eraseRows is how many rows of texts one transaction reads.
const eraseRows = 200

// userFields are the members of JSON texts that name a user.
var userFields = []string{"user_id", "user", "sender_id"}

var (
	// goodsWent are the members that say where a user's goods went.
	goodsWent = regexp.MustCompile(`"(carrier|tracking_no)":"(?:[^"\\]|\\.)*"`)
	// deliveryIDs are those of announcements to followers.
	deliveryIDs = regexp.MustCompile(`"delivery_id":"[^"\\]*"`)
	// whatWon are the codes and seats of a claim.
	whatWon = regexp.MustCompile(`"items":\[(?:"(?:[^"\\]|\\.)*",?)*\]`)
)

// withoutUser puts the pseudonym into a JSON text in the user's place; false
// for a text that does not name the user.
func (x *eraser) withoutUser(text []byte) ([]byte, bool) {
	before := text
	for _, field := range userFields {
		begin := `"` + field + `":"`
		text = bytes.ReplaceAll(text, []byte(begin+x.e.UserID+`"`), []byte(begin+x.e.Pseudonym+`"`))
	}
	// Their ids end with the user's.
	text = deliveryIDs.ReplaceAllFunc(text, func(id []byte) []byte {
		if of, ok := bytes.CutSuffix(id, []byte(":"+x.e.UserID+`"`)); ok {
			id = slices.Concat(of, []byte(":"+x.e.Pseudonym+`"`))
		}
		return id
	})
	if bytes.Equal(text, before) {
		return before, false
	}
	return goodsWent.ReplaceAll(text, []byte(`"$1":""`)), true
}

// changedText is a row whose texts have changed.
type changedText struct {
	key   []any
	texts []any
}

// texts reads rows behind the cursor, and writes those that have changed. scan
// returns where a row is, and nil for one that stays.
func (x *eraser) texts(ctx context.Context, query string, args []any, scan func(*sql.Rows) (at any, changed *changedText, err error), write string,
) (n int64, next string, err error) {
	var last any
	var read int
	var rows []changedText
	if err := x.s.each(ctx, query, append(args, eraseRows), func(r *sql.Rows) error {
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
		m, err := x.s.exec(ctx, write, append(rows[i].texts, rows[i].key...)...)
		if err != nil {
			return 0, "", err
		}
		n += m
	}
	if read == eraseRows {
		next, err = cursorText(last)
	}
	return n, next, err
}

// requests rewrites the remembered answers to administrators, and drops those to
// the user.
func (x *eraser) requests(ctx context.Context) (int64, string, error) {
	var after [2]string
	if _, err := readCursor(dibs.Page{Cursor: x.e.Cursor}, &after); err != nil {
		return 0, "", err
	}
	dropped, err := x.s.exec(ctx, `DELETE FROM requests WHERE caller = ?`, "user:"+x.e.UserID)
	if err != nil {
		return 0, "", err
	}
	where, args := x.s.d.compare([]string{"caller", "request_key"}, ">", after[0], after[1])
	n, next, err := x.texts(ctx, `SELECT caller, request_key, body FROM requests WHERE `+where+` ORDER BY caller, request_key LIMIT ?`, args,
		func(rows *sql.Rows) (any, *changedText, error) {
			var at [2]string
			var body []byte
			if err := rows.Scan(&at[0], &at[1], &body); err != nil {
				return nil, nil, err
			}
			if body, ok := x.withoutUser(body); ok {
				return at, &changedText{key: []any{at[0], at[1]}, texts: []any{body}}, nil
			}
			return at, nil, nil
		}, `UPDATE requests SET body = ? WHERE caller = ? AND request_key = ?`)
	return n + dropped, next, err
}

// announced rewrites events of announcements, which name their recipients
// themselves: those that are not taken yet would tell who it was.
func (x *eraser) announced(ctx context.Context) (int64, string, error) {
	var after int64
	if _, err := readCursor(dibs.Page{Cursor: x.e.Cursor}, &after); err != nil {
		return 0, "", err
	}
	return x.texts(ctx, `SELECT f.id, f.payload FROM announcement_rows r JOIN feed f ON f.id = r.feed_row WHERE r.feed_row > ? ORDER BY r.feed_row LIMIT ?`,
		[]any{after}, func(rows *sql.Rows) (any, *changedText, error) {
			var row feedRow
			if err := rows.Scan(&row.id, &row.payload); err != nil {
				return nil, nil, err
			}
			var p events.Push
			if err := decodeRow(&row, &p); err != nil {
				return nil, nil, err
			}
			at := slices.Index(p.Users, x.e.UserID)
			if at < 0 {
				return row.id, nil, nil
			}
			p.Users[at] = x.e.Pseudonym
			payload, err := json.Marshal(&p)
			return row.id, &changedText{key: []any{row.id}, texts: []any{payload}}, err
		}, `UPDATE feed SET payload = ? WHERE id = ?`)
}

// deliveries rewrites events for webhooks.
func (x *eraser) deliveries(ctx context.Context) (int64, string, error) {
	var after int64
	if _, err := readCursor(dibs.Page{Cursor: x.e.Cursor}, &after); err != nil {
		return 0, "", err
	}
	return x.texts(ctx, `SELECT id, body FROM webhook_deliveries WHERE id > ? ORDER BY id LIMIT ?`, []any{after},
		func(rows *sql.Rows) (any, *changedText, error) {
			var id int64
			var body []byte
			if err := rows.Scan(&id, &body); err != nil {
				return nil, nil, err
			}
			if body, ok := x.withoutUser(body); ok {
				return id, &changedText{key: []any{id}, texts: []any{body}}, nil
			}
			return id, nil, nil
		}, `UPDATE webhook_deliveries SET body = ? WHERE id = ?`)
}

// audit rewrites what administrators did. What a claim won goes, too.
func (x *eraser) audit(ctx context.Context) (int64, string, error) {
	var after string
	if _, err := readCursor(dibs.Page{Cursor: x.e.Cursor}, &after); err != nil {
		return 0, "", err
	}
	return x.texts(ctx, `SELECT id, target, before_json, after_json FROM audit WHERE id > ? ORDER BY id LIMIT ?`, []any{after},
		func(rows *sql.Rows) (any, *changedText, error) {
			var id, target, before, then string
			if err := rows.Scan(&id, &target, &before, &then); err != nil {
				return nil, nil, err
			}
			about, named := x.targetWithoutUser(target)
			texts := []any{about}
			for _, text := range []string{before, then} {
				raw, ok := x.withoutUser([]byte(text))
				if ok {
					raw = whatWon.ReplaceAll(raw, []byte(`"items":[]`))
				}
				texts, named = append(texts, string(raw)), named || ok
			}
			if !named {
				return id, nil, nil
			}
			return id, &changedText{key: []any{id}, texts: texts}, nil
		}, `UPDATE audit SET target = ?, before_json = ?, after_json = ? WHERE id = ?`)
}

// targetWithoutUser puts the pseudonym into an address where it names a user.
func (x *eraser) targetWithoutUser(target string) (string, bool) {
	parts := strings.Split(target, "/")
	changed := false
	for i := 2; i < len(parts); i++ {
		if parts[i] != x.e.UserID {
			continue
		}
		switch parts[i-1] {
		case "accounts", "users", "followers":
			parts[i], changed = x.e.Pseudonym, true
		}
	}
	return strings.Join(parts, "/"), changed
}
