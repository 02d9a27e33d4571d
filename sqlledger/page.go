package sqlledger

import (
	"encoding/base64"
	"encoding/json"

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
