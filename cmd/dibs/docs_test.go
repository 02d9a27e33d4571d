package main

import (
	"os"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
)

// TestConfigPage keeps docs/CONFIG.md equal to what the program prints.
func TestConfigPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	if r := execute(t, nil, "config", "docs"); r.code != cli.ExitOK || r.out != string(page) {
		t.Errorf("docs/CONFIG.md is not what dibs config docs prints: go run ./cmd/dibs config docs > docs/CONFIG.md")
	}
}
