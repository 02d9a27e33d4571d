package sqlledger

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

const deliveryColumns = `id, endpoint, event_id, type, subject, body, status, attempts, next_at, answer, problem, created_at, updated_at`

// QueueDeliveries implements dibs.Webhooks.
func (l *Ledger) QueueDeliveries(ctx context.Context, taken *events.Taking, deliveries []webhooks.WebhookDelivery) error {
	return l.write(ctx, "queue deliveries", func(s *session) error {
		if taken != nil {
			// It comes first: who was late does the work in vain otherwise.
			if err := l.take(ctx, s, taken); err != nil {
				return err
			}
		}
		there := make(map[string]bool)
		if err := s.each(ctx, `SELECT id FROM webhook_endpoints`+s.d.forShare, nil, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			there[id] = true
			return err
		}); err != nil {
			return err
		}
		args := make([]any, 0, 12*len(deliveries))
		for i := range deliveries {
			d := &deliveries[i]
			if there[d.Endpoint] {
				args = append(args, d.Endpoint, d.EventID, d.Type, d.Subject, d.Body, string(d.Status), d.Attempts, d.NextAt.UnixMilli(),
					d.Answer, d.Problem, d.CreatedAt.UnixMilli(), d.UpdatedAt.UnixMilli())
			}
		}
		return l.insertDeliveries(ctx, s, args)
	})
}

// insertDeliveries writes rows of twelve arguments each. The feed is taken once,
// so that none is there already, but for rare repeats: these are found one by
// one.
func (l *Ledger) insertDeliveries(ctx context.Context, s *session, args []any) error {
	const width = 12
	statement := `INSERT INTO webhook_deliveries (endpoint, event_id, type, subject, body, status, attempts, next_at, answer, problem,
		created_at, updated_at) VALUES `
	if s.d.keepExisting == "" {
		for ; len(args) > 0; args = args[width:] {
			if _, err := s.insertNew(ctx, statement+"("+repeat("?", width)+")", args[:width]...); err != nil {
				return err
			}
		}
		return nil
	}
	row := "(" + repeat("?", width) + ")"
	for len(args) > 0 {
		n := chunk(len(args)/width, eventRows)
		if _, err := s.exec(ctx, statement+repeat(row, n)+s.d.keepExisting, args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// DueDeliveries implements dibs.Webhooks.
func (l *Ledger) DueDeliveries(ctx context.Context, endpoint string, now time.Time, most int) ([]webhooks.WebhookDelivery, error) {
	var found []webhooks.WebhookDelivery
	at := now.UnixMilli()
	err := l.read(ctx, "list due deliveries", func(s *session) error {
		return s.each(ctx, `SELECT `+deliveryColumns+` FROM webhook_deliveries d
			WHERE endpoint = ? AND status = 'pending' AND next_at <= ? AND NOT EXISTS (SELECT 1 FROM webhook_deliveries o
			WHERE o.endpoint = d.endpoint AND o.subject = d.subject AND o.id < d.id AND o.status = 'pending' AND o.next_at > ?)
			ORDER BY id LIMIT ?`, []any{endpoint, at, at, most}, func(rows *sql.Rows) error {
			d, err := scanDelivery(rows)
			found = append(found, d)
			return err
		})
	})
	return found, err
}

func scanDelivery(rows *sql.Rows) (d webhooks.WebhookDelivery, err error) {
	var next, created, updated int64
	err = rows.Scan(&d.ID, &d.Endpoint, &d.EventID, &d.Type, &d.Subject, &d.Body, &d.Status, &d.Attempts, &next, &d.Answer, &d.Problem,
		&created, &updated)
	d.NextAt, d.CreatedAt, d.UpdatedAt = fromMS(next), fromMS(created), fromMS(updated)
	return d, err
}

// FinishDeliveries implements dibs.Webhooks.
func (l *Ledger) FinishDeliveries(ctx context.Context, deliveries []webhooks.WebhookDelivery) error {
	return l.write(ctx, "finish deliveries", func(s *session) error {
		for i := range deliveries {
			d := &deliveries[i]
			if _, err := s.exec(ctx, `UPDATE webhook_deliveries SET status = ?, attempts = ?, next_at = ?, answer = ?, problem = ?, updated_at = ?
				WHERE id = ? AND status = 'pending' AND (attempts < ? OR ? = 'delivered')`, string(d.Status), d.Attempts, d.NextAt.UnixMilli(),
				d.Answer, kept(d.Problem), d.UpdatedAt.UnixMilli(), d.ID, d.Attempts, string(d.Status)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Deliveries implements dibs.Webhooks.
func (l *Ledger) Deliveries(ctx context.Context, endpoint string, status webhooks.DeliveryStatus, page dibs.Page) (dibs.List[webhooks.WebhookDelivery], error) {
	before := int64(math.MaxInt64)
	if _, err := readCursor(page, &before); err != nil {
		return dibs.List[webhooks.WebhookDelivery]{}, err
	}
	where, args := `endpoint = ? AND id < ?`, []any{endpoint, before}
	if status != "" {
		where, args = where+` AND status = ?`, append(args, string(status))
	}
	limit := limitOf(page)
	var found []webhooks.WebhookDelivery
	err := l.read(ctx, "list deliveries", func(s *session) error {
		return s.each(ctx, `SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE `+where+` ORDER BY id DESC LIMIT ?`,
			append(args, limit+1), func(rows *sql.Rows) error {
				d, err := scanDelivery(rows)
				found = append(found, d)
				return err
			})
	})
	if err != nil {
		return dibs.List[webhooks.WebhookDelivery]{}, err
	}
	return cut(found, limit, func(d *webhooks.WebhookDelivery) any { return d.ID })
}

// Redeliver implements dibs.Webhooks.
func (l *Ledger) Redeliver(ctx context.Context, endpoint, event string, now time.Time) (n int64, err error) {
	where, args := `status = 'failed'`, []any{now.UnixMilli(), now.UnixMilli(), endpoint}
	if event != "" {
		where, args = `event_id = ?`, append(args, event)
	}
	err = l.write(ctx, "redeliver", func(s *session) error {
		n, err = s.exec(ctx, `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_at = ?, updated_at = ? WHERE endpoint = ? AND `+where, args...)
		return err
	})
	return n, err
}

// WaitingDeliveries implements dibs.Webhooks.
func (l *Ledger) WaitingDeliveries(ctx context.Context, endpoint string, since time.Time, most int) (n int, err error) {
	err = l.read(ctx, "count waiting deliveries", func(s *session) error {
		return s.row(ctx, `SELECT COUNT(*) FROM (SELECT id FROM webhook_deliveries WHERE endpoint = ? AND status = 'pending' AND created_at >= ? LIMIT ?) waiting`,
			[]any{endpoint, since.UnixMilli(), most}, &n)
	})
	return n, err
}

// dropMost is the most deliveries that one transaction drops.
const dropMost = 500

// TrimDeliveries implements dibs.Webhooks.
func (l *Ledger) TrimDeliveries(ctx context.Context, before time.Time) (dropped int64, err error) {
	at := before.UnixMilli()
	for _, old := range []struct {
		statement string
		args      []any
	}{
		{`SELECT id FROM webhook_deliveries WHERE status = ? AND updated_at < ? ORDER BY updated_at LIMIT ?`, []any{string(webhooks.DeliveryDelivered), at}},
		{`SELECT id FROM webhook_deliveries WHERE status = ? AND updated_at < ? ORDER BY updated_at LIMIT ?`, []any{string(webhooks.DeliveryFailed), at}},
		{`SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint = e.id
			WHERE e.disabled = 1 AND d.status = ? AND d.updated_at < ? LIMIT ?`, []any{string(webhooks.DeliveryPending), at}},
	} {
		for n := int64(dropMost); n == dropMost; dropped += n {
			if n, err = l.dropDeliveries(ctx, old.statement, old.args...); err != nil {
				return dropped, err
			}
		}
	}
	return dropped, nil
}

// dropDeliveries drops up to dropMost deliveries, those whose ids a statement
// reads; its last argument is the limit.
func (l *Ledger) dropDeliveries(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = l.write(long(ctx, longStatement), "drop deliveries", func(s *session) error {
		var ids []any
		if err := s.each(ctx, statement, append(slices.Clone(args), dropMost), func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}); err != nil {
			return err
		}
		n = int64(len(ids))
		for len(ids) > 0 {
			k := chunk(len(ids), dropMost)
			if _, err := s.exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN (`+repeat("?", k)+`)`, ids[:k]...); err != nil {
				return err
			}
			ids = ids[k:]
		}
		return nil
	})
	return n, err
}
