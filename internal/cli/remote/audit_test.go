package remote_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAuditList finds what the command line did, and searches.
func TestAuditList(t *testing.T) {
	data := t.TempDir()
	clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "viewer", "--data", data).Want(t, 0)
	_, url := clitest.Serve(t, data)
	list := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, clitest.Secrets, append([]string{"audit", "list", "--url", url}, args...)...)
	}
	list().Want(t, 0, "create-key", "the command line on")
	list("--action", "create-key", "--since", "-1h", "--output", "json").Want(t, 0, `"action": "create-key"`)
	list("--action", "none", "--output", "json").Want(t, 0, "[]")
	clitest.Run(t, clitest.Secrets, "campaign", "create", "--id", "noon", "--title", "Noon", "--units", "5", "--ends", "+1h", "--publish", "--url", url).Want(t, 0)
	list("--target", "/v1/campaigns/noon").Want(t, 0, "publish-campaign", "/v1/campaigns/noon/publish")
	if r := list("--limit", "1"); !strings.Contains(r.Err, "dibs: there are more than these 1: a higher --limit shows them") {
		t.Errorf("a list that is cut off has the note %q", r.Err)
	}
	if r := list(); r.Err != "" {
		t.Errorf("a whole list has the note %q", r.Err)
	}
	list("--target", "/v1/campaigns/noo", "--output", "json").Want(t, 0, "[]")
	list("--until", "-1h", "--output", "json").Want(t, 0, "[]")
	list("--since", "yesterday").Want(t, 2, "--since")
	list("--since", "24h").Want(t, 2, "--since 24h lies ahead")
	list("--limit", "0").Want(t, 2, "--limit must be at least 1")
}

// TestAuditVerify checks the log of a server, and an export of it, which is found out when it is
// changed.
func TestAuditVerify(t *testing.T) {
	data := t.TempDir()
	clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "viewer", "--data", data).Want(t, 0)
	_, url := clitest.Serve(t, data)
	audit := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, clitest.Secrets, append([]string{"audit"}, append(args, "--url", url)...)...)
	}
	whole := audit("verify")
	whole.Want(t, 0, "whole", "records           1 to 2")
	head := regexp.MustCompile(`head +(\S+)`).FindStringSubmatch(whole.Out)[1]
	audit("verify", "--known", head, "--output", "json").Want(t, 0, `"whole": true`)
	audit("verify", "--known", "2:"+strings.Repeat("0", 64)).Want(t, 1, "BROKEN", "at record 2", "the admin log was changed")
	audit("verify", "--known", "2").Want(t, 2, "--known")
	export := audit("export")
	export.Want(t, 0, `"n":1`, "create-key")
	file := clitest.WriteFile(t, "audit.jsonl", export.Out)
	audit("verify", "--file", file, "--known", head).Want(t, 0, "whole", "entries           1")
	changed := clitest.WriteFile(t, "audit.jsonl", strings.Replace(export.Out, "create-key", "delete-key", 1))
	audit("verify", "--file", changed).Want(t, 1, "BROKEN", "at record 2")
	audit("verify", "--file", clitest.WriteFile(t, "audit.jsonl", "x\n")).Want(t, 1, "line 1")
}

// TestAuditVerifyFile: to check a file takes no key. One without records, as a failed export leaves, is
// no log that is whole.
func TestAuditVerifyFile(t *testing.T) {
	empty := clitest.WriteFile(t, "audit.jsonl", "")
	r := clitest.Run(t, nil, "audit", "verify", "--file", empty)
	r.Want(t, 1, empty+" has no records of dibs audit export")
	if r.Out != "" {
		t.Errorf("it shows %q", r.Out)
	}
	clitest.Run(t, nil, "audit", "verify", "--file", "none.jsonl").Want(t, 2, "--file: open none.jsonl")
	clitest.Run(t, nil, "audit", "verify").Want(t, 2, "admin_key (not set")
}
