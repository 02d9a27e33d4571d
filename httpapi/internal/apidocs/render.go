package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
)

// The page's own style and script stand in it, so that it is one file without
// requests.
var (
	//go:embed docs.html
	pageHTML string
	//go:embed docs.css
	pageStyle string
	//go:embed docs.js
	pageScript string
)

// Policy lets the page use its own style and script, by their hashes, and nothing
// else. Without the script it has the same content, all of it unfolded.
var Policy = "default-src 'none'; style-src " + hashOf(pageStyle) + "; script-src " + hashOf(pageScript) +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hashOf names a text in a Content-Security-Policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageTemplate shows an OpenAPI document to people. It needs no fonts or pictures, and
// nothing from other servers.
// The template escapes every text; prose is the only one that makes HTML, and escapes
// first.
var pageTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{"prose": prose}).Parse(pageHTML))

// page is what the template shows.
// A page and all below it is made by Render and read by the template, nothing else.
type page struct {
	Title, Version, About string
	Style                 template.CSS
	Script                template.JS
	Groups                []group
	Reasons               []reason
	Schemas               []schema
}

// group is a tag of the document with its operations.
type group struct {
	Name, Description string
	Operations        []operation
}

// operation is a method on a path. Access is one of the words below; Body is its
// example, indented.
type operation struct {
	ID, Method, Path, Summary, Description, Access, Curl string
	Params                                               []field
	Body                                                 string
	Answers                                              []answer
}

// field is a parameter or a member of a schema. Place is where a parameter goes:
// path, query or header.
type field struct {
	Name, Place, Type, Description string
	Required                       bool
}

// answer is a status with what its body is.
type answer struct{ Status, Description, Type string }

// schema is a named type of the document, with its members by name.
type schema struct {
	Name   string
	Fields []field
}

// reason is a reason of a refusal. First says that its word has its anchor here.
type reason struct {
	dibs.ReasonInfo
	First bool
}

// prose escapes a text and shows `words` as code.
// Every second part between backquotes is code; an unpaired one shows the rest as
// code.
func prose(s string) template.HTML {
	parts := strings.Split(html.EscapeString(s), "`")
	var b strings.Builder
	for i, p := range parts {
		if i%2 == 1 {
			p = "<code>" + p + "</code>"
		}
		b.WriteString(p)
	}
	return template.HTML(b.String()) //nolint:gosec // Escaped above.
}

// object reads a member of a JSON object as an object.
// It returns nil where there is no such member: a reading of nil gives nil again, so
// callers need no checks.
func object(v any, name string) map[string]any { return member[map[string]any](v, name) }

func text(v any, name string) string { return member[string](v, name) }

func list(v any, name string) []any { return member[[]any](v, name) }

// member is a member of an object, of no value where there is none of the type.
func member[T any](v any, name string) T {
	m, _ := v.(map[string]any)
	is, _ := m[name].(T)
	return is
}

// Render returns the page of a document. examples are bodies by operation, as they
// are written.
// doc is the document as encoding/json decodes it, and is not changed. Every
// operation must have a tag. Paths, schemas and answers are sorted, so that a
// document has one page.
func Render(doc map[string]any, examples map[string]string) ([]byte, error) {
	info := object(doc, "info")
	p := page{Title: text(info, "title"), Version: text(info, "version"), About: text(info, "description")}
	// Both are files of this package.
	p.Style, p.Script = template.CSS(pageStyle), template.JS(pageScript) //nolint:gosec // See above.
	byTag := map[string][]operation{}
	for _, path := range slices.Sorted(maps.Keys(object(doc, "paths"))) {
		item := object(object(doc, "paths"), path)
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if op := object(item, method); op != nil {
				tag, _ := list(op, "tags")[0].(string)
				byTag[tag] = append(byTag[tag], describe(method, path, op, examples))
			}
		}
	}
	for _, t := range list(doc, "tags") {
		p.Groups = append(p.Groups, group{Name: text(t, "name"), Description: text(t, "description"), Operations: byTag[text(t, "name")]})
	}
	p.Schemas, p.Reasons = describeSchemas(doc), describeReasons()
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("apidocs: %w", err)
	}
	return b.Bytes(), nil
}

// describe turns an operation of the document into one of the page.
func describe(method, path string, op map[string]any, examples map[string]string) operation {
	d := operation{
		ID: text(op, "operationId"), Method: strings.ToUpper(method), Path: path,
		Summary: text(op, "summary"), Description: text(op, "description"), Access: accessOf(op),
	}
	for _, p := range list(op, "parameters") {
		required, _ := p.(map[string]any)["required"].(bool)
		d.Params = append(d.Params, field{
			Name: text(p, "name"), Place: text(p, "in"), Required: required,
			Type: typeName(object(p, "schema")), Description: text(p, "description"),
		})
	}
	example := examples[d.ID]
	var indented bytes.Buffer
	// An example that is no JSON, of a CSV file say, is shown in the command only.
	if json.Indent(&indented, []byte(example), "", "  ") == nil {
		d.Body = indented.String()
	}
	d.Curl = curlLine(d.Method, path, d.Access, example)
	responses := object(op, "responses")
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		r := object(responses, status)
		a := answer{Status: status, Description: text(r, "description")}
		// An answer may be JSON or CSV.
		for _, kind := range slices.Sorted(maps.Keys(object(r, "content"))) {
			a.Type = strings.Trim(a.Type+", "+typeName(object(object(object(r, "content"), kind), "schema")), ", ")
		}
		d.Answers = append(d.Answers, a)
	}
	return d
}

// The names under which documents know the two kinds of token.
const (
	SchemeUser = "userToken"
	SchemeKey  = "apiKey"
)

// The callers of an operation, in the words of the page.
const (
	everyone      = "everyone"
	everyoneOrKey = "everyone; an API key shows more"
	onlyUser      = "user token"
	onlyKey       = "API key"
	userOrKey     = "user token or API key"
)

// accessOf reads the security of an operation.
// A list with an empty entry means that credentials are optional; no list, that none
// are read.
func accessOf(op map[string]any) string {
	var user, admin, none bool
	for _, s := range list(op, "security") {
		m, _ := s.(map[string]any)
		_, u := m[SchemeUser]
		_, a := m[SchemeKey]
		user, admin, none = user || u, admin || a, none || !u && !a
	}
	switch {
	case none:
		return everyoneOrKey
	case user && admin:
		return userOrKey
	case user:
		return onlyUser
	case admin:
		return onlyKey
	}
	return everyone
}

// curlLine returns a command that calls an operation.
// Address, token and ids are variables of the shell, so that commands can be pasted one
// after the other.
func curlLine(method, path, access, body string) string {
	path = strings.NewReplacer("/claims/{id}", "/claims/$CLAIM", "/products/{id}", "/products/$PRODUCT", "{id}", "$CAMPAIGN").Replace(path)
	line := "curl"
	if method != "GET" {
		line += " -X " + method
	}
	line += ` "$DIBS_URL` + path + `"`
	switch access {
	case onlyUser, userOrKey:
		line += ` -H "Authorization: Bearer $TOKEN"`
	case onlyKey:
		line += ` -H "Authorization: Bearer $DIBS_ADMIN_KEY"`
	}
	if body != "" {
		line += ` -H 'Content-Type: application/json' -d '` + body + `'`
	}
	return line
}

// typeName describes a schema in a word or two.
// A reference is the name of its schema, which the page has a heading for.
func typeName(s map[string]any) string {
	switch {
	case s == nil:
		return ""
	case text(s, "$ref") != "":
		ref := text(s, "$ref")
		return ref[strings.LastIndexByte(ref, '/')+1:]
	case s["anyOf"] != nil:
		var names []string
		for _, one := range list(s, "anyOf") {
			names = append(names, typeName(one.(map[string]any)))
		}
		return strings.Join(names, " or ")
	}
	name := text(s, "type")
	if several := list(s, "type"); several != nil {
		words := make([]string, len(several))
		for i, w := range several {
			words[i], _ = w.(string)
		}
		name = strings.Join(words, " or ")
	}
	if items := object(s, "items"); items != nil {
		name = "list of " + typeName(items)
	}
	if f := text(s, "format"); f == "date-time" {
		name = strings.Replace(name, "string", "time", 1)
	}
	if values := list(s, "enum"); values != nil {
		words := make([]string, 0, len(values))
		for _, v := range values {
			if v != nil {
				words = append(words, fmt.Sprint(v))
			}
		}
		name = strings.Join(words, " | ")
	}
	return name
}

// describeSchemas lists the named types by name.
func describeSchemas(doc map[string]any) []schema {
	all := object(object(doc, "components"), "schemas")
	var out []schema
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := schema{Name: name}
		required := list(all[name], "required")
		properties := object(all[name], "properties")
		for _, member := range slices.Sorted(maps.Keys(properties)) {
			p := object(properties, member)
			s.Fields = append(s.Fields, field{
				Name: member, Type: typeName(p), Description: text(p, "description"),
				Required: slices.Contains(required, any(member)),
			})
		}
		out = append(out, s)
	}
	return out
}

// describeReasons lists the reasons. A word that two of them share has one anchor.
// Reason 0 is Granted, which is no refusal.
func describeReasons() []reason {
	var out []reason
	seen := map[string]bool{}
	for i := 1; i < dibs.ReasonCount; i++ {
		info := dibs.Reason(i).Info()
		out = append(out, reason{ReasonInfo: info, First: !seen[info.Word]})
		seen[info.Word] = true
	}
	return out
}
