package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type sample struct {
	Word   string        `key:"a_word" default:"x" oneof:"x,y" doc:"A word. And more | of it."`
	Text   string        `key:"text" shown:"nothing" arg:"TEXT" doc:"A text."`
	Secret string        `key:"secret" secret:"true" doc:"A secret."`
	Yes    bool          `key:"yes" default:"false" doc:"Yes or no."`
	Count  int           `key:"count" default:"5" min:"1" max:"9" doc:"A count."`
	Big    int64         `key:"big" default:"5000000000" doc:"A big count."`
	Wait   time.Duration `key:"wait" default:"1s" max:"1m" doc:"A time."`
	Other  string
}

// load reads the sources; flags are a command line.
func load(t *testing.T, file, environ, flags string) (sample, Values, []Fault) {
	t.Helper()
	var s sample
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs, &s, "a_word", "text", "secret", "yes", "count", "big", "wait")
	if err := fs.Parse(strings.Fields(flags)); err != nil {
		t.Fatal(err)
	}
	src := Sources{Flags: fs, Environ: strings.Split(environ, " ")}
	if file != "" {
		src.File = filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(src.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values, faults, err := Load(&s, src)
	if err != nil {
		t.Fatal(err)
	}
	return s, values, faults
}

func TestDefaults(t *testing.T) {
	s, values, faults := load(t, "", "", "")
	if want := (sample{Word: "x", Count: 5, Big: 5_000_000_000, Wait: time.Second}); s != want || len(faults) > 0 {
		t.Errorf("%+v, %v", s, faults)
	}
	for _, v := range values {
		if v.IsSet() || v.From != "default" {
			t.Errorf("%s comes from %s", v.Key, v.From)
		}
	}
	if values.Of("other") != nil {
		t.Error("a field without a key is a setting")
	}
}

func TestEverySourceWinsOverTheOnesBelow(t *testing.T) {
	s, values, faults := load(t, `{"a_word": "y", "text": "file", "count": 2, "yes": true, "wait": null}`,
		"DIBS_TEXT=env DIBS_COUNT=3 DIBS_YES= OTHER=1 DIBS_BIG", "--count 4 --wait=30s")
	if want := (sample{Word: "y", Text: "env", Yes: true, Count: 4, Big: 5_000_000_000, Wait: 30 * time.Second}); s != want || len(faults) > 0 {
		t.Errorf("%+v, %v", s, faults)
	}
	for key, from := range map[string]string{"a_word": "file ", "text": "env DIBS_TEXT", "yes": "file ", "count": "flag --count", "wait": "flag --wait", "big": "default"} {
		if v := values.Of(key); !strings.HasPrefix(v.From, from) {
			t.Errorf("%s comes from %q, want %q", key, v.From, from)
		}
	}
}

func TestSwitch(t *testing.T) {
	if s, _, _ := load(t, "", "", "--yes"); !s.Yes {
		t.Error("--yes alone says no")
	}
	if s, _, _ := load(t, "yes: true", "", "--yes=false"); s.Yes {
		t.Error("--yes=false says yes")
	}
}

func TestAllFaultsAreTold(t *testing.T) {
	_, _, faults := load(t, "a-word: y\ncount: 10\nsecret: 12\ntext: {a: b}\nzzz: 1\n", "DIBS_WAIT=61s DIBS_BIG=1.5", "--a-word=z --yes=perhaps")
	var told []string
	for _, f := range faults {
		told = append(told, f.String())
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{
		"there is no such setting; did you mean a_word?", "zzz (file ", `a_word (flag --a-word): must be x or y, not "z"; did you mean x?`,
		"count (file ", `must be from 1 to 9, not "10"`, "secret (file ", "must be text: put it in quotes", "text (file ", "must be a single value",
		`yes (flag --yes): must be true or false, not "perhaps"`, `wait (env DIBS_WAIT): must be at most 1m, not "61s"`,
		"big (env DIBS_BIG): must be a whole number",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing says %q:\n%s", want, all)
		}
	}
	if len(faults) != 9 {
		t.Errorf("%d faults, want 9:\n%s", len(faults), all)
	}
}

func TestUnreadableSources(t *testing.T) {
	for _, content := range []string{"a: [", "- 1", "count: 1\ncount: 2"} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(&sample{}, Sources{File: path})
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, _, err := Load(&sample{}, Sources{File: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that is not there is read")
	}
}

func TestSecretsStaySecret(t *testing.T) {
	_, values, _ := load(t, "", "DIBS_SECRET=hush DIBS_TEXT=db://u:hush@h/d", "")
	if got := values.Of("secret").ShownText(); got != "******** (4 bytes)" {
		t.Errorf("shown as %q", got)
	}
	if got := values.Of("text").ShownText(); got != "db://u:xxxxx@h/d" {
		t.Errorf("shown as %q", got)
	}
	for address, want := range map[string]string{
		"nats://hush@h:4222/dibs": "nats://xxxxx@h:4222/dibs", "tls://hush@h": "tls://xxxxx@h", "nats://u:hush@h": "nats://u:xxxxx@h",
		"postgres://u@h/d?password=hush&sslmode=require": "postgres://u@h/d?password=xxxxx&sslmode=require", "postgres://h/d?sslpassword=hush": "postgres://h/d?sslpassword=xxxxx",
	} {
		_, values, _ = load(t, "", "DIBS_TEXT="+address, "")
		if got := values.Of("text").ShownText(); got != want {
			t.Errorf("shown as %q, want %q", got, want)
		}
	}
	_, values, _ = load(t, "", "DIBS_TEXT=db://u:hush@h:%zz", "")
	if got := values.Of("text").ShownText(); strings.Contains(got, "hush") {
		t.Errorf("shown as %q", got)
	}
}

func TestMarkdown(t *testing.T) {
	md := Markdown(&sample{})
	for _, want := range []string{
		"| `a_word` | `--a-word` | `DIBS_A_WORD` | `x` | x or y | A word. And more \\| of it. |",
		"| `text` | `--text` | `DIBS_TEXT` | `nothing` |  | A text. |",
		"| `count` | `--count` | `DIBS_COUNT` | `5` | from 1 to 9 | A count. |",
	} {
		if !strings.Contains(md, want+"\n") {
			t.Errorf("no row %q:\n%s", want, md)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"log_format", "log_level", "listen", "ledger", "data"}
	for name, want := range map[string]string{
		"log-format": "log_format", "logformat": "log_format", "listne": "listen", "LISTEN": "listen", "leger": "ledger", "dta": "data",
		"zebra": "", "x": "", "journal": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	found := UnknownVariables(&sample{}, []string{"DIBS_CUONT=1", "DIBS_COUNT=1", "DIBS_SERVICE_PORT=1", "CUONT=1", "DIBS_CONFIG=1"}, "DIBS_CONFIG")
	if len(found) != 1 || found["DIBS_CUONT"] != "DIBS_COUNT" {
		t.Errorf("found %v", found)
	}
}

// TestFaultsOfTheProgram: tags and keys that cannot be meant are told at once.
func TestFaultsOfTheProgram(t *testing.T) {
	for name, f := range map[string]func(){
		"a bad default": func() {
			Describe(&struct {
				N int `key:"n" default:"x"`
			}{})
		},
		"an unknown type": func() {
			Describe(&struct {
				F float64 `key:"f" default:"1"`
			}{})
		},
		"an unknown key": func() { AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError), &sample{}, "nothing") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nobody complains")
				}
			}()
			f()
		})
	}
}

// TestVariableFiles: a variable that ends in _FILE names a file with the value, which is
// weaker than the variable itself and stronger than the settings file.
func TestVariableFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config, text, count := file("dibs.yaml", "text: config\n"), file("text", "from a file\r\n"), file("count", "9\n")
	load := func(environ ...string) (s sample, from string) {
		t.Helper()
		values, faults, err := Load(&s, Sources{File: config, Environ: environ})
		if err != nil || len(faults) > 0 {
			t.Fatalf("%v, %v", faults, err)
		}
		return s, values.Of("text").From
	}
	if s, from := load("DIBS_TEXT_FILE="+text, "DIBS_COUNT_FILE="+count); s.Text != "from a file" || s.Count != 9 || from != "file "+text {
		t.Errorf("%+v from %s", s, from)
	}
	if s, from := load("DIBS_TEXT_FILE="+text, "DIBS_TEXT=itself"); s.Text != "itself" || from != "env DIBS_TEXT" {
		t.Errorf("%+v from %s", s, from)
	}
	if s, _ := load("DIBS_TEXT_FILE="); s.Text != "config" {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{filepath.Join(dir, "none"), file("big", strings.Repeat("x", maxVariableFile+1))} {
		if _, _, err := Load(&sample{}, Sources{Environ: []string{"DIBS_TEXT_FILE=" + bad}}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if found := UnknownVariables(&sample{}, []string{"DIBS_TEXT_FILE=x"}); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}
