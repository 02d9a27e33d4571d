package sqlledger_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// The test binary starts itself as another process: the environment names the
// part to play and the file to play it on.
const (
	helperPart = "SQLLEDGER_TEST_PART"
	helperPath = "SQLLEDGER_TEST_PATH"
)

var parts = map[string]func(path string) error{
	"own the journal":    ownJournal,
	"fill up a ledger":   fillUpLedger,
	"fill up a journal":  fillUpJournal,
	"own, append, break": ownAndAppend,
	"open and write":     openAndWrite,
}

// helper plays a part when this process was started for one, and reports
// whether it was.
func helper() bool {
	part := os.Getenv(helperPart)
	if part == "" {
		return false
	}
	if err := parts[part](os.Getenv(helperPath)); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	return true
}

// process is a helper that runs until its input ends.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startHelper starts a helper and returns after its first line, which is handed
// back.
func startHelper(t *testing.T, part, path string) (*process, string) {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), helperPart+"="+part, helperPath+"="+path)
	p.Stderr = os.Stderr
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the helper said nothing: %v", err)
	}
	return p, strings.TrimSpace(line)
}

// addressOf is the address of a file, or the address itself.
func addressOf(path string) string {
	if strings.Contains(path, "://") {
		return path
	}
	return "sqlite:" + path
}

// ownJournal holds the journal until the process is killed.
func ownJournal(path string) error {
	j, err := sqlledger.OpenJournal(context.Background(), addressOf(path), sqlledger.Options{Migrate: true})
	if err != nil {
		return err
	}
	generation, err := j.Acquire(context.Background(), "the first process")
	if err != nil {
		return err
	}
	fmt.Println(generation)
	// The lock is a file's, and is given up when the collector closes that.
	defer runtime.KeepAlive(j)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// ownAndAppend appends rows, a line for each that is durable, until the process
// is killed.
func ownAndAppend(path string) error {
	ctx := context.Background()
	j, err := sqlledger.OpenJournal(ctx, addressOf(path), sqlledger.Options{Migrate: true})
	if err != nil {
		return err
	}
	generation, err := j.Acquire(ctx, "the process that is killed")
	if err != nil {
		return err
	}
	for seq := uint32(1); ; seq++ {
		row := dibs.JournalRow{Shard: dibs.ShardID{Campaign: 1}, Epoch: 1, First: seq, Last: seq, Payload: make([]byte, 20_000)}
		if err := j.Append(ctx, generation, []dibs.JournalRow{row}); err != nil {
			return err
		}
		fmt.Println(seq)
	}
}

// openAndWrite opens and migrates a ledger once its input ends, and writes to it.
func openAndWrite(path string) error {
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	l, err := sqlledger.Open(context.Background(), addressOf(path), sqlledger.Options{Migrate: true})
	if err != nil {
		return err
	}
	_, err = l.Secret(context.Background(), "together", 16)
	return errors.Join(err, l.Close())
}
