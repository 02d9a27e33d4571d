package node_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// The data of testdata/upgrade was written by dibs at b7f5ac1; make.sh beside it
// says how. Of 15 claims of each engine the ledger has 9: the rest was in the
// journal alone when that version was killed.
const (
	oldClaims  = 15
	oldSettled = 9
)

// oldClaim is a claim as the older version answered it.
type oldClaim struct {
	Key        string      `json:"key"`
	ID         string      `json:"id"`
	CampaignID string      `json:"campaign_id"`
	UserID     string      `json:"user_id"`
	Status     string      `json:"status"`
	Items      []string    `json:"items"`
	Amount     *dibs.Money `json:"amount"`
}

// oldData reads what an older version left: the claims that it answered, and a
// folder with its files as they were.
func oldData(t *testing.T, engine string) (claims []oldClaim, dir string) {
	t.Helper()
	from, dir := filepath.Join("testdata/upgrade", engine), t.TempDir()
	for _, name := range []string{"ledger", "journal"} {
		dump, err := os.ReadFile(filepath.Join(from, name+".sql"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		inFile(t, filepath.Join(dir, name+".db"), string(dump))
	}
	text, err := os.ReadFile(filepath.Join(from, "claims.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c oldClaim
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		claims = append(claims, c)
	}
	if len(claims) != oldClaims {
		t.Fatalf("%d claims", len(claims))
	}
	return claims, dir
}

// inFile runs statements in a SQLite file.
func inFile(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), statements)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// settled counts the claims in a ledger's file.
func settled(t *testing.T, dir string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "ledger.db"))
	if err == nil {
		err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM claims").Scan(&n)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUpgrade opens what an older version left, killed with claims that were in
// its journal alone: every claim is there, goes on where it was, and a lost
// answer is found by its key.
func TestUpgrade(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		claims, dir := oldData(t, "memory")
		upgraded(t, node.Config{Dir: dir}, claims)
	})
	t.Run("redis", func(t *testing.T) {
		claims, dir := oldData(t, "redis")
		redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(redis.Kill)
		replay(t, redis.Addr(), "testdata/upgrade/redis/redis.resp")
		upgraded(t, node.Config{Dir: dir, Engine: redis.URL()}, claims)
	})
}

// upgraded opens a node on older data and looks at every promise.
func upgraded(t *testing.T, cfg node.Config, old []oldClaim) {
	t.Helper()
	if n := settled(t, cfg.Dir); n != oldSettled {
		t.Fatalf("the older ledger has %d claims, want %d", n, oldSettled)
	}
	if n, err := node.Open(t.Context(), cfg); !errors.Is(err, sqlledger.ErrSchema) {
		t.Fatalf("without leave to migrate: %v, %v", n, err)
	}
	cfg.Migrate = true
	n, err := node.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			// The test's own context has ended by now.
			if err := n.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	for _, want := range old {
		claim, err := n.Claims.Find(t.Context(), want.ID)
		if err != nil {
			t.Fatalf("claim %s of %s: %v", want.ID, want.UserID, err)
		}
		same := claim.UserID == want.UserID && claim.CampaignID == want.CampaignID && claim.Status.String() == want.Status &&
			slices.Equal(claim.Items, want.Items) && (claim.Amount == nil) == (want.Amount == nil) &&
			(claim.Amount == nil || *claim.Amount == *want.Amount)
		if !same {
			t.Errorf("the claim was %+v, and is %+v", want, claim)
		}
		again, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: want.CampaignID, UserID: want.UserID, Key: want.Key})
		if err != nil || !again.Replayed || again.Claim.ID != want.ID {
			t.Errorf("the repeat of %s is %+v, %v", want.ID, again, err)
		}
		more, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: want.CampaignID, UserID: want.UserID, Key: "another"})
		if err != nil || more.Outcome != dibs.LimitReached {
			t.Errorf("another claim of %s: %+v, %v", want.UserID, more, err)
		}
	}
	for _, campaign := range []string{"phones", "spring", "rain"} {
		res, err := n.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: campaign, UserID: "new", Key: "press"})
		if err != nil || res.Outcome != dibs.Granted {
			t.Errorf("a new claim of %s: %+v, %v", campaign, res, err)
		}
	}
	report, err := n.Audit.Verify(t.Context())
	if err != nil || !report.OK || len(report.Campaigns) != 3 {
		t.Errorf("%+v, %v", report, err)
	}
	closed = true
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := settled(t, cfg.Dir); n != oldClaims+3 {
		t.Errorf("in the end the ledger has %d claims, want %d", n, oldClaims+3)
	}
}

// replay sends a file of commands to Redis, as its log has them.
func replay(t *testing.T, address, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lines, n := bufio.NewReader(file), 0
	for command := nextCommand(t, lines); command != nil; command = nextCommand(t, lines) {
		n++
		if command[0] == "SELECT" {
			continue
		}
		if err := client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error(); err != nil {
			t.Fatalf("%q: %v", command, err)
		}
	}
	if n < 20 {
		t.Fatalf("only %d commands", n)
	}
}

// nextCommand reads a command in Redis' protocol; nil at the end.
func nextCommand(t *testing.T, lines *bufio.Reader) (command []string) {
	t.Helper()
	count := func(mark byte) int {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return -1
		}
		n, bad := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err != nil || bad != nil || line[0] != mark {
			t.Fatalf("%q where %c is wanted: %v", line, mark, err)
		}
		return n
	}
	for range count('*') {
		word := make([]byte, count('$')+len("\r\n"))
		if _, err := io.ReadFull(lines, word); err != nil {
			t.Fatal(err)
		}
		command = append(command, string(word[:len(word)-2]))
	}
	return command
}

// TestDowngrade: data of a version that does not exist yet is refused in words
// that say what to do, whatever the settings, and no claim is touched.
func TestDowngrade(t *testing.T) {
	for _, name := range []string{"ledger", "journal"} {
		t.Run(name, func(t *testing.T) {
			_, dir := oldData(t, "memory")
			inFile(t, filepath.Join(dir, name+".db"), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, 1)")
			for _, migrate := range []bool{false, true} {
				_, err := node.Open(t.Context(), node.Config{Dir: dir, Migrate: migrate})
				if !errors.Is(err, sqlledger.ErrSchema) {
					t.Fatalf("migrate %t: %v", migrate, err)
				}
				// Without leave to migrate, the other file's age may be told first.
				if migrate && (!strings.Contains(err.Error(), "9001") || !strings.Contains(err.Error(), "use a newer program")) {
					t.Errorf("the refusal says: %v", err)
				}
			}
			if n := settled(t, dir); n != oldSettled {
				t.Errorf("the ledger has %d claims now", n)
			}
		})
	}
}
