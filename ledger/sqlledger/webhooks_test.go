package sqlledger_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/webhooks"
)

// withKeys opens a ledger with keys that are made of these bytes; without any, with none.
func withKeys(t *testing.T, url string, bytesOf ...byte) *sqlledger.Ledger {
	t.Helper()
	ring := &keyring.Ring{}
	var secrets [][]byte
	for _, b := range bytesOf {
		secrets = append(secrets, bytes.Repeat([]byte{b}, keyring.KeySize))
	}
	err := ring.Set(secrets)
	l, openErr := sqlledger.Open(t.Context(), url, sqlledger.Options{Keys: ring})
	if err := errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, l) })
	return l
}

// secretsIn are the secrets of all endpoints as a ledger shows them.
func secretsIn(t *testing.T, l *sqlledger.Ledger) (all string) {
	t.Helper()
	list, err := l.Endpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		all += list[i].Secret + " " + list[i].OldSecret + " "
	}
	return all
}

// addEndpoint stores an endpoint with a secret.
func addEndpoint(t *testing.T, l *sqlledger.Ledger, id, secret string) {
	t.Helper()
	at := time.UnixMilli(1000)
	if err := l.InsertEndpoint(t.Context(), &webhooks.WebhookEndpoint{ID: id, URL: "https://example.com", Secret: secret, OldSecret: secret, Version: 1, CreatedAt: at, UpdatedAt: at}); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsAreEncrypted: under keys no secret of a webhook is in the database as it is; plain
// ones from before are read; keys are exchanged while others are read; and without the key a
// start is refused, while the endpoint can still be shown and changed.
func TestSecretsAreEncrypted(t *testing.T) {
	const plain, fresh = "whsec_cGxhaW4gcGxhaW4gcGxhaW4gcGxhaW4gcGxhaW4hISE=", "whsec_ZnJlc2ggZnJlc2ggZnJlc2ggZnJlc2ggZnJlc2ghISE="
	want := strings.Repeat(plain+" ", 2) + strings.Repeat(fresh+" ", 2)
	eachDatabase(t, func(t *testing.T, url string, _ func(...string)) {
		ctx := t.Context()
		none, one, both := withKeys(t, url), withKeys(t, url, 1), withKeys(t, url, 2, 1)
		addEndpoint(t, none, "a", plain)
		addEndpoint(t, one, "b", fresh)
		if got := secretsIn(t, one); got != want {
			t.Errorf("with the key: %s", got)
		}
		if got := secretsIn(t, none); !strings.Contains(got, plain) || strings.Contains(got, fresh) || none.CheckKeys(ctx) == nil {
			t.Errorf("without it: %s", got)
		}
		for _, changed := range []int{2, 0} {
			if n, err := both.Reencrypt(ctx); err != nil || n != changed {
				t.Errorf("%d were encrypted anew, want %d: %v", n, changed, err)
			}
		}
		next := withKeys(t, url, 2)
		if got := secretsIn(t, next); got != want || next.CheckKeys(ctx) != nil {
			t.Errorf("with the next key: %s", got)
		}
		if got := secretsIn(t, none); strings.Contains(got, plain) {
			t.Errorf("the plain one is still there: %s", got)
		}
		_, err := one.Reencrypt(ctx)
		for _, err := range []error{err, one.CheckKeys(ctx)} {
			if !errors.Is(err, keyring.ErrNoKey) {
				t.Errorf("with the key from before: %v", err)
			}
		}
		// A change by a node without the key does not lose the secret.
		e, err := one.Endpoint(ctx, "b")
		if err != nil {
			t.Fatal(err)
		}
		e.Description = "changed"
		if err := one.UpdateEndpoint(ctx, e); err != nil {
			t.Fatal(err)
		}
		if got := secretsIn(t, next); got != want {
			t.Errorf("after a change without the key: %s", got)
		}
	})
}
