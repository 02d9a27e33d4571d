package sqlledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// TestServerReadOnly: a server that does not write, as a replica, says so and
// what to do, whether the schema is there or not.
func TestServerReadOnly(t *testing.T) {
	eachServer(t, func(t *testing.T, s *servers.Server) {
		ctx := t.Context()
		url, name := s.DatabaseFor(t)
		other, otherName := s.DatabaseFor(t)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		j := openJournalAt(t, url)
		must(errors.Join(j.Close(), openAt(t, url).Close()))
		on, off := []string{"ALTER DATABASE %s SET default_transaction_read_only = on"}, []string{"ALTER DATABASE %s RESET default_transaction_read_only"}
		if strings.HasPrefix(url, "mysql") {
			// Who has every right writes all the same.
			must(s.Exec("", "CREATE USER IF NOT EXISTS plain IDENTIFIED BY 'plain-pw'"))
			defer func() { must(s.Exec("", "DROP USER plain")) }()
			asPlain := strings.NewReplacer(servers.User+":"+servers.Password, "plain:plain-pw")
			url, other = asPlain.Replace(url), asPlain.Replace(other)
			on, off = []string{"GRANT ALL ON %s.* TO plain", "SET GLOBAL read_only = 1"}, []string{"SET GLOBAL read_only = 0"}
		}
		each := func(statements []string) {
			for _, statement := range statements {
				for _, n := range []string{name, otherName} {
					must(s.Exec("", strings.ReplaceAll(statement, "%s", n)))
				}
			}
		}
		defer each(off)
		each(on)
		refusal := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "use the address of the one that is written to") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := sqlledger.Open(ctx, other, sqlledger.Options{Migrate: true})
		refusal("an empty database", err)
		_, err = sqlledger.OpenJournal(ctx, other, sqlledger.Options{Migrate: true})
		refusal("an empty database for the journal", err)
		j = openJournalAt(t, url)
		defer closeAll(t, j)
		_, err = j.Acquire(ctx, "the test")
		refusal("acquiring", err)
		l := openAt(t, url)
		defer closeAll(t, l)
		if _, err := l.Keys(ctx); err != nil {
			t.Errorf("reading: %v", err)
		}
		err = l.InsertProduct(ctx, &dibs.Product{ID: "p"})
		refusal("writing", err)
		var said *dibs.Error
		if !errors.As(err, &said) || said.Effect != dibs.EffectNone {
			t.Errorf("writing: %v", err)
		}
	})
}

// TestServerTooLarge: what is larger than the server takes is refused as a
// whole, says what to do, and hurts nothing else.
func TestServerTooLarge(t *testing.T) {
	s, err := servers.MariaDB()
	if err != nil {
		t.Fatal(err)
	}
	url, _ := s.DatabaseFor(t)
	j := openJournalAt(t, url)
	defer closeAll(t, j)
	generation, err := j.Acquire(t.Context(), "the test")
	if err != nil {
		t.Fatal(err)
	}
	large := oneRow(1)
	large[0].Payload = make([]byte, 17<<20)
	err = j.Append(t.Context(), generation, large)
	if err == nil || !strings.Contains(err.Error(), "max_allowed_packet") {
		t.Errorf("17 MiB: %v", err)
	}
	for seq, size := range []int{15 << 20, 1} {
		row := oneRow(uint32(seq + 1))
		row[0].Payload = make([]byte, size)
		if err := j.Append(t.Context(), generation, row); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	rows, err := j.ReadRows(t.Context(), dibs.ShardID{Campaign: 1}, dibs.Cursor{}, 10)
	if err != nil || len(rows) != 2 || len(rows[0].Payload) != 15<<20 {
		t.Error(fmt.Sprintf("%d rows", len(rows)), err)
	}
}
