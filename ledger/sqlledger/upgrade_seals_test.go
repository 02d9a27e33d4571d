package sqlledger_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// forged are the statements by which a person who may write to the database rewrites an entry: with a record of an
// erasure at the end of the chain, an erasure that is done, and seals and hashes that fit.
func forged(t *testing.T, l *sqlledger.Ledger, id string, change func(*access.AdminAction)) []string {
	t.Helper()
	links, err := l.Access.ChainLinks(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var a access.AdminAction
	for _, link := range links {
		if link.Entry != nil && link.Entry.ID == id {
			a = *link.Entry
		}
	}
	change(&a)
	parts := access.SealEntry(&a)
	r := access.NewChainRecord(access.ChainErase, &a, &parts)
	r.Erasure = "e-forged"
	last := links[len(links)-1]
	link, err := r.Link(last.N+1, last.Hash)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := json.Marshal(&parts)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		chained(link, a.ID, ""),
		fmt.Sprintf(`UPDATE audit_head SET n = %d, hash = '%s'`, link.N, link.Hash),
		fmt.Sprintf(`UPDATE audit SET target = '%s', before_json = '%s', chain_n = %d, parts = '%s' WHERE id = '%s'`, a.Target, a.Before, link.N, sealed, a.ID),
		`INSERT INTO erasures (id, user_id, pseudonym, leave_balance, state, step, place, changed, clean_since, waits, erased, requested_at, updated_at, done_at, version, asked_at)
			VALUES ('e-forged', NULL, '', 0, 'done', 'claims', '', 0, 0, '[]', '{}', 1, 1, 1, 1, 1)`,
	}
}

// chained is the statement that adds a link.
func chained(l access.ChainLink, entry, salt string) string {
	return fmt.Sprintf(`INSERT INTO audit_chain (n, entry, at, record, salt, prev, hash) VALUES (%d, '%s', 1, '%s', '%s', '%s', '%s')`, l.N, entry, l.Record, salt, l.Prev, l.Hash)
}

// TestChainForged: an entry that is rewritten in the tables, with all that an erasure leaves there, does not pass: no entry
// has asked for the erasure, and it may not change more than who the user is.
func TestChainForged(t *testing.T) {
	for what, change := range map[string]func(*access.AdminAction){
		"of the user": func(a *access.AdminAction) { a.Target = "/v1/accounts/erased-1/deposits" },
		"of the sum":  func(a *access.AdminAction) { a.Before = []byte(`{"balance":9}`) },
	} {
		eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
			l := openAt(t, url)
			defer closeAll(t, l)
			if err := l.SaveAdminActions(t.Context(), []*access.AdminAction{logged("a-1", time.UnixMilli(1000))}); err != nil {
				t.Fatal(err)
			}
			if r := verified(t, l); !r.Whole {
				t.Fatalf("%+v", r)
			}
			raw(forged(t, l, "a-1", change)...)
			if r := verified(t, l); r.Whole || r.Fault != access.FaultEntry || r.BrokenAt != 3 || r.Entry != "a-1" {
				t.Errorf("a forged erasure %s: %+v", what, r)
			}
		})
	}
}

// TestSealsAfterUpgrade: entries from before they had seals stay checked as they were, and are counted. An erasure that was
// under way goes on: it adds an entry that asks for it, and what it changes has seals from then on.
func TestSealsAfterUpgrade(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		raw(migrationsDown(t, url, 29)...)
		at := time.UnixMilli(1_700_000_000_000).UTC()
		raw(olderLog(t, at)...)
		raw(fmt.Sprintf(`INSERT INTO erasures (id, user_id, pseudonym, leave_balance, state, step, place, changed, clean_since, waits, erased, requested_at, updated_at, done_at, version)
			VALUES ('e-1', '42', 'erased-42', 0, 'waiting', '%s', '', 0, 0, '[]', '{}', 1, 1, 0, 1)`, erasure.EraseAudit))
		l := openAt(t, url)
		defer closeAll(t, l)
		if r := verified(t, l); !r.Whole || r.Entries != 2 || r.Older != 2 {
			t.Fatalf("after the upgrade: %+v", r)
		}
		raw(`UPDATE audit SET before_json = '{"balance":2}' WHERE id = 'a-2'`)
		if r := verified(t, l); r.Whole || r.Entry != "a-2" {
			t.Errorf("an entry of before with another text: %+v", r)
		}
		raw(`UPDATE audit SET before_json = '{"balance":1}' WHERE id = 'a-2'`)
		e, err := l.Erasures.ErasureByID(t.Context(), "e-1")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Erasures.EraseSome(t.Context(), e, nil, at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, l); !r.Whole || r.Entries != 3 || r.Older != 1 || r.Erased != 1 {
			t.Errorf("after the erasure: %+v", r)
		}
		page, err := l.AdminActions(t.Context(), access.AdminActionFilter{}, dibs.Page{})
		if err != nil {
			t.Fatal(err)
		}
		var log []string
		for _, a := range page.Items {
			log = append(log, a.Key+" "+a.Action+" "+a.Target)
		}
		want := "k deposit /v1/accounts/43/deposits, k deposit /v1/accounts/erased-42/deposits, dibs erase-user /v1/erasures/e-1"
		if got := strings.Join(log, ", "); got != want {
			t.Errorf("the log is %s, want %s", got, want)
		}
		raw(`UPDATE audit SET before_json = '{"balance":9}' WHERE id = 'a-1'`)
		if r := verified(t, l); r.Whole {
			t.Errorf("an entry changed after the erasure: %+v", r)
		}
	})
}

// olderLog are the statements that write two entries as they were before records had versions: the digest of a text is its
// HMAC under the salt of the record.
func olderLog(t *testing.T, at time.Time) (statements []string) {
	t.Helper()
	digest := func(text string) string {
		mac := hmac.New(sha256.New, []byte("5a17"))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))
	}
	prev := access.ChainOrigin
	add := func(n int64, r access.ChainRecord) {
		link, err := r.Link(n, prev)
		if err != nil {
			t.Fatal(err)
		}
		salt := ""
		if r.Entry != "" {
			salt = "5a17"
		}
		prev = link.Hash
		statements = append(statements, chained(link, r.Entry, salt))
	}
	add(1, access.ChainRecord{Kind: access.ChainStart})
	for i, user := range []string{"42", "43"} {
		id, n, target := fmt.Sprint("a-", i+1), int64(i+2), "/v1/accounts/"+user+"/deposits"
		add(n, access.ChainRecord{
			Kind: access.ChainBegin, Entry: id, At: at.Format("2006-01-02T15:04:05.000Z"), Key: "k", KeyName: "boss", Role: access.RoleAdmin, Action: "deposit",
			Target: digest(target), Before: digest(`{"balance":1}`),
		})
		statements = append(statements, fmt.Sprintf(`INSERT INTO audit (id, at, actor, actor_name, role, address, request_id, action, target, status, reason, before_json, after_json, chain_n)
			VALUES ('%s', %d, 'k', 'boss', 'admin', '', '', 'deposit', '%s', 0, '', '{"balance":1}', '', %d)`, id, at.UnixMilli(), target, n))
	}
	return append(statements, fmt.Sprintf(`UPDATE audit_head SET n = 3, hash = '%s'`, prev))
}
