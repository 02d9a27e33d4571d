package ci_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unrun are the first lines of blocks that pages mark bash, by the reason why no test
// runs them as they stand.
var unrun = map[string][]string{
	"It starts the server that TestPagesRun starts itself.": {
		`DIBS_ADMIN_KEY=dibs-dev-admin-key bin/dibs dev`,
		`DIBS_ADMIN_KEY=a-key-for-this-test dibs dev`,
	},
	"It takes minutes, or hours: soaks and measurements, which other tests run small.": {
		`DIBS_REDIS_ROUNDS=100 DIBS_REDIS_SEED=1 go test -tags soak -count=1 -timeout 1h -v -run TestPowerLossAtAlways ./engine/redisengine`,
		`DIBS_KILL_ROUNDS=150 go test -tags soak -count=1 -timeout 1h -v -run '^TestKillMySQL$' ./cmd/dibs`,
		`DIBS_KILL_ROUNDS=120 go test -tags soak -count=1 -timeout 1h -v -run '^TestChaos$/^ledgered$' ./cmd/dibs`,
		`dibs lab locks`,
		`go run ./bench -only grants,refusals,flat`,
		`go run ./bench -only http`,
		`dibs plan --measure costs.json --data DIR --engine redis://test-redis:6379 --ledger mysql://dibs:PASSWORD@test-db:3306/dibs`,
		`make sim`,
	},
	"It takes minutes, and measures only. No test runs these parts of bench and of screens; make test compiles them.": {
		`go run ./bench`,
		`git worktree add /tmp/before COMMIT && (cd /tmp/before && go build -o /tmp/bench-before ./bench)`,
		`go run ./bench -only settle`,
		`go run ./bench -only holders -holders 10000000`,
		`go run ./bench -only redis`,
		`go run ./bench -only levels`,
		`go run ./bench -only fleet,idle`,
		`go run ./bench -only life,packets -rounds 1`,
		`go run ./bench -only import -rounds 1`,
		`go run ./bench -only gateway -rounds 1`,
		`go run ./bench -only gate,audience`,
		`go run ./bench -only memory`,
		`go run ./bench -only shards,deployments`,
		`go run ./bench -only growth`,
		`make pages`,
	},
	"It needs files beside it; examples/load runs the plan.": {
		`./jmeter.sh -n -t rush.jmx -l out.jtl -Jhost=127.0.0.1 -Jport=8080 -Jadmin_key=a-key-for-this-test`,
	},
	"It needs k6, which Debian does not have; make ecosystem runs the plans.": {
		`ulimit -n 20000`,
		`ADMIN_KEY=a-key-for-this-test URL=http://127.0.0.1:8080 k6 run rush.ws.k6.js`,
	},
	"It changes the machine it runs on: services, packages, containers, other databases.": {
		`cp examples/deploy/.env.example examples/deploy/.env`,
		`make release`,
		`openssl genpkey -algorithm ed25519 -out release.key`,
		`skopeo copy --all oci-archive:$(ls dist/dibs_*_oci.tar) docker://registry.example/dibs:1.0.0`,
		`docker compose -f examples/monitoring/compose.yaml up --detach`,
	},
	"It names servers, people, keys or files that are the reader's own.": {
		`dibs serve --engine redis://r1:6379 --engine rediss://r2:6379 --engine 'redis://s1:26379?master_set=main'`,
		`export DIBS_OIDC_CLIENT_SECRET_FILE=/run/secrets/oidc`,
	},
}

// firstLine returns the first command of a block, without its remark.
func firstLine(block string) string {
	line, _, _ := strings.Cut(block, "\n")
	line, _, _ = strings.Cut(line, "   #")
	return strings.TrimRight(line, " ")
}

// TestUnrunBlocks: a block of commands is run, by the soak at least, or there is a reason why it is not. A
// reason holds for one block, wherever it stands: another one that begins alike needs its own.
func TestUnrunBlocks(t *testing.T) {
	var known []string
	seen := map[string]string{}
	for _, lines := range unrun {
		known = append(known, lines...)
	}
	for _, s := range stages {
		known = append(known, s.blocks...)
	}
	for _, page := range runnable(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks(string(text), "bash") {
			line := firstLine(block)
			if before, ok := seen[line]; ok && before != block {
				t.Errorf("%s: two blocks that differ begin with %s", page, line)
			}
			seen[line] = block
			if !slices.Contains(known, line) {
				t.Errorf("%s: no reason why this is not marked sh, and run: %s", page, line)
			}
		}
	}
	for _, line := range known {
		if _, ok := seen[line]; !ok {
			t.Errorf("no page has the block any more that begins with %s", line)
		}
	}
}

// runnable lists the pages whose blocks marked sh are run. Chinese editions have the same
// blocks.
func runnable(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"../../docs/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is called %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	return pages
}
