package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestOutput shows one answer in both forms, and refuses another form.
func TestOutput(t *testing.T) {
	verb := func() *cobra.Command {
		return WithOutput(&cobra.Command{Use: "show", RunE: func(cmd *cobra.Command, _ []string) error {
			table := NewTable()
			table.Add("url", "http://x?a&b")
			return Show(cmd, map[string]string{"url": "http://x?a&b"}, table)
		}})
	}
	for _, c := range []struct {
		args []string
		out  string
		code int
	}{
		{[]string{"show"}, "url  http://x?a&b\n", ExitOK},
		{[]string{"show", "--output", "table"}, "url  http://x?a&b\n", ExitOK},
		{[]string{"show", "--output", "json"}, "{\n  \"url\": \"http://x?a&b\"\n}\n", ExitOK},
		{[]string{"show", "--output", "xml"}, "", ExitUsage},
	} {
		if out, errOut, code := invoke(t, verb(), nil, c.args...); out != c.out || code != c.code {
			t.Errorf("%v: %q, %q, %d", c.args, out, errOut, code)
		}
	}
}

// TestJSONLines writes each value on a line of its own.
func TestJSONLines(t *testing.T) {
	out, _, _ := invoke(t, &cobra.Command{Use: "tail", RunE: func(cmd *cobra.Command, _ []string) error {
		lines := JSONLines(cmd)
		for _, v := range []string{"<a>", "b"} {
			if err := lines.Encode(v); err != nil {
				return err
			}
		}
		return nil
	}}, nil, "tail")
	if out != "\"<a>\"\n\"b\"\n" {
		t.Errorf("%q", out)
	}
}
