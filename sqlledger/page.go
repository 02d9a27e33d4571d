package sqlledger

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/dibs-dev/dibs"
)

// limitOf returns the page's size within the contract's bounds.
func limitOf(p dibs.Page) int {
	if p.Limit <= 0 {
		return dibs.DefaultPage
	}
	return min(p.Limit, dibs.MaxPage)
}

// cursorText writes the key of a page's last row for people to hand back.
func cursorText(key any) (string, error) {
	b, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// readCursor reads what cursorText wrote into key; false for the first page.
func readCursor(p dibs.Page, key any) (bool, error) {
	if p.Cursor == "" {
		return false, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		err = json.Unmarshal(b, key)
	}
	if err != nil {
		return false, dibs.Invalid(dibs.Fault{Field: "/cursor", Problem: dibs.Text{
			EN: "is not a cursor that this list gave out", ZH: "不是本列表返回的游标",
		}})
	}
	return true, nil
}

// cut makes a page of rows that were read with one more than the limit, whose
// presence says that the list goes on.
func cut[T any](rows []T, limit int, key func(*T) any) (dibs.List[T], error) {
	if len(rows) <= limit {
		return dibs.List[T]{Items: rows}, nil
	}
	next, err := cursorText(key(&rows[limit-1]))
	return dibs.List[T]{Items: rows[:limit], NextCursor: next}, err
}

// byKeyMost is the most rows that one statement looks for by their keys.
const byKeyMost = 64

// eachByKey calls scan for each row that has one of the keys, in any order. one is
// the statement for a key, all columns of a unique index. Each is looked for by
// itself: a list would let a database that does not know yet how large the table
// is read all of it.
func eachByKey(ctx context.Context, s *session, one string, keys [][]any, scan func(*sql.Rows) error) error {
	for len(keys) > 0 {
		n := chunk(len(keys), byKeyMost)
		var args []any
		for _, key := range keys[:n] {
			args = append(args, key...)
		}
		if err := s.each(ctx, strings.TrimSuffix(strings.Repeat(one+" UNION ALL ", n), " UNION ALL "), args, scan); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
