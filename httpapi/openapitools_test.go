package httpapi_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schemaWords are the keywords of JSON Schema that the document uses. Tools refuse
// a document with a word that they do not know.
var schemaWords = []string{
	"$ref", "additionalProperties", "anyOf", "default", "description", "enum", "examples", "format", "items", "maxItems",
	"maxLength", "maximum", "minItems", "minLength", "minimum", "oneOf", "pattern", "properties", "readOnly", "required", "type",
	"uniqueItems", "exclusiveMinimum", "const", "contentEncoding", "deprecated", "title", "writeOnly", "maxProperties",
}

// TestDocumentForTools: linters and generators of clients take the document: it
// names a server and a license, paths end as tools want them to, what a path names
// is a parameter, ids are unique, and references lead to schemas.
func TestDocumentForTools(t *testing.T) {
	doc := newStack(t, nil).ask("GET", "/openapi.json", "").json
	if servers, ok := doc["servers"].([]any); !ok || len(servers) != 1 || at(doc, "info", "license")["identifier"] != "Apache-2.0" {
		t.Errorf("the servers are %v, the license %v", doc["servers"], at(doc, "info", "license"))
	}
	ids := map[string]string{}
	paths := at(doc, "paths")
	if len(paths) < 50 {
		t.Errorf("only %d paths", len(paths))
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if path != "/" && strings.HasSuffix(path, "/") {
			t.Errorf("%s ends in a slash", path)
		}
		for method, op := range at(paths, path) {
			id := fmt.Sprint(at(op)["operationId"])
			if before, twice := ids[id]; twice {
				t.Errorf("%s %s and %s are both called %s", method, path, before, id)
			}
			ids[id] = method + " " + path
			for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
				if !hasParameter(op, m[1]) {
					t.Errorf("%s %s does not define the parameter %s", method, path, m[1])
				}
			}
		}
	}
	schemas := at(doc, "components", "schemas")
	if len(schemas) < 50 {
		t.Errorf("only %d schemas", len(schemas))
	}
	for name, schema := range schemas {
		strange(t, schemas, name, schema)
	}
}

// hasParameter reports whether an operation defines a parameter of its path.
func hasParameter(op any, name string) bool {
	list, _ := at(op)["parameters"].([]any)
	return slices.ContainsFunc(list, func(p any) bool { return at(p)["in"] == "path" && at(p)["name"] == name && at(p)["required"] == true })
}

// strange reports words of a schema that are none of JSON Schema, and references
// that lead nowhere.
func strange(t *testing.T, schemas map[string]any, where string, schema any) {
	for word, v := range at(schema) {
		if !slices.Contains(schemaWords, word) {
			t.Errorf("%s: %s is no word of a schema", where, word)
		}
		if ref, ok := v.(string); ok && word == "$ref" && schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
			t.Errorf("%s: %s leads nowhere", where, ref)
		}
	}
	for name, property := range at(schema, "properties") {
		strange(t, schemas, where+"/"+name, property)
	}
	for _, one := range []string{"items", "additionalProperties"} {
		if below := at(schema, one); below != nil {
			strange(t, schemas, where+"/"+one, below)
		}
	}
}
