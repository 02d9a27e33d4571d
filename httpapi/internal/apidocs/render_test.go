package apidocs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// The page shows who may call an operation, by its security, and a command that
// calls it.
func TestAccessAndCommand(t *testing.T) {
	for security, want := range map[string]struct{ access, header string }{
		`null`:                             {everyone, ""},
		`[{},{"apiKey":[]}]`:               {everyoneOrKey, ""},
		`[{"userToken":[]}]`:               {onlyUser, "$TOKEN"},
		`[{"apiKey":[]}]`:                  {onlyKey, "$DIBS_ADMIN_KEY"},
		`[{"userToken":[]},{"apiKey":[]}]`: {userOrKey, "$TOKEN"},
	} {
		var op map[string]any
		if err := json.Unmarshal([]byte(`{"security":`+security+`}`), &op); err != nil {
			t.Fatal(err)
		}
		access := accessOf(op)
		line := curlLine("POST", "/v1/claims/{id}/cancel", access, `{"a":1}`)
		if access != want.access || !strings.Contains(line, `-X POST "$DIBS_URL/v1/claims/$CLAIM/cancel"`) || !strings.Contains(line, `-d '{"a":1}'`) ||
			strings.Contains(line, "Authorization") != (want.header != "") || !strings.Contains(line, want.header) {
			t.Errorf("%s: %s, %s", security, access, line)
		}
	}
}

func TestTypeName(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`:                                "string",
		`{"type":["integer","null"]}`:                      "integer or null",
		`{"type":"string","format":"date-time"}`:           "time",
		`{"type":"array","items":{"type":"string"}}`:       "list of string",
		`{"$ref":"#/components/schemas/Money"}`:            "Money",
		`{"anyOf":[{"$ref":"#/x/Money"},{"type":"null"}]}`: "Money or null",
		`{"type":"string","enum":["a","b",null]}`:          "a | b",
	} {
		var s map[string]any
		if err := json.Unmarshal([]byte(schema), &s); err != nil {
			t.Fatal(err)
		}
		if got := typeName(s); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

// Texts are shown as text, with `words` as code.
func TestProse(t *testing.T) {
	if got := prose("a `<b>` & c"); got != "a <code>&lt;b&gt;</code> &amp; c" {
		t.Error(got)
	}
}

// The policy allows the style and the script that stand in the page, as they stand
// there, and no other.
func TestPolicy(t *testing.T) {
	page, err := Render(map[string]any{"info": map[string]any{"title": "<script>alert(1)</script>"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"style", "script"} {
		all := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllSubmatch(page, -1)
		if len(all) != 1 || len(all[0][1]) == 0 || !strings.Contains(Policy, tag+"-src "+hashOf(string(all[0][1]))+";") {
			t.Errorf("%d of %s, not as the policy %s", len(all), tag, Policy)
		}
	}
	if strings.Contains(Policy, "unsafe") || regexp.MustCompile(` (style|on\w+)=`).Match(page) {
		t.Error("the page has what the policy forbids")
	}
}
