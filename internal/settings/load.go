package settings

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Sources are where values come from, the strongest first.
type Sources struct {
	// Flags are parsed flags; nil for none. Flags of other names are left alone.
	Flags *pflag.FlagSet
	// Environ is the environment as os.Environ gives it. Empty variables count
	// as unset.
	Environ []string
	// File is the path of a YAML (or JSON) file; empty for none.
	File string
}

// Value is a setting's effective value as text, and where it came from.
type Value struct {
	Setting
	Text string
	// From is `default`, `flag --x`, `env DIBS_X` or `file PATH`.
	From string
	// File is the file that a variable names, which has this value alone; empty for a value
	// of another source.
	File string
}

// IsSet reports whether the value was given, by whatever source.
func (v *Value) IsSet() bool { return v.From != fromDefault }

// Fault is one thing wrong with the settings.
type Fault struct {
	// Key is the setting; From is where its value came from.
	Key, From, Problem string
}

// String shows a fault as one line.
func (f Fault) String() string {
	if f.From == "" {
		return f.Key + ": " + f.Problem
	}
	return f.Key + " (" + f.From + "): " + f.Problem
}

const (
	fromDefault = "default"
	// delim separates nested keys. No setting is nested: it is there to tell
	// people where an unknown key stands.
	delim = "."
)

// layer is one source, read.
type layer struct {
	from func(*Setting) string
	ko   *koanf.Koanf
	// files are those of values, by the settings' keys.
	files map[string]string
}

// Load fills the struct that into points to. It returns every setting's value
// with its source, and every fault; the error is for a source that cannot be
// read at all. Fields with a fault keep their zero value.
func Load(into any, src Sources) (Values, []Fault, error) {
	list := Describe(into)
	layers, err := readLayers(list, src)
	if err != nil {
		return nil, nil, err
	}
	faults := unknownKeys(list, layers[1].ko, src.File)
	target := reflect.ValueOf(into).Elem()
	values := make(Values, 0, len(list))
	for _, s := range list {
		v, fault := effective(s, layers)
		if fault == nil {
			parsed, err := s.check(v.Text)
			if err == nil {
				target.Field(s.index).Set(parsed)
			} else {
				fault = &Fault{Key: s.Key, From: v.From, Problem: err.Error() + givenText(v) + meant(v.Text, s.OneOf)}
			}
		}
		if fault != nil {
			faults = append(faults, *fault)
		}
		values = append(values, v)
	}
	return values, faults, nil
}

func givenText(v Value) string {
	if v.Secret {
		return ""
	}
	return fmt.Sprintf(", not %q", v.ShownText())
}

// readLayers reads the sources, the weakest first: defaults, file, files that variables
// name, environment, flags.
func readLayers(list []Setting, src Sources) ([]layer, error) {
	files := variableFiles(list, src.Environ)
	layers := []layer{
		{func(*Setting) string { return fromDefault }, koanf.New(delim), nil},
		{func(*Setting) string { return "file " + src.File }, koanf.New(delim), nil},
		{func(s *Setting) string { return "file " + files[s.Key] }, koanf.New(delim), files},
		{func(s *Setting) string { return "env " + s.Env() }, koanf.New(delim), nil},
		{func(s *Setting) string { return "flag --" + s.Flag() }, koanf.New(delim), nil},
	}
	defaults := make(map[string]any, len(list))
	for i := range list {
		defaults[list[i].Key] = list[i].Default
	}
	if err := layers[0].ko.Load(confmap.Provider(defaults, delim), nil); err != nil {
		return nil, fmt.Errorf("settings: defaults: %w", err)
	}
	if src.File != "" {
		content, err := os.ReadFile(src.File)
		if err != nil {
			return nil, fmt.Errorf("config file: %w", err)
		}
		if err := layers[1].ko.Load(rawbytes.Provider(content), yaml.Parser()); err != nil {
			// The parser's error has several lines.
			return nil, fmt.Errorf("config file %s: %s", src.File, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	contents, err := readFiles(files)
	if err != nil {
		return nil, err
	}
	if err := layers[2].ko.Load(confmap.Provider(contents, delim), nil); err != nil {
		return nil, fmt.Errorf("settings: files of variables: %w", err)
	}
	environ := env.Provider("", env.Opt{
		Prefix: Prefix, EnvironFunc: func() []string { return src.Environ }, TransformFunc: keyOfVariable,
	})
	if err := layers[3].ko.Load(environ, nil); err != nil {
		return nil, fmt.Errorf("settings: environment: %w", err)
	}
	if src.Flags != nil {
		flags := posflag.ProviderWithFlag(src.Flags, delim, nil, func(f *pflag.Flag) (string, any) {
			return strings.ReplaceAll(f.Name, "-", "_"), f.Value.String()
		})
		if err := layers[4].ko.Load(flags, nil); err != nil {
			return nil, fmt.Errorf("settings: flags: %w", err)
		}
	}
	return layers, nil
}

// FileSuffix ends a variable that names a file with a setting's value, as orchestrators
// mount secrets: DIBS_ADMIN_KEY_FILE.
const FileSuffix = "_FILE"

// maxVariableFile bounds such a file in bytes.
const maxVariableFile = 64 << 10

// variableFiles returns the paths of the files that hold values, by the settings' keys. A
// variable that is a setting's own is none of them.
func variableFiles(list []Setting, environ []string) map[string]string {
	keys, own := make(map[string]string, len(list)), make(map[string]bool, len(list))
	for i := range list {
		keys[list[i].Env()+FileSuffix], own[list[i].Env()] = list[i].Key, true
	}
	files := make(map[string]string)
	for _, pair := range environ {
		name, path, _ := strings.Cut(pair, "=")
		if key, ok := keys[name]; ok && !own[name] && path != "" {
			files[key] = path
		}
	}
	return files
}

// readFiles reads the values that files hold.
func readFiles(files map[string]string) (map[string]any, error) {
	values := make(map[string]any, len(files))
	for key, path := range files {
		text, err := ReadValue(path)
		if err != nil {
			return nil, fmt.Errorf("the file of %s: %w", key, err)
		}
		values[key] = text
	}
	return values, nil
}

// ReadValue reads the value that a file holds, without the end of its last line.
func ReadValue(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if len(content) > maxVariableFile {
		return "", fmt.Errorf("%s has more than %d bytes", path, maxVariableFile)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

// keyOfVariable names the setting of a variable; an empty variable has none.
func keyOfVariable(name, value string) (string, any) {
	if value == "" {
		return "", nil
	}
	return strings.ToLower(strings.TrimPrefix(name, Prefix)), value
}

// effective is the value of the strongest source that has one.
func effective(s Setting, layers []layer) (Value, *Fault) {
	for _, l := range slices.Backward(layers) {
		if !l.ko.Exists(s.Key) {
			continue
		}
		v := Value{Setting: s, From: l.from(&s), File: l.files[s.Key]}
		switch raw := l.ko.Get(s.Key).(type) {
		case nil:
			// `key:` without a value says nothing.
			continue
		case []any:
			if text, ok := listText(raw); ok && s.isList() {
				v.Text = text
				break
			}
			return v, &Fault{Key: s.Key, From: v.From, Problem: s.shape()}
		case map[string]any:
			return v, &Fault{Key: s.Key, From: v.From, Problem: "must be a single value"}
		case string:
			v.Text = raw
		default:
			if s.kind.Kind() == reflect.String || s.isList() {
				// YAML reads 0123 as 83, and `on` as true: the text is lost by now.
				return v, &Fault{Key: s.Key, From: v.From, Problem: "must be text: put it in quotes"}
			}
			v.Text = fmt.Sprint(raw)
		}
		return v, nil
	}
	return Value{Setting: s, From: fromDefault}, nil
}

// shape says what form a value must have.
func (s *Setting) shape() string {
	if s.isList() {
		return "must be a list of texts without spaces"
	}
	return "must be a single value"
}

// listText writes a list of texts as one; false when it has anything else, or
// a text with a space.
func listText(list []any) (string, bool) {
	words := make([]string, 0, len(list))
	for _, one := range list {
		word, ok := one.(string)
		if !ok || len(strings.Fields(word)) != 1 {
			return "", false
		}
		words = append(words, word)
	}
	return strings.Join(words, " "), true
}

// unknownKeys reports the keys of the file that name no setting.
func unknownKeys(list []Setting, file *koanf.Koanf, path string) []Fault {
	known := make([]string, len(list))
	for i := range list {
		known[i] = list[i].Key
	}
	var faults []Fault
	for _, key := range slices.Sorted(maps.Keys(file.Raw())) {
		if !slices.Contains(known, key) {
			faults = append(faults, Fault{Key: key, From: "file " + path, Problem: "there is no such setting" + meant(key, known)})
		}
	}
	return faults
}

// UnknownVariables lists the environment's variables that look like misspelt
// settings, each with the name that was probably meant. Others with the prefix
// are none of ours: orchestrators make such names too.
func UnknownVariables(of any, environ []string, others ...string) map[string]string {
	known := slices.Clone(others)
	for _, s := range Describe(of) {
		known = append(known, s.Env(), s.Env()+FileSuffix)
	}
	found := make(map[string]string)
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, Prefix) || slices.Contains(known, name) {
			continue
		}
		if near := Nearest(name, known); near != "" {
			found[name] = near
		}
	}
	return found
}
