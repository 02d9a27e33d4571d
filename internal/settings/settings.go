// Package settings fills one documented struct of settings from flags, the
// environment, a file and defaults, lists every fault at once, and remembers
// where each value came from.
//
// A field takes part when it has a `key` tag, such as
//
//	Drain time.Duration `key:"drain" default:"10s" min:"0s" max:"10m" arg:"TIME" doc:"How long …"`
//
// The key names the setting in the file; the flag is the key with hyphens, the
// variable is the prefix and the key in capitals. Fields are string, bool, int,
// int64, time.Duration, or []string: its flag may be repeated, and in text,
// the environment's say, its values stand apart by spaces. Other tags: oneof (words, by commas), secret (never
// shown), shown (what the docs say instead of an empty default).
package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Prefix begins the name of every environment variable of a setting.
const Prefix = "DIBS_"

// Setting is one field of the struct as its tags describe it.
type Setting struct {
	// Key names it in the file, in snake_case.
	Key string
	// Default is its value as text; empty is the zero value.
	Default string
	// Shown is what people are told of an empty default.
	Shown string
	// Doc is one or more full sentences; Arg is what the value is called.
	Doc, Arg string
	// OneOf are the words allowed, nil for any; Min and Max bound numbers and
	// durations, empty for no bound.
	OneOf    []string
	Min, Max string
	// Secret values are masked wherever settings are shown.
	Secret bool

	kind  reflect.Type
	index int
}

var durationType = reflect.TypeFor[time.Duration]()

// isList reports whether the setting has any number of values.
func (s *Setting) isList() bool { return s.kind.Kind() == reflect.Slice }

// Flag is the setting's flag, without the hyphens before it.
func (s *Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Env is the setting's environment variable.
func (s *Setting) Env() string { return Prefix + strings.ToUpper(s.Key) }

// Limits says in words what values are allowed; empty for any.
func (s *Setting) Limits() string {
	switch {
	case len(s.OneOf) > 0:
		last := len(s.OneOf) - 1
		return strings.Join(s.OneOf[:last], ", ") + " or " + s.OneOf[last]
	case s.kind.Kind() == reflect.Bool:
		return "true or false"
	case s.Min != "" && s.Max != "":
		return "from " + s.Min + " to " + s.Max
	case s.Min != "":
		return "at least " + s.Min
	case s.Max != "":
		return "at most " + s.Max
	}
	return ""
}

// Describe lists the settings of a struct, given as a pointer to it, in the
// order of its fields. It panics on a tag that cannot be read: that is a fault
// of the program.
func Describe(of any) []Setting {
	t := reflect.TypeOf(of).Elem()
	var list []Setting
	for i := range t.NumField() {
		f := t.Field(i)
		key, ok := f.Tag.Lookup("key")
		if !ok {
			continue
		}
		s := Setting{
			Key: key, Default: f.Tag.Get("default"), Shown: f.Tag.Get("shown"), Doc: f.Tag.Get("doc"), Arg: f.Tag.Get("arg"),
			Min: f.Tag.Get("min"), Max: f.Tag.Get("max"), Secret: f.Tag.Get("secret") == "true", kind: f.Type, index: i,
		}
		if words := f.Tag.Get("oneof"); words != "" {
			s.OneOf = strings.Split(words, ",")
		}
		for _, text := range []string{s.Default, s.Min, s.Max} {
			if _, err := s.parse(text); text != "" && err != nil {
				panic(fmt.Sprintf("settings: field %s: %q: %v", f.Name, text, err))
			}
		}
		list = append(list, s)
	}
	return list
}

// parse reads a value of the setting's type; an empty text is the zero value.
func (s *Setting) parse(text string) (reflect.Value, error) {
	v := reflect.New(s.kind).Elem()
	switch {
	case s.kind.Kind() == reflect.String:
		v.SetString(text)
	case s.isList():
		for _, one := range strings.Fields(text) {
			v.Set(reflect.Append(v, reflect.ValueOf(one)))
		}
	case text == "":
	case s.kind == durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return v, fmt.Errorf("must be a duration such as 10s or 1m30s")
		}
		v.SetInt(int64(d))
	case s.kind.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return v, fmt.Errorf("must be true or false")
		}
		v.SetBool(b)
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, s.kind.Bits())
		if err != nil {
			return v, fmt.Errorf("must be a whole number")
		}
		v.SetInt(n)
	default:
		panic("settings: fields of type " + s.kind.String() + " are not known")
	}
	return v, nil
}

// check parses a value and holds it against the limits.
func (s *Setting) check(text string) (reflect.Value, error) {
	v, err := s.parse(text)
	if err != nil {
		return v, err
	}
	if len(s.OneOf) > 0 {
		if slices.Contains(s.OneOf, text) {
			return v, nil
		}
		return v, fmt.Errorf("must be %s", s.Limits())
	}
	if !v.CanInt() {
		return v, nil
	}
	for _, bound := range []struct {
		text  string
		below bool
	}{{s.Min, true}, {s.Max, false}} {
		if bound.text == "" {
			continue
		}
		limit, err := s.parse(bound.text)
		if err != nil {
			return v, err
		}
		if bound.below && v.Int() < limit.Int() || !bound.below && v.Int() > limit.Int() {
			return v, fmt.Errorf("must be %s", s.Limits())
		}
	}
	return v, nil
}

// AddFlags adds the flags of the settings named by keys to a set. The flags
// hold text: Load parses all sources in one way.
func AddFlags(fs *pflag.FlagSet, of any, keys ...string) {
	wanted := make(map[string]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	for _, s := range Describe(of) {
		if !wanted[s.Key] {
			continue
		}
		delete(wanted, s.Key)
		fs.Var(&flagValue{text: s.Default, arg: s.arg(), words: s.OneOf, list: s.isList()}, s.Flag(), s.usage())
		if s.kind.Kind() == reflect.Bool {
			fs.Lookup(s.Flag()).NoOptDefVal = "true"
		}
	}
	if len(wanted) > 0 {
		panic(fmt.Sprintf("settings: there are no settings %v", wanted))
	}
}

func (s *Setting) usage() string {
	first, _, _ := strings.Cut(s.Doc, ". ")
	first = strings.TrimSuffix(first, ".")
	if s.Default == "" && s.Shown != "" {
		first += " (default " + s.Shown + ")"
	}
	return first
}

func (s *Setting) arg() string {
	if s.kind.Kind() == reflect.Bool {
		return "bool"
	}
	return s.Arg
}

// flagValue is a flag that keeps its text.
type flagValue struct {
	text, arg string
	words     []string
	// list says that each use adds a value.
	list, used bool
}

// Set implements pflag.Value.
func (v *flagValue) Set(text string) error {
	if v.list && v.used {
		text = v.text + " " + text
	}
	v.text, v.used = text, true
	return nil
}

// Words are what the flag takes; none for any text.
func (v *flagValue) Words() []string { return v.words }

// String implements pflag.Value.
func (v *flagValue) String() string { return v.text }

// Type implements pflag.Value: what the value is called in the help.
func (v *flagValue) Type() string { return v.arg }
