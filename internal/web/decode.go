package web

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// Decoder decodes the JSON bodies of one type by the schema that documents it.
type Decoder struct {
	schema   *huma.Schema
	registry huma.Registry
	check    func(into any) error
}

// NewDecoder returns the decoder of a type, whose schema it adds to a registry.
// check validates the values of a body, and may be nil: it is called for bodies
// whose form is wrong already, so that the answer lists every fault at once.
func NewDecoder[T any](r huma.Registry, check func(*T) error) Decoder {
	d := Decoder{schema: r.Schema(reflect.TypeFor[T](), true, ""), registry: r}
	if check != nil {
		d.check = func(into any) error { return check(into.(*T)) }
	}
	return d
}

// Decode reads raw into a pointer of the decoder's type and returns the body as maps and slices too. It
// refuses what encoding/json lets pass: unknown names, names in another case,
// names given twice, and anything after the value. The *dibs.Error lists every
// fault of the form.
func (d Decoder) Decode(raw []byte, into any) (any, error) {
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
	huma.Validate(d.registry, d.schema, path, huma.ModeWriteToServer, value, &res)
	faults := d.unknown(d.schema, value, "", nil)
	for _, err := range res.Errors {
		if f, ok := FaultOf(err); ok {
			faults = append(faults, f)
		}
	}
	if len(faults) > 0 {
		faults = append(faults, d.faultsOfValues(raw, into, faults)...)
		slices.SortStableFunc(faults, func(x, y dibs.Fault) int { return strings.Compare(x.Field, y.Field) })
		return nil, dibs.Invalid(faults...)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, dibs.Invalid(typeFault(err))
	}
	return value, nil
}

// faultsOfValues returns what is wrong with the values of a body whose form is wrong
// already. Values that the form's faults touch are left out, and a value that stops
// encoding/json leaves nothing to be said of the rest.
func (d Decoder) faultsOfValues(raw []byte, into any, form []dibs.Fault) []dibs.Fault {
	if d.check == nil {
		return nil
	}
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, into); err != nil && !errors.As(err, &wrongType) {
		return nil
	}
	var e *dibs.Error
	if !errors.As(d.check(into), &e) {
		return nil
	}
	return slices.DeleteFunc(e.Faults, func(f dibs.Fault) bool {
		return slices.ContainsFunc(form, func(g dibs.Fault) bool {
			return f.Field == g.Field || strings.HasPrefix(f.Field, g.Field+"/") || strings.HasPrefix(g.Field, f.Field+"/")
		})
	})
}

// unknown appends the members that a schema does not have by exactly their name.
func (d Decoder) unknown(schema *huma.Schema, value any, pointer string, fs []dibs.Fault) []dibs.Fault {
	for schema != nil && schema.Ref != "" {
		schema = d.registry.SchemaFromRef(schema.Ref)
	}
	if list, ok := value.([]any); ok && schema != nil && schema.Items != nil {
		for i, member := range list {
			fs = d.unknown(schema.Items, member, pointer+"/"+strconv.Itoa(i), fs)
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
			fs = d.unknown(property, member, at, fs)
		} else {
			fs = append(fs, dibs.Fault{Field: at, Problem: dibs.Text{EN: "is not a known field", ZH: "是未知字段"}})
		}
	}
	return fs
}

// typeFault turns an error of encoding/json into a fault that does not speak of Go.
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
