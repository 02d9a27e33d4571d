package remote_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// Shells complete the ids that the server knows, and the words that its verbs take. A server
// that is away has none, and costs no error.
func TestCompletionOfIDsAndWords(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "campaign", "create", "--id", "phone-noon", "--title", "Phone", "--units", "5", "--ends", "+1h", "--publish").Want(t, 0)
	users := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(users, []byte("ann\nbob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, env, "audience", "import", "vip", users).Want(t, 0)
	made := clitest.Run(t, env, "events", "endpoints", "create", "https://shop.example/hook", "--output", "json")
	made.Want(t, 0)
	var hook struct{ ID string }
	if err := json.Unmarshal([]byte(made.Out), &hook); err != nil || hook.ID == "" {
		t.Fatalf("%v: %s", err, made.Out)
	}
	revoked := clitest.Run(t, env, "token", "revoke", "--user", "42", "--output", "json")
	revoked.Want(t, 0)
	var revocation struct{ ID string }
	if err := json.Unmarshal([]byte(revoked.Out), &revocation); err != nil || revocation.ID == "" {
		t.Fatalf("%v: %s", err, revoked.Out)
	}
	completes(t, env, map[string][]string{
		"audience show ":                          {"vip\t2 users"},
		"events endpoints show ":                  {hook.ID + "\thttps://shop.example/hook"},
		"events deliveries ":                      {hook.ID},
		"events redeliver ":                       {hook.ID},
		"approval approve ":                       {},
		"session end ":                            {},
		"announcement show ":                      {},
		"campaign show ":                          {"phone-noon\tpublished"},
		"claim list --campaign ":                  {"phone-noon\tpublished"},
		"claim list --status ":                    {"pending", "confirmed", "released", "refunded"},
		"claim list --type ":                      {"regular", "flash"},
		"campaign create --kind ":                 {"sale", "coupon"},
		"campaign list --output ":                 {"table", "json"},
		"campaign show phone-noon ":               {},
		"product set mug --status ":               {"on_sale", "off_sale"},
		"campaign announce ":                      {"phone-noon\t"},
		"verify ":                                 {"phone-noon\tpublished"},
		"verify phone-noon ":                      {"phone-noon\tpublished"},
		"rehearse --campaign ":                    {"phone-noon\tpublished"},
		"token allow ":                            {revocation.ID + "\t42"},
		"campaign show --url http://127.0.0.1:1 ": {},
		// Shells complete the names of files themselves.
		"coupon import phone-noon ": {":0\n"},
		"audience import vip ":      {":0\n"},
		"audience import vip f ":    {},
	})
}

// Shells complete the words of flags and settings without a server.
func TestCompletionOfWords(t *testing.T) {
	completes(t, nil, map[string][]string{
		"verify --older-ledger ":      {"continue", "end"},
		"rehearse --kind ":            {"sale", "coupon", "redpacket"},
		"rehearse --scenario ":        {"many-users", "one-user"},
		"rehearse --through ":         {"http", "ws"},
		"plan --shape ":               {"even", "falling", "at-once"},
		"plan --engine ":              {"memory", "redis"},
		"plan --ledger ":              {"sqlite", "mysql", "postgres"},
		"plan --durability ":          {"relaxed", "durable"},
		"lab --preset ":               {"rush", "one-user", "packets"},
		"events deliveries --status ": {"pending", "delivered", "failed"},
		"redpacket split --split ":    {"double_mean", "line_cut", "equal"},
		"campaign create --room ":     {"fifo", "shuffle", "lottery"},
		"serve --log-level ":          {"debug", "info", "warn", "error"},
		"serve --durability ":         {"none", "relaxed", "durable", "replicated", "ledgered"},
	})
}

// completes holds what shells are given for some command lines; none for no word.
func completes(t *testing.T, env []string, lines map[string][]string) {
	t.Helper()
	for args, want := range lines {
		words := append([]string{"__complete"}, strings.Split(args, " ")...)
		r := clitest.Run(t, env, words...)
		if r.Code != 0 {
			t.Errorf("%s: %d, %s", args, r.Code, r.Err)
		}
		for _, w := range want {
			if !strings.Contains(r.Out, w) {
				t.Errorf("%s: no %q in\n%s", args, w, r.Out)
			}
		}
		if len(want) == 0 && !strings.HasPrefix(r.Out, ":") {
			t.Errorf("%s completes to\n%s", args, r.Out)
		}
	}
}
