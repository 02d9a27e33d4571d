package main

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
	nodepkg "github.com/dibs-dev/dibs/internal/cli/node"
)

func TestUsage(t *testing.T) {
	execute(t, nil).want(t, 0, "Usage:", "campaign", "serve")
	execute(t, nil, "campaign").want(t, 0, "Usage:", "apply")
	for args, want := range map[string]string{
		"sevre":                  `dibs: there is no command "sevre"; did you mean serve?`,
		"quux":                   `dibs: there is no command "quux"; dibs --help lists what there is`,
		"serve --lisen x":        "dibs: unknown flag: --lisen; dibs serve --help lists the flags",
		"serve extra":            `dibs: unknown command "extra" for "dibs serve"; usage: dibs serve [flags]`,
		"config chekc":           `did you mean check?`,
		"completion tcsh":        `invalid argument "tcsh"`,
		"serve --config nowhere": "dibs: config file: open nowhere: no such file or directory",
	} {
		r := execute(t, nil, strings.Fields(args)...)
		r.want(t, 2, want)
		if strings.Count(r.err, "\n") != 1 || r.out != "" {
			t.Errorf("%s: more than a line:\n%s%s", args, r.out, r.err)
		}
	}
}

func TestVersion(t *testing.T) {
	execute(t, nil, "version").want(t, 0, "v0.0.0-test", runtime.Version())
	r := execute(t, nil, "version", "--output", "json")
	r.want(t, 0)
	var b cli.Build
	if err := json.Unmarshal([]byte(r.out), &b); err != nil || b.Version != "v0.0.0-test" || b.Go != runtime.Version() || b.Commit == "" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestCompletion checks that bash takes the script.
func TestCompletion(t *testing.T) {
	for _, shell := range cli.Shells {
		execute(t, nil, "completion", shell).want(t, 0, "dibs")
	}
	check := exec.Command("bash", "-n")
	check.Stdin = strings.NewReader(execute(t, nil, "completion", "bash").out)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestToken claims with a token that the verb made.
func TestToken(t *testing.T) {
	_, url := startServe(t, t.TempDir())
	publish(t, admin(t, url), "c", 5)
	claim := func(token string) (dibs.ClaimView, error) {
		c, err := client.New(url, client.Options{Token: token, HTTPClient: http.DefaultClient})
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := c.Claim(t.Context(), "c", 1, "")
		return v, err
	}
	r := execute(t, secrets, "token", "--user", "42", "--ttl", "1m")
	r.want(t, 0)
	if v, err := claim(strings.TrimSpace(r.out)); err != nil || v.UserID != "42" {
		t.Errorf("%+v, %v", v, err)
	}
	r = execute(t, secrets, "token", "--count", "3", "--prefix", "p", "--format", "csv")
	r.want(t, 0)
	rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "user" || rows[3][0] != "p3" {
		t.Fatalf("%v, %v", rows, err)
	}
	if v, err := claim(rows[3][1]); err != nil || v.UserID != "p3" {
		t.Errorf("%+v, %v", v, err)
	}
	if r := execute(t, secrets, "token", "--count", "2"); strings.Count(r.out, "\n") != 2 {
		t.Errorf("two lines are wanted:\n%s", r.out)
	}
	other := execute(t, nil, "token", "--user", "42", "--jwt-secret", strings.Repeat("x", 32))
	if _, err := claim(strings.TrimSpace(other.out)); err == nil {
		t.Error("a token of another secret is taken")
	}
	for args, want := range map[string]string{
		"token": "--user or a --count", "token --user 4,2": "--user must be", "token --user a --count 2": "--user or a --count",
		"token --count -1": "--count must be", "token --count 2 --prefix a/b": "--prefix must be", "token --user a --ttl 0s": "--ttl must be",
		"token --user a --jwt-secret short": "jwt_secret (flag --jwt-secret)", "token --user a --format xml": "must be lines or csv",
	} {
		execute(t, secrets, strings.Fields(args)...).want(t, 2, want)
	}
}

// TestKeys makes, lists and revokes keys beside a running server.
func TestKeys(t *testing.T) {
	data := t.TempDir()
	execute(t, nil, "key", "list", "--data", data).want(t, 1, "there is no ledger")
	_, url := startServe(t, data)
	create := func(name string) nodepkg.KeyView {
		t.Helper()
		r := execute(t, nil, "key", "create", "--name", name, "--data", data, "--output", "json")
		r.want(t, 0)
		var v nodepkg.KeyView
		if err := json.Unmarshal([]byte(r.out), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	kept, revoked := create("kept"), create("revoked")
	if !strings.HasPrefix(kept.Secret, "dibs_") || len(kept.Secret) < 37 || kept.Secret == revoked.Secret {
		t.Errorf("the secrets %q and %q", kept.Secret, revoked.Secret)
	}
	execute(t, nil, "key", "create", "--name", "seen", "--data", data).want(t, 0, "secret  dibs_", "shown this once")
	execute(t, nil, "key", "revoke", revoked.ID, "--data", data).want(t, 0)
	execute(t, nil, "campaign", "list", "--url", url, "--admin-key", kept.Secret).want(t, 0)
	execute(t, nil, "campaign", "list", "--url", url, "--admin-key", revoked.Secret).want(t, 1, "does not take this admin key")
	r := execute(t, nil, "key", "list", "--data", data)
	r.want(t, 0, kept.ID, revoked.ID, "serve")
	if strings.Contains(r.out, "dibs_") {
		t.Errorf("the list shows secrets:\n%s", r.out)
	}
	execute(t, nil, "key", "revoke", "k-nobody", "--data", data).want(t, 1, "There is no API key k-nobody")
	execute(t, nil, "key", "create", "--data", data).want(t, 2, "name is required")
}

// TestMigrate makes the files, and leaves a running server alone.
func TestMigrate(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	execute(t, nil, "migrate", "--check", "--data", data).want(t, 1, "there is no file")
	empty := writeFile(t, "empty.db", "")
	execute(t, secrets, "serve", "--data", t.TempDir(), "--ledger", "sqlite:"+empty, "--migrate=false").want(t, 1, "dibs migrate")
	execute(t, nil, "migrate", "--data", data).want(t, 0, "ledger.db", "journal.db")
	execute(t, nil, "migrate", "--check", "--data", data, "--ledger", "sqlite:"+empty).want(t, 1, "empty.db", "not what this version wants")
	execute(t, nil, "migrate", "--check", "--data", data).want(t, 0)
	startServe(t, data, "--migrate=false")
	execute(t, nil, "migrate", "--data", data).want(t, 1, "is in use by")
}

func TestVerifyNothing(t *testing.T) {
	execute(t, nil, "verify", "--data", t.TempDir()).want(t, 1, "there is nothing to verify")
	execute(t, nil, "verify", "--url", "http://127.0.0.1:1").want(t, 2, "admin_key (not set")
}
