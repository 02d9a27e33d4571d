package sqlledger

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// eraseRows is how many rows with texts one transaction reads.
const eraseRows = 200

// userFields are the members of JSON texts that name a user.
var userFields = []string{"user_id", "user", "sender_id"}

var (
	// shipments are the members that say where a user's goods went, and what the user
	// wrote to a claim.
	shipments = regexp.MustCompile(`"(carrier|tracking_no|reference)":"(?:[^"\\]|\\.)*"`)
	// deliveryIDs are those of announcements to followers. They end with the
	// user's id.
	deliveryIDs = regexp.MustCompile(`"delivery_id":"[^"\\]*"`)
	// claimItems are the codes and seats of a claim.
	claimItems = regexp.MustCompile(`"items":\[(?:"(?:[^"\\]|\\.)*",?)*\]`)
)

// withoutUser puts the pseudonym into a JSON text in the user's place. It
// returns false for a text that does not name the user. It works on the text
// and does not parse it, so that the rest of an answer stays as it was, byte
// for byte.
func (x *eraser) withoutUser(text []byte) ([]byte, bool) {
	before := text
	for _, field := range userFields {
		begin := `"` + field + `":"`
		text = bytes.ReplaceAll(text, []byte(begin+x.e.UserID+`"`), []byte(begin+x.e.Pseudonym+`"`))
	}
	text = deliveryIDs.ReplaceAllFunc(text, func(id []byte) []byte {
		if of, ok := bytes.CutSuffix(id, []byte(":"+x.e.UserID+`"`)); ok {
			id = slices.Concat(of, []byte(":"+x.e.Pseudonym+`"`))
		}
		return id
	})
	if bytes.Equal(text, before) {
		return before, false
	}
	return shipments.ReplaceAll(text, []byte(`"$1":""`)), true
}

// changedText is a row whose texts have changed.
type changedText struct {
	key   []any
	texts []any
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
		m, err := x.s.Exec(ctx, write, append(rows[i].texts, rows[i].key...)...)
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
		return row.id, &changedText{key: []any{row.id}, texts: []any{payload}}, err
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
			if err := rows.Scan(&id, &body); err != nil {
				return nil, nil, err
			}
			if body, ok := x.withoutUser(body); ok {
				return id, &changedText{key: []any{id}, texts: []any{body}}, nil
			}
			return id, nil, nil
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
	actions, err := sqldb.List(ctx, x.s, `SELECT `+actionColumns+` FROM audit WHERE id > ? ORDER BY id LIMIT ?`, []any{after, eraseRows}, scanAction)
	if err != nil {
		return 0, "", err
	}
	for i := range actions {
		if !x.actionWithoutUser(&actions[i]) {
			continue
		}
		m, err := end.rewrite(ctx, x.s, &actions[i], x.e.ID)
		if err != nil {
			return 0, "", err
		}
		n += m
	}
	if len(actions) == eraseRows {
		next, err = cursorText(actions[eraseRows-1].ID)
	}
	if err != nil {
		return 0, "", err
	}
	return n, next, end.save(ctx, x.s)
}

// actionWithoutUser puts the pseudonym into an action where it names the user. It returns
// false for one that does not.
func (x *eraser) actionWithoutUser(a *access.AdminAction) (named bool) {
	a.Target, named = x.targetWithoutUser(a.Target)
	for _, text := range []*json.RawMessage{&a.Before, &a.After} {
		if raw, ok := x.withoutUser(*text); ok {
			*text, named = claimItems.ReplaceAll(raw, []byte(`"items":[]`)), true
		}
	}
	return named
}

// targetWithoutUser puts the pseudonym into the path of a request where it
// names the user.
func (x *eraser) targetWithoutUser(target string) (string, bool) {
	target, searched, _ := strings.Cut(target, "?")
	parts := strings.Split(target, "/")
	changed := false
	for i := 2; i < len(parts); i++ {
		// Targets are percent-encoded since entries are one word each; older ones are not.
		plain, err := url.PathUnescape(parts[i])
		if parts[i] != x.e.UserID && (err != nil || plain != x.e.UserID) {
			continue
		}
		switch parts[i-1] {
		case "accounts", "users", "followers":
			parts[i], changed = x.e.Pseudonym, true
		}
	}
	target = strings.Join(parts, "/")
	if search, err := url.ParseQuery(searched); err == nil && search.Get("user_id") == x.e.UserID {
		search.Set("user_id", x.e.Pseudonym)
		searched, changed = search.Encode(), true
	}
	if searched != "" {
		target += "?" + searched
	}
	return target, changed
}
