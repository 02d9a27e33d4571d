package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/settings"
)

// TestPage checks that the reference has every setting in full.
func TestPage(t *testing.T) {
	page := config.Page()
	for _, s := range settings.Describe(&config.Config{}) {
		if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s has no full sentence as its doc", s.Key)
		}
		if !strings.Contains(page, "| `"+s.Key+"` | `--"+s.Flag()+"` | `"+s.Env()+"` | `") {
			t.Errorf("%s is not in the reference with its flag, variable and default", s.Key)
		}
	}
}

// TestConfigPage keeps docs/CONFIG.md equal to what the program prints.
func TestConfigPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	if r := clitest.Run(t, nil, "config", "docs"); r.Code != 0 || r.Out != string(page) {
		t.Errorf("docs/CONFIG.md is not what dibs config docs prints: go run ./cmd/dibs config docs > docs/CONFIG.md")
	}
}
