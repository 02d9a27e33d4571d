package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// maxDepth bounds how deep a body may nest; nothing that is accepted comes
// near it.
const maxDepth = 16

var (
	errWrongType = problem{
		reason: dibs.InvalidRequest, status: http.StatusUnsupportedMediaType,
		detail: dibs.Text{EN: "send the body as Content-Type: application/json", ZH: "请以 Content-Type: application/json 发送请求体"},
	}
	errCutOff = dibs.Fail(dibs.InvalidRequest, dibs.Text{EN: "the body did not arrive in full", ZH: "请求体未完整到达"})
	errUTF8   = dibs.Fail(dibs.InvalidRequest, dibs.Text{EN: "the body is not valid UTF-8", ZH: "请求体不是有效的 UTF-8"})
)

// Error makes a problem an error for the routes that return one.
func (p problem) Error() string { return p.reason.String() + ": " + p.detail.EN }

// tooLarge is the error of a body of more than most bytes.
func tooLarge(most int64) *dibs.Error {
	return dibs.Fail(dibs.TooLarge, dibs.Textf("the body may have at most %d bytes", "请求体最多 %d 字节", most))
}

// isJSON reports whether a Content-Type means JSON; none at all does.
func isJSON(h http.Header) bool {
	v := h["Content-Type"]
	if len(v) == 0 || v[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(v[0])
	return err == nil && kind == "application/json"
}

// readBody reads a JSON body of at most most bytes.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			return nil, tooLarge(most)
		}
		return nil, errCutOff
	}
	if len(raw) > 0 && !isJSON(r.Header) {
		return nil, errWrongType
	}
	return raw, nil
}

// shape decodes bodies of one type, by the schema that documents it.
type shape struct {
	schema   *huma.Schema
	registry huma.Registry
}

func shapeOf[T any](r huma.Registry) shape {
	return shape{schema: r.Schema(reflect.TypeFor[T](), true, ""), registry: r}
}

// decode reads raw into a pointer of the shape's type and returns the body as
// maps and slices too. It refuses what encoding/json lets pass: unknown
// names, names in another case, names given twice, and anything after the
// value. Every fault of the form is reported at once.
func (s shape) decode(raw []byte, into any) (any, error) {
	if !utf8.Valid(raw) {
		return nil, errUTF8
	}
	value, fault := parseJSON(raw)
	if fault != nil {
		return nil, dibs.Invalid(*fault)
	}
	var res huma.ValidateResult
	path := huma.NewPathBuffer(nil, 0)
	path.Push("body")
	huma.Validate(s.registry, s.schema, path, huma.ModeWriteToServer, value, &res)
	faults := s.unknown(s.schema, value, "", nil)
	for _, err := range res.Errors {
		if f, ok := faultOf(err); ok {
			faults = append(faults, f)
		}
	}
	if len(faults) > 0 {
		faults = append(faults, faultsWithin(raw, into, faults)...)
		slices.SortStableFunc(faults, func(x, y dibs.Fault) int { return strings.Compare(x.Field, y.Field) })
		return nil, dibs.Invalid(faults...)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, dibs.Invalid(typeFault(err))
	}
	return value, nil
}

// faultsWithin reports what is wrong with the values of a body whose form is
// wrong already, so that its author hears of everything at once. Values that
// the form's faults touch are left out, and a value that stops the decoding
// leaves nothing to be said of the rest.
func faultsWithin(raw []byte, into any, form []dibs.Fault) []dibs.Fault {
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, into); err != nil && !errors.As(err, &wrongType) {
		return nil
	}
	var err error
	switch spec := into.(type) {
	case *dibs.CampaignSpec:
		_, err = spec.Campaign(time.Now())
	case *dibs.ProductSpec:
		_, err = spec.Product(time.Now())
	}
	var e *dibs.Error
	if !errors.As(err, &e) {
		return nil
	}
	return slices.DeleteFunc(e.Faults, func(f dibs.Fault) bool {
		return slices.ContainsFunc(form, func(g dibs.Fault) bool {
			return f.Field == g.Field || strings.HasPrefix(f.Field, g.Field+"/") || strings.HasPrefix(g.Field, f.Field+"/")
		})
	})
}

// unknown reports the members that a schema does not have, letter by letter.
func (s shape) unknown(schema *huma.Schema, value any, pointer string, fs []dibs.Fault) []dibs.Fault {
	for schema != nil && schema.Ref != "" {
		schema = s.registry.SchemaFromRef(schema.Ref)
	}
	if list, ok := value.([]any); ok && schema != nil && schema.Items != nil {
		for i, member := range list {
			fs = s.unknown(schema.Items, member, pointer+"/"+strconv.Itoa(i), fs)
		}
		return fs
	}
	members, ok := value.(map[string]any)
	if !ok || schema == nil || schema.Properties == nil {
		return fs
	}
	for name, member := range members {
		at := pointer + "/" + escapePointer(name)
		if property, ok := schema.Properties[name]; ok {
			fs = s.unknown(property, member, at, fs)
		} else {
			fs = append(fs, dibs.Fault{Field: at, Problem: dibs.Text{EN: "is not a known field", ZH: "是未知字段"}})
		}
	}
	return fs
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscapes.Replace(name) }

// typeFault turns an error of encoding/json into a fault without Go's words.
func typeFault(err error) dibs.Fault {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		at := ""
		if te.Field != "" {
			at = "/" + strings.ReplaceAll(te.Field, ".", "/")
		}
		if strings.HasPrefix(te.Value, "number") {
			return dibs.Fault{Field: at, Problem: dibs.Text{EN: "must be a whole number that fits", ZH: "必须是范围内的整数"}}
		}
		return dibs.Fault{Field: at, Problem: dibs.Text{EN: "has the wrong type", ZH: "类型错误"}}
	}
	return dibs.Fault{Problem: dibs.Text{
		EN: "a value cannot be read: times look like 2026-12-01T04:00:00Z, durations like 15m",
		ZH: "存在无法读取的值：时间形如 2026-12-01T04:00:00Z，时长形如 15m",
	}}
}

// parseJSON reads one JSON value and nothing after it, refusing objects that
// name a member twice.
func parseJSON(raw []byte) (any, *dibs.Fault) {
	p := parser{dec: json.NewDecoder(bytes.NewReader(raw))}
	value := p.value("", 0)
	if p.fault == nil {
		if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
			p.fail("", dibs.Text{EN: "something follows the JSON value", ZH: "JSON 之后有多余内容"})
		}
	}
	return value, p.fault
}

type parser struct {
	dec   *json.Decoder
	fault *dibs.Fault
}

func (p *parser) fail(at string, t dibs.Text) {
	if p.fault == nil {
		p.fault = &dibs.Fault{Field: at, Problem: t}
	}
}

func (p *parser) token() json.Token {
	t, err := p.dec.Token()
	if err != nil {
		n := p.dec.InputOffset()
		p.fail("", dibs.Textf("the body is not valid JSON near byte %d", "请求体不是有效的 JSON（第 %d 字节附近）", n))
		return nil
	}
	return t
}

// value reads the next value; at is its pointer.
func (p *parser) value(at string, depth int) any {
	t := p.token()
	open, nested := t.(json.Delim)
	if !nested || p.fault != nil {
		return t
	}
	if depth == maxDepth {
		p.fail(at, dibs.Text{EN: "nests too deep", ZH: "嵌套过深"})
		return nil
	}
	if open == '[' {
		list := []any{}
		for p.fault == nil && p.dec.More() {
			list = append(list, p.value(at+"/"+strconv.Itoa(len(list)), depth+1))
		}
		p.token()
		return list
	}
	members := map[string]any{}
	for p.fault == nil && p.dec.More() {
		name, _ := p.token().(string)
		here := at + "/" + escapePointer(name)
		if _, twice := members[name]; twice {
			p.fail(here, dibs.Text{EN: "is given twice", ZH: "重复出现"})
		}
		if p.fault == nil {
			members[name] = p.value(here, depth+1)
		}
	}
	p.token()
	return members
}
