package sqlledger

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
)

const actColumns = `id, at, actor, actor_name, role, address, request_id, action, target, status, reason, before_json, after_json`

// SaveActs implements dibs.Trail.
func (l *Ledger) SaveActs(ctx context.Context, acts []*access.Act) error {
	return l.write(ctx, "save acts", func(s *session) error {
		for _, a := range acts {
			n, err := s.exec(ctx, `UPDATE audit SET status = ?, reason = ?, after_json = ? WHERE id = ?`, a.Status, a.Reason, string(a.After), a.ID)
			if err != nil {
				return err
			}
			if n > 0 {
				continue
			}
			// Zero rows are changed, too, where what is there says the same already.
			if _, err := s.insertNew(ctx, `INSERT INTO audit (`+actColumns+`) VALUES (`+repeat("?", 13)+`)`,
				a.ID, a.At.UnixMilli(), a.Key, kept(a.KeyName), string(a.Role), a.Address, a.RequestID, a.Action, kept(a.Target), a.Status, a.Reason,
				string(a.Before), string(a.After)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Acts implements dibs.Trail. Ids begin with the time.
func (l *Ledger) Acts(ctx context.Context, f access.ActFilter, page dibs.Page) (dibs.List[access.Act], error) {
	where, args := []string{"1 = 1"}, []any{}
	add := func(condition string, value any) {
		where, args = append(where, condition), append(args, value)
	}
	for _, c := range []struct{ column, value string }{{"actor", f.Key}, {"action", f.Action}, {"target", f.Target}} {
		if c.value != "" {
			add(c.column+" = ?", c.value)
		}
	}
	if !f.Since.IsZero() {
		add("at >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		add("at < ?", f.Until.UnixMilli())
	}
	var after string
	if more, err := readCursor(page, &after); err != nil {
		return dibs.List[access.Act]{}, err
	} else if more {
		add("id < ?", after)
	}
	limit := limitOf(page)
	var found []access.Act
	err := l.read(ctx, "list acts", func(s *session) error {
		return s.each(ctx, `SELECT `+actColumns+` FROM audit WHERE `+strings.Join(where, " AND ")+` ORDER BY id DESC LIMIT ?`,
			append(args, limit+1), func(rows *sql.Rows) error {
				found = append(found, access.Act{})
				return scanAct(rows, &found[len(found)-1])
			})
	})
	if err != nil {
		return dibs.List[access.Act]{}, err
	}
	return cut(found, limit, func(a *access.Act) any { return a.ID })
}

func scanAct(rows *sql.Rows, a *access.Act) error {
	var at int64
	var before, after string
	err := rows.Scan(&a.ID, &at, &a.Key, &a.KeyName, &a.Role, &a.Address, &a.RequestID, &a.Action, &a.Target, &a.Status, &a.Reason, &before, &after)
	a.At = fromMS(at)
	if before != "" {
		a.Before = []byte(before)
	}
	if after != "" {
		a.After = []byte(after)
	}
	return err
}

// DropActs implements dibs.Trail.
func (l *Ledger) DropActs(ctx context.Context, before time.Time) error {
	return l.write(long(ctx, longStatement), "drop acts", func(s *session) error {
		_, err := s.exec(ctx, `DELETE FROM audit WHERE at < ?`, before.UnixMilli())
		return err
	})
}
