package node_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/webhooks"
)

// TestLedgerReencrypt exchanges the key of the ledger: the secret of a webhook is in no file as it
// is, and a server without the key does not start.
func TestLedgerReencrypt(t *testing.T) {
	data := t.TempDir()
	first, next := strings.Repeat("0a", 32), strings.Repeat("1b", 32)
	keys := clitest.WriteFile(t, "keys", first+"\n")
	p, url := clitest.Serve(t, data, "--ledger-key-file", keys)
	e, err := clitest.Admin(t, url).Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: "https://hooks.example/x"}, "")
	if err != nil || e.Secret == "" {
		t.Fatalf("%+v, %v", e, err)
	}
	p.Stop(t)
	for _, name := range []string{"ledger.db", "ledger.db-wal"} {
		if raw, err := os.ReadFile(filepath.Join(data, name)); err == nil && bytes.Contains(raw, []byte(e.Secret)) {
			t.Errorf("%s has the secret as it is", name)
		}
	}
	clitest.Run(t, clitest.Secrets, "serve", "--data", data, "--listen", "127.0.0.1:0").Want(t, 1, "encrypted under a key that is not there", "ledger_key_file")
	both := clitest.WriteFile(t, "keys", next+"\n"+first+"\n")
	reencrypt := []string{"ledger", "reencrypt", "--data", data, "--ledger-key-file"}
	clitest.Run(t, nil, append(reencrypt, both)...).Want(t, 0, "changed  1")
	clitest.Run(t, nil, append(reencrypt, both, "--output", "json")...).Want(t, 0, `"changed": 0`)
	clitest.Run(t, nil, append(reencrypt, keys)...).Want(t, 1, "encrypted under a key that is not there")
	clitest.Run(t, nil, append(reencrypt, clitest.WriteFile(t, "keys", "short"))...).Want(t, 2, "ledger_key_file (flag --ledger-key-file): line 1 must be 64 hexadecimal digits")
	clitest.Serve(t, data, "--ledger-key-file", clitest.WriteFile(t, "keys", next))
}

// TestLedgerRenewKeys: after the verb a server makes its keys anew, but for that of claim ids.
func TestLedgerRenewKeys(t *testing.T) {
	data := t.TempDir()
	secrets := func() map[string]string {
		t.Helper()
		p, _ := clitest.Serve(t, data)
		p.Stop(t)
		l, err := sqlledger.OpenSQLite(t.Context(), filepath.Join(data, "ledger.db"), sqlledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for name, size := range map[string]int{"gate": 32, "limit": 16, "session": 32, "claim-id": 16} {
			secret, err := l.Secret(t.Context(), name, size)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(secret)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := secrets()
	clitest.Run(t, nil, "ledger", "renew-keys", "--data", data).Want(t, 0, "renewed  3")
	clitest.Run(t, nil, "ledger", "renew-keys", "--data", data, "--output", "json").Want(t, 0, `"renewed": 0`)
	l, err := sqlledger.OpenSQLite(t.Context(), filepath.Join(data, "ledger.db"), sqlledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := l.AdminActions(t.Context(), access.AdminActionFilter{Action: "renew-keys"}, dibs.Page{Limit: 10})
	if err := errors.Join(err, l.Close()); err != nil || len(log.Items) != 2 || !strings.HasPrefix(log.Items[0].Key, "cli") {
		t.Errorf("the log of administrators has %v, %v", log.Items, err)
	}
	for name, now := range secrets() {
		if (now == before[name]) != (name == "claim-id") {
			t.Errorf("the key %s is the one of before: %v", name, now == before[name])
		}
	}
}

// TestCodesAreEncrypted: with encrypt_codes no code is in a file of the server, and a code is imported, claimed, found
// by a till, redeemed and exported as without it, before and after the key was exchanged.
func TestCodesAreEncrypted(t *testing.T) {
	const given = "SPRING-GIVEN-%"
	data := t.TempDir()
	first, next := strings.Repeat("0a", 32), strings.Repeat("1b", 32)
	keys := clitest.WriteFile(t, "keys", first+"\n")
	p, url := clitest.Serve(t, data, "--ledger-key-file", keys, "--encrypt-codes")
	api := clitest.Admin(t, url)
	if _, err := api.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "spring", Kind: dibs.Coupon, Title: "spring", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Items: []string{given + "1", given + "2"}},
	}, ""); err != nil {
		t.Fatal(err)
	}
	if v, _, err := api.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader(given+"3\n"), "", nil); err != nil || v.Imported != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, _, err := api.Campaigns.ImportCodes(t.Context(), "spring", strings.NewReader(given+"2\n"), "", nil); err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("a code was imported twice: %v", err)
	}
	if _, err := api.Campaigns.Publish(t.Context(), "spring"); err != nil {
		t.Fatal(err)
	}
	redeemed := claimAndRedeem(t, url, "42")
	p.Stop(t)
	files, err := filepath.Glob(filepath.Join(data, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err != nil || bytes.Contains(raw, []byte(given)) {
			t.Errorf("%s has a code as it is: %v", file, err)
		}
	}
	clitest.Run(t, clitest.Secrets, "serve", "--data", data, "--listen", "127.0.0.1:0").Want(t, 1, "encrypted under a key that is not there", "ledger_key_file")
	clitest.Run(t, clitest.Secrets, "serve", "--data", data, "--encrypt-codes").Want(t, 2, "encrypt_codes", "needs ledger_key_file")

	both := clitest.WriteFile(t, "keys", next+"\n"+first+"\n")
	reencrypt := []string{"ledger", "reencrypt", "--data", data, "--ledger-key-file", both}
	clitest.Run(t, nil, append(reencrypt, "--encrypt-codes", "--plain-codes")...).Want(t, 2, "--plain-codes")
	clitest.Run(t, nil, reencrypt...).Want(t, 0, "items    3")
	clitest.Run(t, nil, append(reencrypt, "--encrypt-codes", "--output", "json")...).Want(t, 0, `"items": 0`)
	p, url = clitest.Serve(t, data, "--ledger-key-file", clitest.WriteFile(t, "keys", next), "--encrypt-codes")
	if other := claimAndRedeem(t, url, "43"); other == redeemed {
		t.Errorf("%s was given twice", other)
	}
	if left, err := clitest.Admin(t, url).Campaigns.UnclaimedCodes(t.Context(), "spring", dibs.Page{}); err != nil || len(left.Items) != 1 || !strings.HasPrefix(left.Items[0].Code, given) {
		t.Errorf("exported: %+v, %v", left, err)
	}
	p.Stop(t)
	clitest.Run(t, nil, append(reencrypt, "--plain-codes")...).Want(t, 0, "items    3")
	p, url = clitest.Serve(t, data)
	claimAndRedeem(t, url, "44")
	p.Stop(t)
	clitest.Run(t, nil, append(reencrypt, "--encrypt-codes")...).Want(t, 0, "items    3")
}

// claimAndRedeem has a user claim a code, and a till find its claim and redeem it. It returns the code.
func claimAndRedeem(t *testing.T, url, user string) string {
	t.Helper()
	claim, _, err := clitest.User(t, url, user).Claim(t.Context(), "spring", 1, "")
	if err != nil || len(claim.Items) != 1 {
		t.Fatalf("%+v, %v", claim, err)
	}
	api, code := clitest.Admin(t, url), claim.Items[0]
	clitest.Until(t, "settled", func() bool {
		found, err := api.Orders.List(t.Context(), dibs.OrderQuery{CampaignID: "spring", Code: code}, dibs.Page{})
		return err == nil && len(found.Items) == 1 && found.Items[0].ID == claim.ID
	})
	if v, _, err := api.Orders.Redeem(t.Context(), claim.ID, dibs.RedeemSpec{Ref: "till " + user}); err != nil || len(v.Items) != 1 || v.Items[0] != code {
		t.Errorf("redeemed: %+v, %v", v, err)
	}
	return code
}
