package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// Webhooks keeps the endpoints that events are posted to, and the deliveries.
//
// Locks are taken in the order that Feed names. The sink of webhooks exists if
// and only if an endpoint does; a delivery is queued only while its endpoint
// exists.
//
// Secrets are encrypted under keys from outside, where there are some; plain ones stay
// readable.
type Webhooks struct {
	db   *sqldb.DB
	keys *keyring.Ring
}

// endpointColumns are the columns of an endpoint. types is a JSON list of the
// events that it wants, all when it is empty. old_secret is valid beside secret
// until old_until. failing_since is when attempts began to fail, 0 while they
// succeed or while the endpoint is disabled.
const endpointColumns = `id, url, description, types, secret, old_secret, old_until, disabled, disabled_reason, failing_since, version, created_at, updated_at`

// InsertEndpoint stores a new endpoint, which gets what happens from then on.
// An *Error of InvalidState when there are webhooks.MaxEndpoints.
func (w *Webhooks) InsertEndpoint(ctx context.Context, e *webhooks.WebhookEndpoint) error {
	types, err := typesText(e.Types)
	if err != nil {
		return err
	}
	return w.db.Write(ctx, "insert endpoint", func(s *sqldb.Session) error {
		// While the head is locked, no other endpoint is added or deleted, and
		// the feed does not grow.
		last, err := lockFeed(ctx, s)
		if err != nil {
			return err
		}
		n, err := sqldb.Get[int64](ctx, s, `SELECT COUNT(*) FROM webhook_endpoints`)
		if err != nil {
			return err
		}
		if n >= webhooks.MaxEndpoints {
			return dibs.Fail(dibs.InvalidState, dibs.Textf("there are %d endpoints, the most that there can be", "已有 %d 个端点，达到上限", n))
		}
		if n == 0 {
			// From now on webhooks take the feed.
			now, err := s.SharedNow(ctx)
			if err == nil {
				err = insertSink(ctx, s, webhooks.WebhookSink, last, now)
			}
			if err != nil {
				return err
			}
		}
		return s.Do(ctx, `INSERT INTO webhook_endpoints (`+endpointColumns+`) VALUES (`+sqldb.Repeat("?", 13)+`)`,
			e.ID, e.URL, e.Description, types, w.keys.Seal(e.Secret, secretPlace(e.ID)), w.keys.Seal(e.OldSecret, secretPlace(e.ID)), toOptionalMS(e.OldUntil), flag(e.Disabled), e.DisabledReason,
			toOptionalMS(e.FailingSince), e.Version, e.CreatedAt.UnixMilli(), e.UpdatedAt.UnixMilli())
	})
}

// typesText returns how the types of events are stored: as JSON. No types means
// all of them.
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

// UpdateEndpoint stores e where the stored version is e.Version, and raises the
// version in e. ErrConflict, ErrNotFound.
func (w *Webhooks) UpdateEndpoint(ctx context.Context, e *webhooks.WebhookEndpoint) error {
	types, err := typesText(e.Types)
	if err != nil {
		return err
	}
	err = w.db.Write(ctx, "update endpoint", func(s *sqldb.Session) error {
		n, err := s.Exec(ctx, `UPDATE webhook_endpoints SET url = ?, description = ?, types = ?, secret = ?, old_secret = ?, old_until = ?,
			disabled = ?, disabled_reason = ?, failing_since = CASE WHEN ? = 1 THEN 0 ELSE failing_since END, version = version + 1, updated_at = ?
			WHERE id = ? AND version = ?`,
			e.URL, e.Description, types, w.keys.Seal(e.Secret, secretPlace(e.ID)), w.keys.Seal(e.OldSecret, secretPlace(e.ID)), toOptionalMS(e.OldUntil), flag(e.Disabled), storable(e.DisabledReason),
			flag(e.Disabled), e.UpdatedAt.UnixMilli(), e.ID, e.Version)
		if err != nil || n == 1 {
			return err
		}
		return changedOrGone(ctx, s, `SELECT 1 FROM webhook_endpoints WHERE id = ?`, anEndpoint, e.ID)
	})
	if err == nil {
		e.Version++
	}
	return err
}

// DeleteEndpoint deletes an endpoint with its deliveries. Most deliveries are
// dropped before, in transactions of their own: there may be very many.
// ErrNotFound.
func (w *Webhooks) DeleteEndpoint(ctx context.Context, id string) error {
	if _, err := w.dropAll(ctx, query{`SELECT id FROM webhook_deliveries WHERE endpoint = ? LIMIT ?`, []any{id}}); err != nil {
		return err
	}
	return w.db.Write(ctx, "delete endpoint", func(s *sqldb.Session) error {
		if _, err := lockFeed(ctx, s); err != nil {
			return err
		}
		// A transaction that queues deliveries holds the sink's row: none is
		// added from here on.
		for _, lock := range []query{
			{`SELECT taken FROM sinks WHERE name = ?` + s.ForUpdate, []any{webhooks.WebhookSink}},
			{`SELECT id FROM webhook_endpoints WHERE id = ?` + s.ForUpdate, []any{id}},
		} {
			if err := s.Each(ctx, lock.statement, lock.args, func(*sql.Rows) error { return nil }); err != nil {
				return err
			}
		}
		if err := s.Do(ctx, `DELETE FROM webhook_deliveries WHERE endpoint = ?`, id); err != nil {
			return err
		}
		if err := s.DoOne(ctx, notFound(anEndpoint, id), `DELETE FROM webhook_endpoints WHERE id = ?`, id); err != nil {
			return err
		}
		// The sink goes with the last endpoint: it would keep the feed from
		// being trimmed.
		return s.Do(ctx, `DELETE FROM sinks WHERE name = ? AND NOT EXISTS (SELECT 1 FROM webhook_endpoints)`, webhooks.WebhookSink)
	})
}

// Endpoint returns an endpoint. ErrNotFound.
func (w *Webhooks) Endpoint(ctx context.Context, id string) (*webhooks.WebhookEndpoint, error) {
	return sqldb.ReadOne(ctx, w.db, "read endpoint", `SELECT `+endpointColumns+` FROM webhook_endpoints WHERE id = ?`, []any{id},
		notFound(anEndpoint, id), w.scan)
}

// Endpoints lists all endpoints by id.
func (w *Webhooks) Endpoints(ctx context.Context) ([]webhooks.WebhookEndpoint, error) {
	return sqldb.ReadList(ctx, w.db, "list endpoints", `SELECT `+endpointColumns+` FROM webhook_endpoints ORDER BY id`, nil, w.scan)
}

// scan reads endpointColumns, and opens the secrets. One whose key is gone stays as it is
// stored: the endpoint can be shown, and changed, and its deliveries fail with a reason.
func (w *Webhooks) scan(rows *sql.Rows, e *webhooks.WebhookEndpoint) error {
	if err := scanEndpoint(rows, e); err != nil {
		return err
	}
	for _, secret := range []*string{&e.Secret, &e.OldSecret} {
		text, err := w.keys.Open(*secret, secretPlace(e.ID))
		if errors.Is(err, keyring.ErrNoKey) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: the secret of endpoint %s: %w", dibs.ErrCorrupt, e.ID, err)
		}
		*secret = text
	}
	return nil
}

// secretPlace is what the secrets of an endpoint are bound to: they cannot be opened in the row
// of another one.
func secretPlace(id string) string { return "webhook_endpoints/" + id }

// scanEndpoint reads endpointColumns.
func scanEndpoint(rows *sql.Rows, e *webhooks.WebhookEndpoint) error {
	var types string
	if err := rows.Scan(&e.ID, &e.URL, &e.Description, &types, &e.Secret, &e.OldSecret, optionalMS(&e.OldUntil), &e.Disabled,
		&e.DisabledReason, optionalMS(&e.FailingSince), &e.Version, ms(&e.CreatedAt), ms(&e.UpdatedAt)); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(types), &e.Types); err != nil {
		return fmt.Errorf("%w: the types of endpoint %s: %w", dibs.ErrCorrupt, e.ID, err)
	}
	return nil
}

// NoteAttempts stores that attempts at an endpoint were made, of which some
// were good or all failed, and returns for how long all have failed.
// ErrNotFound.
func (w *Webhooks) NoteAttempts(ctx context.Context, id string, good bool) (failing time.Duration, err error) {
	if good {
		return 0, w.db.Do(ctx, "note attempts", `UPDATE webhook_endpoints SET failing_since = 0 WHERE id = ?`, id)
	}
	return sqldb.Result(ctx, w.db.Write, "note attempts", func(s *sqldb.Session) (time.Duration, error) {
		now, err := s.SharedNow(ctx)
		if err != nil {
			return 0, err
		}
		// Only the first failure sets the time. An endpoint that was disabled
		// meanwhile stays as it is.
		if err := s.Do(ctx, `UPDATE webhook_endpoints SET failing_since = ? WHERE id = ? AND failing_since = 0 AND disabled = 0`, now, id); err != nil {
			return 0, err
		}
		since, err := sqldb.Get[int64](ctx, s, `SELECT failing_since FROM webhook_endpoints WHERE id = ?`, id)
		if err != nil || since == 0 {
			return 0, orNotFound(err, anEndpoint, id)
		}
		return time.Duration(max(now-since, 0)) * time.Millisecond, nil
	})
}

const (
	// queuedColumns are those of a new delivery; deliveryColumns those that
	// scanDelivery reads. A delivery is unique by endpoint and event. subject
	// is what the event is about: deliveries of one subject keep their order.
	// next_at is when the next attempt is due; answer is the status of the last
	// one, 0 for none, and problem what went wrong with it.
	queuedColumns   = `endpoint, event_id, type, subject, body, status, attempts, next_at, answer, problem, created_at, updated_at`
	deliveryColumns = `id, ` + queuedColumns
)

// QueueDeliveries stores deliveries and what was taken of the feed, in one
// transaction; taken is nil when nothing was. It leaves out a delivery that is
// stored already, and one to an endpoint that is gone. The sink moves first: a
// process that was late fails before it does the rest. ErrSinkTaken.
func (w *Webhooks) QueueDeliveries(ctx context.Context, taken *events.Taking, deliveries []webhooks.WebhookDelivery) error {
	return w.db.Write(ctx, "queue deliveries", func(s *sqldb.Session) error {
		if taken != nil {
			if err := takeFeed(ctx, s, taken); err != nil {
				return err
			}
		}
		endpoints, err := sqldb.List(ctx, s, `SELECT id FROM webhook_endpoints`+s.ForShare, nil, sqldb.Scan1[string])
		if err != nil {
			return err
		}
		args := make([]any, 0, 12*len(deliveries))
		for i := range deliveries {
			d := &deliveries[i]
			if slices.Contains(endpoints, d.Endpoint) {
				args = append(args, d.Endpoint, d.EventID, d.Type, d.Subject, d.Body, string(d.Status), d.Attempts, d.NextAt.UnixMilli(),
					d.Answer, d.Problem, d.CreatedAt.UnixMilli(), d.UpdatedAt.UnixMilli())
			}
		}
		return s.InsertNewRows(ctx, `INSERT INTO webhook_deliveries (`+queuedColumns+`) VALUES `, args, 12)
	})
}

// DueDeliveries returns the oldest deliveries of an endpoint that are due, but
// none while an older one of the same subject waits for its next attempt.
func (w *Webhooks) DueDeliveries(ctx context.Context, endpoint string, now time.Time, most int) ([]webhooks.WebhookDelivery, error) {
	at := now.UnixMilli()
	return sqldb.ReadList(ctx, w.db, "list due deliveries", `SELECT `+deliveryColumns+` FROM webhook_deliveries d
		WHERE endpoint = ? AND status = 'pending' AND next_at <= ? AND NOT EXISTS (SELECT 1 FROM webhook_deliveries o
		WHERE o.endpoint = d.endpoint AND o.subject = d.subject AND o.id < d.id AND o.status = 'pending' AND o.next_at > ?)
		ORDER BY id LIMIT ?`, []any{endpoint, at, at, most}, scanDelivery)
}

// scanDelivery reads deliveryColumns.
func scanDelivery(rows *sql.Rows, d *webhooks.WebhookDelivery) error {
	return rows.Scan(&d.ID, &d.Endpoint, &d.EventID, &d.Type, &d.Subject, &d.Body, &d.Status, &d.Attempts, ms(&d.NextAt), &d.Answer, &d.Problem,
		ms(&d.CreatedAt), ms(&d.UpdatedAt))
}

// FinishDeliveries stores the results of attempts at pending deliveries. A
// result that another process has overtaken changes nothing, unless it is a
// delivery.
func (w *Webhooks) FinishDeliveries(ctx context.Context, deliveries []webhooks.WebhookDelivery) error {
	return w.db.Write(ctx, "finish deliveries", func(s *sqldb.Session) error {
		for i := range deliveries {
			d := &deliveries[i]
			if err := s.Do(ctx, `UPDATE webhook_deliveries SET status = ?, attempts = ?, next_at = ?, answer = ?, problem = ?, updated_at = ?
				WHERE id = ? AND status = 'pending' AND (attempts < ? OR ? = 'delivered')`, string(d.Status), d.Attempts, d.NextAt.UnixMilli(),
				d.Answer, storable(d.Problem), d.UpdatedAt.UnixMilli(), d.ID, d.Attempts, string(d.Status)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Deliveries lists an endpoint's deliveries, the newest first; an empty status
// means any.
func (w *Webhooks) Deliveries(ctx context.Context, endpoint string, status webhooks.DeliveryStatus, page dibs.Page) (dibs.List[webhooks.WebhookDelivery], error) {
	return readPage(ctx, w.db, "list deliveries", page, int64(math.MaxInt64), func(before int64) query {
		q := query{`SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE endpoint = ? AND id < ?`, []any{endpoint, before}}
		if status != "" {
			q.and(`status = ?`, string(status))
		}
		return q.then(` ORDER BY id DESC LIMIT ?`)
	}, scanDelivery, func(d *webhooks.WebhookDelivery) int64 { return d.ID })
}

// Redeliver makes deliveries due again and returns how many: that of an event,
// or with an empty event all that failed.
func (w *Webhooks) Redeliver(ctx context.Context, endpoint, event string, now time.Time) (n int64, err error) {
	where, args := `status = 'failed'`, []any{now.UnixMilli(), now.UnixMilli(), endpoint}
	if event != "" {
		where, args = `event_id = ?`, append(args, event)
	}
	return sqldb.Result(ctx, w.db.Write, "redeliver", func(s *sqldb.Session) (int64, error) {
		return s.Exec(ctx, `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_at = ?, updated_at = ? WHERE endpoint = ? AND `+where, args...)
	})
}

// WaitingDeliveries counts the deliveries of an endpoint that are pending and
// were made at a time or later, up to most.
func (w *Webhooks) WaitingDeliveries(ctx context.Context, endpoint string, since time.Time, most int) (n int, err error) {
	err = w.db.ReadRow(ctx, "count waiting deliveries", `SELECT COUNT(*) FROM (SELECT id FROM webhook_deliveries
		WHERE endpoint = ? AND status = 'pending' AND created_at >= ? LIMIT ?) waiting`,
		[]any{endpoint, since.UnixMilli(), most}, &n)
	return n, err
}

// TrimDeliveries drops deliveries that were finished before a time, and those
// that wait since then for an endpoint that is disabled.
func (w *Webhooks) TrimDeliveries(ctx context.Context, before time.Time) (dropped int64, err error) {
	at := before.UnixMilli()
	const finished = `SELECT id FROM webhook_deliveries WHERE status = ? AND updated_at < ? ORDER BY updated_at LIMIT ?`
	for _, old := range []query{
		{finished, []any{string(webhooks.DeliveryDelivered), at}},
		{finished, []any{string(webhooks.DeliveryFailed), at}},
		{`SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint = e.id
			WHERE e.disabled = 1 AND d.status = ? AND d.updated_at < ? LIMIT ?`, []any{string(webhooks.DeliveryPending), at}},
	} {
		n, err := w.dropAll(ctx, old)
		if dropped += n; err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// dropMost is the most deliveries that one transaction drops.
const dropMost = 500

// dropAll drops the deliveries whose ids a query reads, some at a time. The
// query lacks its limit. It returns how many it dropped, also beside an error.
func (w *Webhooks) dropAll(ctx context.Context, q query) (dropped int64, err error) {
	args := append(slices.Clone(q.args), dropMost)
	for n := dropMost; n == dropMost; dropped += int64(n) {
		if err := w.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "drop deliveries", func(s *sqldb.Session) error {
			ids, err := sqldb.List(ctx, s, q.statement, args, sqldb.Scan1[int64])
			if err != nil {
				return err
			}
			// Ids in a list: MySQL has no DELETE by a subquery of the same
			// table with a limit.
			n = len(ids)
			for len(ids) > 0 {
				k := sqldb.Chunk(len(ids), dropMost)
				if err := s.Do(ctx, `DELETE FROM webhook_deliveries WHERE id IN (`+sqldb.Repeat("?", k)+`)`, anys(ids[:k])...); err != nil {
					return err
				}
				ids = ids[k:]
			}
			return nil
		}); err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// storedSecrets are the secrets of an endpoint as they are stored.
type storedSecrets struct{ id, secret, old string }

func (w *Webhooks) storedSecrets(ctx context.Context) ([]storedSecrets, error) {
	return sqldb.ReadList(ctx, w.db, "read encrypted secrets", `SELECT id, secret, old_secret FROM webhook_endpoints ORDER BY id`, nil,
		func(rows *sql.Rows, s *storedSecrets) error { return rows.Scan(&s.id, &s.secret, &s.old) })
}

// CheckKeys returns an error of keyring.ErrNoKey when a secret is encrypted under a key that
// is not there. A node that starts without it could not sign what it posts.
func (w *Webhooks) CheckKeys(ctx context.Context) error {
	all, err := w.storedSecrets(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		for _, text := range []string{s.secret, s.old} {
			if _, err := w.keys.Open(text, secretPlace(s.id)); err != nil {
				return fmt.Errorf("the secret of the webhook endpoint %s: %w", s.id, err)
			}
		}
	}
	return nil
}

// CheckRing returns an error of keyring.ErrNoKey when something in the ledger is encrypted under a key that a ring does
// not have: the ring must not take the place of that of Options.Keys.
func (l *Ledger) CheckRing(ctx context.Context, keys *keyring.Ring) error {
	w := &Webhooks{db: l.db, keys: keys}
	return errors.Join(w.CheckKeys(ctx), l.checkItemKeys(ctx, &keyring.Equals{Ring: keys}))
}

// Reencrypt stores every secret under the first key, or plain where there is none, and returns
// how many it changed. It may run beside nodes that have the old keys and the new one, and may
// be repeated. A secret that is changed meanwhile is left to the next run.
func (w *Webhooks) Reencrypt(ctx context.Context) (changed int, err error) {
	all, err := w.storedSecrets(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, s := range all {
		if w.keys.Current(s.secret) && w.keys.Current(s.old) {
			continue
		}
		place := secretPlace(s.id)
		secret, err := w.keys.Open(s.secret, place)
		old, oldErr := w.keys.Open(s.old, place)
		if err := errors.Join(err, oldErr); err != nil {
			// The others are stored all the same.
			errs = append(errs, fmt.Errorf("the secret of the webhook endpoint %s: %w", s.id, err))
			continue
		}
		err = w.db.Write(ctx, "encrypt a secret", func(tx *sqldb.Session) error {
			n, err := tx.Exec(ctx, `UPDATE webhook_endpoints SET secret = ?, old_secret = ? WHERE id = ? AND secret = ? AND old_secret = ?`,
				w.keys.Seal(secret, place), w.keys.Seal(old, place), s.id, s.secret, s.old)
			changed += int(n)
			return err
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, errors.Join(errs...)
}
