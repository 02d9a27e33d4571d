// Package deploy_test checks the files beside it with the programs that they
// are for.
package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// TestRedisConf starts Redis with the file: the engine finds nothing to mend.
func TestRedisConf(t *testing.T) {
	path, err := filepath.Abs("redis.conf")
	must(t, err)
	r, err := servers.StartRedis(t.TempDir(), "--include", path)
	must(t, err)
	t.Cleanup(r.Kill)
	findings, err := redisengine.Check(t.Context(), redisengine.Config{URL: r.URL()})
	must(t, err)
	well(t, findings)
}

// TestDatabaseSettings starts the databases with the files: the ledger finds
// nothing to mend.
func TestDatabaseSettings(t *testing.T) {
	for file, start := range map[string]func(string) (*servers.Server, func() error, error){
		"my.cnf": servers.MariaDBWith, "postgresql.conf": servers.PostgresWith,
	} {
		t.Run(file, func(t *testing.T) {
			s, stop, err := start(file)
			must(t, err)
			defer func() { must(t, stop()) }()
			url, name, _, err := s.Database()
			must(t, err)
			well(t, sqlledger.Examine(t.Context(), url))
			db, err := s.Open(name)
			must(t, err)
			defer func() { must(t, db.Close()) }()
			// One that neither the tests' own settings nor the defaults have.
			question := map[string]string{"my.cnf": "SELECT @@max_connections", "postgresql.conf": "SELECT current_setting('checkpoint_timeout')"}[file]
			want := map[string]string{"my.cnf": "300", "postgresql.conf": "15min"}[file]
			var got string
			if err := db.QueryRowContext(t.Context(), question).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, %v: the file was not read", question, got, err)
			}
		})
	}
}

func well(t *testing.T, findings []dibs.Finding) {
	t.Helper()
	if len(findings) < 4 {
		t.Errorf("only this was examined: %+v", findings)
	}
	for _, f := range findings {
		if !f.OK() {
			t.Errorf("%s", f)
		}
	}
}

// variables are the names of all settings in the environment, by the reference
// that the program prints.
func variables(t *testing.T) []string {
	return regexp.MustCompile(`DIBS_[A-Z_]+`).FindAllString(read(t, "../../docs/CONFIG.md"), -1)
}

// TestCompose reads the file as compose would, as far as a parser can: what is
// named is there, and every setting is one.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Volumes     []string
			Build       struct{ Context, Dockerfile string }
			DependsOn   any `yaml:"depends_on"`
		}
		Volumes map[string]any
	}
	text := read(t, "compose.yaml")
	must(t, yaml.Unmarshal([]byte(text), &compose))
	nodes := 0
	for name, s := range compose.Services {
		if s.Build.Dockerfile != "" {
			nodes++
			if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Error(err)
			}
			if len(s.Environment) < 5 {
				t.Errorf("%s has the environment %v", name, s.Environment)
			}
		}
		for key := range s.Environment {
			if strings.HasPrefix(key, "DIBS_") && !slices.Contains(variables(t), key) {
				t.Errorf("%s: %s is no setting", name, key)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, known := compose.Volumes[from]
			if _, err := os.Stat(from); !known && err != nil {
				t.Errorf("%s mounts %s: %v", name, from, err)
			}
		}
	}
	if nodes != 3 {
		t.Errorf("%d nodes", nodes)
	}
	example := read(t, ".env.example")
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+):\?\}`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(example, "\n"+m[1]+"=\n") {
			t.Errorf(".env.example lacks %s", m[1])
		}
	}
}

// TestEnvironmentFile checks the names in the node's settings.
func TestEnvironmentFile(t *testing.T) {
	for line := range strings.Lines(read(t, "dibs.env.example")) {
		if name, _, ok := strings.Cut(line, "="); ok && !slices.Contains(variables(t), name) {
			t.Errorf("%s is no setting", name)
		}
	}
}

// TestUnit lets systemd read the unit, with a program that is there in place
// of dibs.
func TestUnit(t *testing.T) {
	unit := filepath.Join(t.TempDir(), "dibs.service")
	text := strings.ReplaceAll(read(t, "dibs.service"), "/usr/local/bin/dibs", "/bin/true")
	must(t, os.WriteFile(unit, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "dibs.service") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDockerfile holds the image to what it promises.
func TestDockerfile(t *testing.T) {
	text := read(t, "Dockerfile")
	for _, line := range []string{"CGO_ENABLED=0", "FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/dibs"]`} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s", line)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../../go.mod"))
	if !strings.Contains(text, fmt.Sprintf("FROM golang:%s ", version[1])) {
		t.Errorf("the image is not built with Go %s", version[1])
	}
}
