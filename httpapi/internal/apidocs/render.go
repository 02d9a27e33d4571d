package apidocs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
)

//go:embed docs.html
var pageHTML string

// pageTemplate shows an OpenAPI document to people. It needs no scripts, fonts or
// pictures, and nothing from other servers.
var pageTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{"prose": prose}).Parse(pageHTML))

// page is what the template shows.
type page struct {
	Title, Version, About string
	Groups                []group
	Reasons               []reason
	Schemas               []schema
}

type group struct {
	Name, Description string
	Operations        []operation
}

type operation struct {
	ID, Method, Path, Summary, Description, Access, Curl string
	Params                                               []field
	Body                                                 string
	Answers                                              []answer
}

type field struct {
	Name, Place, Type, Description string
	Required                       bool
}

type answer struct{ Status, Description, Type string }

type schema struct {
	Name   string
	Fields []field
}

type reason struct {
	dibs.ReasonInfo
	First bool
}

// prose escapes a text and shows `words` as code.
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
func object(v any, name string) map[string]any {
	m, _ := v.(map[string]any)
	o, _ := m[name].(map[string]any)
	return o
}

func text(v any, name string) string {
	m, _ := v.(map[string]any)
	s, _ := m[name].(string)
	return s
}

func list(v any, name string) []any {
	m, _ := v.(map[string]any)
	l, _ := m[name].([]any)
	return l
}

// Render returns the page of a document. examples are bodies by operation, as they
// are written.
func Render(doc map[string]any, examples map[string]string) ([]byte, error) {
	info := object(doc, "info")
	p := page{Title: text(info, "title"), Version: text(info, "version"), About: text(info, "description")}
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
	if json.Indent(&indented, []byte(example), "", "  ") == nil {
		d.Body = indented.String()
	}
	d.Curl = curlLine(d.Method, path, d.Access, example)
	responses := object(op, "responses")
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		r := object(responses, status)
		a := answer{Status: status, Description: text(r, "description")}
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
func curlLine(method, path, access, body string) string {
	path = strings.ReplaceAll(path, "/claims/{id}", "/claims/$CLAIM")
	path = strings.ReplaceAll(path, "/products/{id}", "/products/$PRODUCT")
	path = strings.ReplaceAll(path, "{id}", "$CAMPAIGN")
	line := "curl"
	if method != "GET" {
		line += " -X " + method
	}
	line += ` "$DIBS` + path + `"`
	switch access {
	case onlyUser, userOrKey:
		line += ` -H "Authorization: Bearer $TOKEN"`
	case onlyKey:
		line += ` -H "Authorization: Bearer $ADMIN_KEY"`
	}
	if body != "" {
		line += ` -H 'Content-Type: application/json' -d '` + body + `'`
	}
	return line
}

// typeName describes a schema in a word or two.
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
