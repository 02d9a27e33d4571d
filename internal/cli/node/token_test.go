package node_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/api"
)

// TestToken claims with a token that the verb made.
func TestToken(t *testing.T) {
	_, url := clitest.Serve(t, t.TempDir())
	clitest.Publish(t, clitest.Admin(t, url), "c", 5)
	claim := func(token string) (api.ClaimView, error) {
		c, err := client.New(url, client.Options{Token: token, HTTPClient: http.DefaultClient})
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := c.Claim(t.Context(), "c", 1, "")
		return v, err
	}
	r := clitest.Run(t, clitest.Secrets, "token", "--user", "42", "--ttl", "1m")
	r.Want(t, 0)
	if v, err := claim(strings.TrimSpace(r.Out)); err != nil || v.UserID != "42" {
		t.Errorf("%+v, %v", v, err)
	}
	r = clitest.Run(t, clitest.Secrets, "token", "--count", "3", "--prefix", "p", "--format", "csv")
	r.Want(t, 0)
	rows, err := csv.NewReader(strings.NewReader(r.Out)).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "user" || rows[3][0] != "p3" {
		t.Fatalf("%v, %v", rows, err)
	}
	if v, err := claim(rows[3][1]); err != nil || v.UserID != "p3" {
		t.Errorf("%+v, %v", v, err)
	}
	var object struct{ User, Token string }
	r = clitest.Run(t, clitest.Secrets, "token", "--user", "43", "--output", "json")
	if err := json.Unmarshal([]byte(r.Out), &object); err != nil || object.User != "43" {
		t.Fatalf("%v: %s", err, r.Out)
	}
	if v, err := claim(object.Token); err != nil || v.UserID != "43" {
		t.Errorf("%+v, %v", v, err)
	}
	if r := clitest.Run(t, clitest.Secrets, "token", "--count", "2"); strings.Count(r.Out, "\n") != 2 {
		t.Errorf("two lines are wanted:\n%s", r.Out)
	}
	other := clitest.Run(t, nil, "token", "--user", "42", "--jwt-secret", strings.Repeat("x", 32))
	if _, err := claim(strings.TrimSpace(other.Out)); err == nil {
		t.Error("a token of another secret is taken")
	}
	for args, want := range map[string]string{
		"token": "--user or a --count", "token --user 4,2": "--user must be", "token --user a --count 2": "--user or a --count",
		"token --count -1": "--count must be", "token --count 2 --prefix a/b": "--prefix must be", "token --user a --ttl 0s": "--ttl must be",
		"token --user a --jwt-secret short": "jwt_secret (flag --jwt-secret)", "token --user a --format xml": "must be lines, csv or json",
	} {
		clitest.Run(t, clitest.Secrets, strings.Fields(args)...).Want(t, 2, want)
	}
}
