package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/webhooks"
)

const endpointColumns = `id, url, description, types, secret, old_secret, old_until, disabled, disabled_reason, failing_since, version, created_at, updated_at`

// InsertEndpoint implements dibs.Webhooks.
func (l *Ledger) InsertEndpoint(ctx context.Context, e *webhooks.WebhookEndpoint) error {
	types, err := typesText(e.Types)
	if err != nil {
		return err
	}
	return l.write(ctx, "insert endpoint", func(s *session) error {
		// The head is locked: nobody else adds or deletes one, and the feed stands
		// still.
		last, err := lockFeed(ctx, s)
		if err != nil {
			return err
		}
		var n int64
		if err := s.row(ctx, `SELECT COUNT(*) FROM webhook_endpoints`, nil, &n); err != nil {
			return err
		}
		if n >= webhooks.MaxEndpoints {
			return dibs.Fail(dibs.InvalidState, dibs.Textf("there are %d endpoints, the most that there can be", "已有 %d 个端点，达到上限", n))
		}
		if n == 0 {
			// From now on webhooks take the feed.
			now, err := l.sharedNow(ctx, s)
			if err != nil {
				return err
			}
			if _, err := s.insertNew(ctx, `INSERT INTO sinks (`+sinkColumns+`) VALUES (?,?,'',0,?,0,0,'')`, webhooks.WebhookSink, last, now); err != nil {
				return err
			}
		}
		_, err = s.exec(ctx, `INSERT INTO webhook_endpoints (`+endpointColumns+`) VALUES (`+repeat("?", 13)+`)`,
			e.ID, e.URL, e.Description, types, e.Secret, e.OldSecret, toOptionalMS(e.OldUntil), flag(e.Disabled), e.DisabledReason,
			toOptionalMS(e.FailingSince), e.Version, e.CreatedAt.UnixMilli(), e.UpdatedAt.UnixMilli())
		return err
	})
}

func typesText(types []string) (string, error) {
	if len(types) == 0 {
		return "[]", nil
	}
	b, err := json.Marshal(types)
	if err != nil {
		return "", fmt.Errorf("sqlledger: write the types of events: %w", err)
	}
	return string(b), nil
}

// flag is how a column keeps a bool.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// UpdateEndpoint implements dibs.Webhooks.
func (l *Ledger) UpdateEndpoint(ctx context.Context, e *webhooks.WebhookEndpoint) error {
	types, err := typesText(e.Types)
	if err != nil {
		return err
	}
	err = l.write(ctx, "update endpoint", func(s *session) error {
		n, err := s.exec(ctx, `UPDATE webhook_endpoints SET url = ?, description = ?, types = ?, secret = ?, old_secret = ?, old_until = ?,
			disabled = ?, disabled_reason = ?, failing_since = CASE WHEN ? = 1 THEN 0 ELSE failing_since END, version = version + 1, updated_at = ?
			WHERE id = ? AND version = ?`,
			e.URL, e.Description, types, e.Secret, e.OldSecret, toOptionalMS(e.OldUntil), flag(e.Disabled), kept(e.DisabledReason),
			flag(e.Disabled), e.UpdatedAt.UnixMilli(), e.ID, e.Version)
		if err != nil || n == 1 {
			return err
		}
		return changedOrGone(ctx, s, `SELECT 1 FROM webhook_endpoints WHERE id = ?`, e.ID, notFound(anEndpoint, e.ID))
	})
	if err == nil {
		e.Version++
	}
	return err
}

var anEndpoint = dibs.Text{EN: "webhook endpoint", ZH: "Webhook 端点"}

// DeleteEndpoint implements dibs.Webhooks. There may be very many deliveries:
// most go before, in transactions of their own.
func (l *Ledger) DeleteEndpoint(ctx context.Context, id string) error {
	for {
		n, err := l.dropDeliveries(ctx, `SELECT id FROM webhook_deliveries WHERE endpoint = ? LIMIT ?`, id)
		if err != nil {
			return err
		}
		if n < dropMost {
			break
		}
	}
	return l.write(ctx, "delete endpoint", func(s *session) error {
		if _, err := lockFeed(ctx, s); err != nil {
			return err
		}
		// Who queues deliveries holds the sink's row: nothing is added from here on.
		if err := s.each(ctx, `SELECT taken FROM sinks WHERE name = ?`+s.d.forUpdate, []any{webhooks.WebhookSink}, func(*sql.Rows) error { return nil }); err != nil {
			return err
		}
		if err := s.each(ctx, `SELECT id FROM webhook_endpoints WHERE id = ?`+s.d.forUpdate, []any{id}, func(*sql.Rows) error { return nil }); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `DELETE FROM webhook_deliveries WHERE endpoint = ?`, id); err != nil {
			return err
		}
		n, err := s.exec(ctx, `DELETE FROM webhook_endpoints WHERE id = ?`, id)
		if err == nil && n == 0 {
			err = notFound(anEndpoint, id)
		}
		if err != nil {
			return err
		}
		// With the last endpoint goes the sink: it would keep the feed from being
		// trimmed.
		_, err = s.exec(ctx, `DELETE FROM sinks WHERE name = ? AND NOT EXISTS (SELECT 1 FROM webhook_endpoints)`, webhooks.WebhookSink)
		return err
	})
}

// Endpoint implements dibs.Webhooks.
func (l *Ledger) Endpoint(ctx context.Context, id string) (*webhooks.WebhookEndpoint, error) {
	var e webhooks.WebhookEndpoint
	err := l.read(ctx, "read endpoint", func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+endpointColumns+` FROM webhook_endpoints WHERE id = ?`, id)
		if err != nil {
			return err
		}
		return one(rows, notFound(anEndpoint, id), func() error { return scanEndpoint(rows, &e) })
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// Endpoints implements dibs.Webhooks.
func (l *Ledger) Endpoints(ctx context.Context) ([]webhooks.WebhookEndpoint, error) {
	var found []webhooks.WebhookEndpoint
	err := l.read(ctx, "list endpoints", func(s *session) error {
		return s.each(ctx, `SELECT `+endpointColumns+` FROM webhook_endpoints ORDER BY id`, nil, func(rows *sql.Rows) error {
			found = append(found, webhooks.WebhookEndpoint{})
			return scanEndpoint(rows, &found[len(found)-1])
		})
	})
	return found, err
}

func scanEndpoint(rows *sql.Rows, e *webhooks.WebhookEndpoint) error {
	var types string
	var oldUntil, failing, created, updated int64
	if err := rows.Scan(&e.ID, &e.URL, &e.Description, &types, &e.Secret, &e.OldSecret, &oldUntil, &e.Disabled, &e.DisabledReason,
		&failing, &e.Version, &created, &updated); err != nil {
		return err
	}
	e.FailingSince = fromOptionalMS(failing)
	e.OldUntil, e.CreatedAt, e.UpdatedAt = fromOptionalMS(oldUntil), fromMS(created), fromMS(updated)
	if err := json.Unmarshal([]byte(types), &e.Types); err != nil {
		return fmt.Errorf("%w: the types of endpoint %s: %w", dibs.ErrCorrupt, e.ID, err)
	}
	return nil
}

// NoteAttempts implements dibs.Webhooks.
func (l *Ledger) NoteAttempts(ctx context.Context, id string, good bool) (failing time.Duration, err error) {
	err = l.write(ctx, "note attempts", func(s *session) error {
		failing = 0
		if good {
			_, err := s.exec(ctx, `UPDATE webhook_endpoints SET failing_since = 0 WHERE id = ?`, id)
			return err
		}
		now, err := l.sharedNow(ctx, s)
		if err != nil {
			return err
		}
		if _, err := s.exec(ctx, `UPDATE webhook_endpoints SET failing_since = ? WHERE id = ? AND failing_since = 0 AND disabled = 0`, now, id); err != nil {
			return err
		}
		var since int64
		if err := s.row(ctx, `SELECT failing_since FROM webhook_endpoints WHERE id = ?`, []any{id}, &since); errors.Is(err, sql.ErrNoRows) {
			return notFound(anEndpoint, id)
		} else if err != nil {
			return err
		}
		if since > 0 {
			failing = time.Duration(max(now-since, 0)) * time.Millisecond
		}
		return nil
	})
	return failing, err
}
