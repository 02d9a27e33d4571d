package campaigns

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

// codesOf reads a file as "line code" texts.
func codesOf(t testing.TB, file string) []string {
	t.Helper()
	var got []string
	if err := eachCode(strings.NewReader(file), func(line int, code string) error {
		got = append(got, fmt.Sprintf("%d %s", line, strings.ReplaceAll(code, badLine, "BAD")))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCodesAreReadLineByLine(t *testing.T) {
	long := strings.Repeat("x", 3*maxCodeLine)
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"plain":                 {"A1\nA2\n", []string{"1 A1", "2 A2"}},
		"no last end":           {"A1\nA2", []string{"1 A1", "2 A2"}},
		"Windows":               {"\ufeffA1\r\nA2\r\n", []string{"1 A1", "2 A2"}},
		"a head":                {"\ufeff\"Code\"\r\nA1\r\n", []string{"2 A1"}},
		"a head later":          {"A1\ncode\n", []string{"1 A1", "2 code"}},
		"blank lines":           {"\n A1 \n\n\t\nA2\n\n", []string{"2 A1", "5 A2"}},
		"quotes":                {"\"A,1\"\n\"A\"\"2\"\n\" A3 \"\n", []string{"1 A,1", "2 A\"2", "3 A3"}},
		"fields":                {"A1,ann\nA2,\n,\nA3\n", []string{"1 BAD", "2 BAD", "3 BAD", "4 A3"}},
		"a quote left open":     {"A1\n\"A2\nA3\n", []string{"1 A1", "2 BAD", "3 A3"}},
		"a quote in the middle": {"A\"1\nA2\n", []string{"1 BAD", "2 A2"}},
		"an empty quote":        {"\"\"\nA2\n", []string{"1 BAD", "2 A2"}},
		"too long":              {"A1\n" + long + "\nA3\n" + long, []string{"1 A1", "2 BAD", "3 A3", "4 BAD"}},
		"nothing":               {"", nil},
		"a head alone":          {"code", nil},
	} {
		if got := codesOf(t, c.file); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestBadFilesNameTheirLines(t *testing.T) {
	many := strings.Repeat("a,b\n", 100)
	for name, c := range map[string]struct {
		file  string
		room  int64
		want  []string
		count int64
	}{
		"good":        {"code\nA1\nA2\n", 2, nil, 2},
		"too many":    {"A1\nA2\nA3\n", 2, []string{""}, 0},
		"none":        {"code\n\n", 2, []string{""}, 0},
		"broken":      {"A1\na,b\nA3\nA\x004\n\xff\xfe\n" + strings.Repeat("x", dibs.MaxItemLen+1), 9, []string{"/lines/2", "/lines/4", "/lines/5", "/lines/6"}, 0},
		"all broken":  {many, 9, nil, 0},
		"UTF-16":      {"\xff\xfeA\x001\x00", 9, []string{"/lines/1"}, 0},
		"a long code": {strings.Repeat("码", dibs.MaxItemLen), 9, nil, 1},
	} {
		count, err := examineCodes(strings.NewReader(c.file), c.room)
		var e *dibs.Error
		var fields []string
		if errors.As(err, &e) {
			for _, f := range e.Faults {
				fields = append(fields, f.Field)
			}
		}
		if name == "all broken" && len(fields) == dibs.MaxListedFaults {
			continue
		}
		if count != c.count || !slices.Equal(fields, c.want) {
			t.Errorf("%s: %d codes, faults of %q, want %d and %q", name, count, fields, c.count, c.want)
		}
	}
}

// FuzzCodeFile: whatever the file, lines come in order, none is empty, and what
// was exported is read back.
func FuzzCodeFile(f *testing.F) {
	for _, seed := range []string{"A1\nA2\n", "\ufeffcode\r\n\"A,1\"\r\n", "\"", "a,b\n\n\"x\"\"y\"", "\x00", strings.Repeat("x", 5000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		last := 0
		var good []string
		if err := eachCode(bytes.NewReader(file), func(line int, code string) error {
			if line <= last || code == "" || line > 1+bytes.Count(file, []byte("\n")) {
				t.Fatalf("line %d after %d: %q", line, last, code)
			}
			if last = line; dibs.IsItem(code) {
				good = append(good, code)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		w := csv.NewWriter(&again)
		w.UseCRLF = len(good)%2 == 0
		records := [][]string{{"code"}}
		for _, code := range good {
			records = append(records, []string{Cell(code)})
		}
		if err := w.WriteAll(records); err != nil {
			t.Fatal(err)
		}
		var back []string
		if err := eachCode(bytes.NewReader(again.Bytes()), func(_ int, code string) error {
			back = append(back, code)
			return nil
		}); err != nil || !slices.Equal(good, back) {
			t.Fatalf("%q is read back as %q: %v", good, back, err)
		}
	})
}
