package node_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// doctor examines with the settings of a data folder, and returns what was found by area and subject.
func doctor(t *testing.T, data string, env []string, args ...string) (r clitest.Result, found map[string]string) {
	t.Helper()
	var u struct {
		OK       bool
		Findings []struct {
			Area string
			dibs.Finding
		}
	}
	r = clitest.Run(t, env, append([]string{"doctor", "--data", data, "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.Out), &u); err != nil {
		t.Fatalf("%v: %s%s", err, r.Out, r.Err)
	}
	found = map[string]string{}
	for _, f := range u.Findings {
		found[f.Area+"/"+f.Subject] = string(f.Standing) + " " + f.Found
	}
	if u.OK != (r.Code == 0) {
		t.Errorf("ok is %v, the exit code %d", u.OK, r.Code)
	}
	return r, found
}

// TestDoctor examines good settings, bad ones, and a folder in use.
func TestDoctor(t *testing.T) {
	data := t.TempDir()
	r, found := doctor(t, data, append(clitest.Secrets, "DIBS_LISTNE=x"))
	r.Want(t, 0)
	for subject, want := range map[string]string{
		"settings/all": "OK serve can start", "settings/doubt": "WARN DIBS_LISTNE is no setting", "engine/owner": "OK no process uses it", "engine/durability": "OK the memory engine commits",
	} {
		if !strings.HasPrefix(found[subject], want) {
			t.Errorf("%s: %q, want %q", subject, found[subject], want)
		}
	}
	r, found = doctor(t, data, nil, "--ledger", "oracle://x")
	r.Want(t, 1, "doctor: 2 of ")
	if !strings.HasPrefix(found["settings/jwt_secret"], "FAIL is required") || !strings.HasPrefix(found["settings/ledger"], "FAIL the address must begin with") || found["settings/all"] != "" {
		t.Errorf("%v", found)
	}
	for subject := range found {
		if strings.HasPrefix(subject, "ledger/") {
			t.Errorf("a ledger without an address is examined: %s", found[subject])
		}
	}
	// Redis cannot be reached, and the file is no ledger for many machines.
	r, found = doctor(t, data, clitest.Secrets, "--engine", "redis://127.0.0.1:1")
	r.Want(t, 1)
	if !strings.HasPrefix(found["ledger/file"], "WARN the ledger is a SQLite file") || !strings.HasPrefix(found["engine/connection"], "FAIL") {
		t.Errorf("%v", found)
	}
	clitest.Serve(t, data)
	if _, found = doctor(t, data, clitest.Secrets); !strings.HasPrefix(found["engine/owner"], "OK in use by process ") {
		t.Errorf("%v", found)
	}
	clitest.Run(t, nil, "doctor", "--data", data).Want(t, 1, "FAIL  settings  jwt_secret", "remedy: correct it", " FAIL (20")
}

// TestDoctorOnDeployments: of several, each finding names its deployment, and one server is not two.
func TestDoctorOnDeployments(t *testing.T) {
	data := t.TempDir()
	r, found := doctor(t, data, clitest.Secrets, "--engine", "redis://127.0.0.1:1", "--engine", "redis://127.0.0.1:2")
	r.Want(t, 1)
	if !strings.HasPrefix(found["engine/connection"], "FAIL redis://127.0.0.1:2: ") || !strings.HasPrefix(found["engine/deployments"], "OK 2") {
		t.Errorf("%v", found)
	}
	server, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	r, found = doctor(t, data, clitest.Secrets, "--engine", server.URL(), "--engine", server.URL()+"/1")
	r.Want(t, 1)
	if want := "FAIL " + server.URL() + " and " + server.URL() + "/1 are the same server"; found["engine/deployments"] != want {
		t.Errorf("%s, want %s", found["engine/deployments"], want)
	}
}
