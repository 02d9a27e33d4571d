package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

//go:embed docs.html
var docsHTML string

// docsTemplate shows an OpenAPI document to people. It needs no scripts, fonts or
// pictures, and nothing from other servers.
var docsTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{"prose": prose}).Parse(docsHTML))

// serveDocument serves the document and its page for people. It must come after all
// other routes.
func (a *api) serveDocument() error {
	document := operation{method: http.MethodGet, path: "/openapi.json", id: "openapi", tag: tagOps, access: open, summary: "This document"}
	docs := operation{method: http.MethodGet, path: "/docs", id: "docs", tag: tagOps, access: open, summary: "This document for people"}
	a.describePlain(&document, web.TypeJSON[0])
	a.describePlain(&docs, web.TypeHTML[0])
	doc, raw, err := a.JSON()
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	page, err := renderDocs(doc, a.examples)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	a.HandleFunc("GET /openapi.json", a.static(web.TypeJSON, raw))
	a.HandleFunc("GET /docs", a.static(web.TypeHTML, page))
	return nil
}

// docsPolicy lets the page use its own style sheet and nothing else.
const docsPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// static serves a body that does not change while the process runs.
func (a *api) static(contentType []string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"] = contentType
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Cache-Control", "public, max-age=60")
		a.respond.Write(w, body)
	}
}

// docsPage is what the template shows.
type docsPage struct {
	Title, Version, About string
	Groups                []docsGroup
	Reasons               []docsReason
	Schemas               []docsSchema
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description, Access, Curl string
	Params                                               []docsField
	Body                                                 string
	Answers                                              []docsAnswer
}

type docsField struct {
	Name, Place, Type, Description string
	Required                       bool
}

type docsAnswer struct{ Status, Description, Type string }

type docsSchema struct {
	Name   string
	Fields []docsField
}

type docsReason struct {
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

// renderDocs renders the page of a document, with examples of bodies by operation.
func renderDocs(doc map[string]any, examples map[string]string) ([]byte, error) {
	info := object(doc, "info")
	page := docsPage{Title: text(info, "title"), Version: text(info, "version"), About: text(info, "description")}
	byTag := map[string][]docsOperation{}
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
		page.Groups = append(page.Groups, docsGroup{Name: text(t, "name"), Description: text(t, "description"), Operations: byTag[text(t, "name")]})
	}
	page.Schemas, page.Reasons = describeSchemas(doc), describeReasons()
	var b bytes.Buffer
	if err := docsTemplate.Execute(&b, page); err != nil {
		return nil, fmt.Errorf("render the docs: %w", err)
	}
	return b.Bytes(), nil
}

func describe(method, path string, op map[string]any, examples map[string]string) docsOperation {
	d := docsOperation{
		ID: text(op, "operationId"), Method: strings.ToUpper(method), Path: path,
		Summary: text(op, "summary"), Description: text(op, "description"), Access: accessOf(op),
	}
	for _, p := range list(op, "parameters") {
		required, _ := p.(map[string]any)["required"].(bool)
		d.Params = append(d.Params, docsField{
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
		a := docsAnswer{Status: status, Description: text(r, "description")}
		for _, kind := range slices.Sorted(maps.Keys(object(r, "content"))) {
			a.Type = strings.Trim(a.Type+", "+typeName(object(object(object(r, "content"), kind), "schema")), ", ")
		}
		d.Answers = append(d.Answers, a)
	}
	return d
}

// accessOf reads the security of an operation.
func accessOf(op map[string]any) string {
	var user, admin, nobody bool
	for _, s := range list(op, "security") {
		m, _ := s.(map[string]any)
		_, u := m[schemeUser]
		_, a := m[schemeAdmin]
		user, admin, nobody = user || u, admin || a, nobody || !u && !a
	}
	switch {
	case nobody:
		return public.String()
	case user && admin:
		return either.String()
	case user:
		return userOnly.String()
	case admin:
		return adminOnly.String()
	}
	return open.String()
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
	case userOnly.String(), either.String():
		line += ` -H "Authorization: Bearer $TOKEN"`
	case adminOnly.String():
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

func describeSchemas(doc map[string]any) []docsSchema {
	all := object(object(doc, "components"), "schemas")
	var out []docsSchema
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := docsSchema{Name: name}
		required := list(all[name], "required")
		properties := object(all[name], "properties")
		for _, field := range slices.Sorted(maps.Keys(properties)) {
			p := object(properties, field)
			s.Fields = append(s.Fields, docsField{
				Name: field, Type: typeName(p), Description: text(p, "description"),
				Required: slices.Contains(required, any(field)),
			})
		}
		out = append(out, s)
	}
	return out
}

// describeReasons lists the reasons. A word that two of them share has one anchor.
func describeReasons() []docsReason {
	var out []docsReason
	seen := map[string]bool{}
	for i := 1; i < dibs.ReasonCount; i++ {
		info := dibs.Reason(i).Info()
		out = append(out, docsReason{ReasonInfo: info, First: !seen[info.Word]})
		seen[info.Word] = true
	}
	return out
}
