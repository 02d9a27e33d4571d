package main

import (
	"os"
	"regexp"
	"testing"
)

// TestMain serves where a test has started this program as a server.
func TestMain(m *testing.M) {
	if kind := os.Getenv(serverEnv); kind != "" {
		exit(serve(kind))
	}
	os.Exit(m.Run())
}

// TestPartsRunSmall runs the parts that need no server of others, with few claims: each checks its
// answers, and prints its table.
func TestPartsRunSmall(t *testing.T) {
	out, err := printed(t, func() error {
		return run(&options{only: "grants,refusals,flat,http", rounds: 1, callers: 1024, claims: 6_000, holders: 6_000})
	})
	if err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{
		`\| durable grants/s, 1024 callers \|.*\n.*\n\| [1-9]\d* \| \d+ \| \d+ \|`,
		`\| refused/s, sold out \|.*\n.*\n\| 16 callers \| [1-9]\d* \| [1-9]\d* \|`,
		`## flat\n\n\|(?:.*\n)+?\|.*\d`,
		`\| refused: sold out, 2000 users press again \| \d+\.\d µs \| \d+\.\d µs \| \d+\.\d\d \|`,
		`\| refused: sold out, every user new \| \d`,
		`\| granted: durable, settling included \| \d`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("it does not print %s:\n%s", want, out)
		}
	}
}
