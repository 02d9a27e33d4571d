package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// AssetPrefix begins the address of every asset; the version and the name follow.
const AssetPrefix = "/assets/"

// asset is a file as it is served.
type asset struct {
	kind string
	body []byte
	sum  string
	// packed is the body compressed, made when it is first asked for.
	packed func() []byte
	// imports are the assets that a module imports at once.
	imports []string
}

// kinds are the types of assets by extension. Others are not served.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8",
}

// bare are the package names by which vendored modules import each other. Browsers resolve addresses only, and an
// import map would have to be an inline script.
var bare = map[string]string{
	"preact": "./preact.mjs", "preact/hooks": "./preact-hooks.mjs", "@preact/signals-core": "./signals-core.mjs", "htm": "./htm.mjs",
}

var (
	imported  = regexp.MustCompile(`\b((?:from|import)\s*)"([@./\w-]+)"`)
	sourceMap = regexp.MustCompile(`(?m)//# sourceMappingURL=.*$`)
	// unread are comments of whole lines, types that stand between other words, and indents.
	unread   = regexp.MustCompile(`(?ms)^[ \t]*//[^\n]*$|/\*\*.*?\*/ ?|^[ \t]+`)
	lineEnds = regexp.MustCompile(`[^\n]+`)
)

// collect reads the embedded files and names their version.
func (s *Site) collect() error {
	s.assets = map[string]*asset{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		kind := kinds[path.Ext(name)]
		if err != nil || d.IsDir() || kind == "" {
			return err
		}
		body, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "vendor/") {
			body = relative(body)
		} else if path.Ext(name) == ".js" {
			body = shortened(body)
		}
		s.add(name, kind, body)
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.addTexts(); err != nil {
		return err
	}
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.assets)) {
		fmt.Fprintf(all, "%s %s\n", name, s.assets[name].sum)
	}
	s.version = hex.EncodeToString(all.Sum(nil)[:6])
	return nil
}

// relative replaces the package names in a vendored module by addresses.
func relative(body []byte) []byte {
	body = sourceMap.ReplaceAll(body, nil)
	return imported.ReplaceAllFunc(body, func(m []byte) []byte {
		p := imported.FindSubmatch(m)
		if at := bare[string(p[2])]; at != "" {
			return []byte(string(p[1]) + strconv.Quote(at))
		}
		return m
	})
}

// shortened leaves out of a module of ours what no browser reads: comments, which are a third of it, and indents. Lines
// keep their numbers.
func shortened(body []byte) []byte {
	return unread.ReplaceAllFunc(body, func(c []byte) []byte { return lineEnds.ReplaceAll(c, nil) })
}

func (s *Site) add(name, kind string, body []byte) {
	sum := sha256.Sum256(body)
	a := &asset{kind: kind, body: body, sum: hex.EncodeToString(sum[:12])}
	a.packed = sync.OnceValue(func() []byte { return pack(body) })
	if strings.HasPrefix(kind, "text/javascript") {
		for _, m := range imported.FindAllSubmatch(body, -1) {
			if at := string(m[2]); strings.HasPrefix(at, ".") {
				a.imports = append(a.imports, path.Join(path.Dir(name), at))
			}
		}
	}
	s.assets[name] = a
}

// pack compresses a body.
func pack(body []byte) []byte {
	var b bytes.Buffer
	// Writing to memory never fails, and the level is one that there is.
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

// needs lists what modules import, directly and by others, themselves included; the last one of them is the last of the
// list.
func (s *Site) needs(entries ...string) ([]string, error) {
	seen, list := map[string]bool{}, []string{}
	var visit func(name string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		a := s.assets[name]
		if a == nil {
			return fmt.Errorf("there is no asset %s", name)
		}
		for _, next := range a.imports {
			if err := visit(next); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		list = append(list, name)
		return nil
	}
	for _, entry := range entries {
		if err := visit(entry); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Address is where an asset is served, for good.
func (s *Site) Address(name string) string { return AssetPrefix + s.version + "/" + name }

// Asset serves a file below AssetPrefix; false when there is none, and nothing was sent. The address of another
// version leads to the one that is: a page that an older node sent loads a set of modules that fit together.
func (s *Site) Asset(w http.ResponseWriter, r *http.Request) bool {
	version, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, AssetPrefix), "/")
	a := s.assets[name]
	if a == nil {
		return false
	}
	h := w.Header()
	if version != s.version {
		h["Cache-Control"], h["Location"] = []string{"no-store"}, []string{s.Address(name)}
		w.WriteHeader(http.StatusFound)
		return true
	}
	h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	h["Vary"] = append(h["Vary"], "Accept-Encoding")
	// A picture opened by itself runs nothing either.
	h["Content-Security-Policy"] = []string{s.policy}
	send(w, r, a.kind, a.sum, a.body, a.packed)
	return true
}

// minPacked is the least size in bytes of what is worth compressing.
const minPacked = 512

// send answers with a body, or says that the caller has it. Compressed or not are two representations, each with a
// tag of its own.
func send(w http.ResponseWriter, r *http.Request, kind, sum string, body []byte, packed func() []byte) {
	h := w.Header()
	tag := `"` + sum + `"`
	if len(body) >= minPacked && acceptsGzip(r.Header) {
		body, tag = packed(), `"`+sum+`-gz"`
		h["Content-Encoding"] = []string{"gzip"}
	}
	h["Etag"], h["X-Content-Type-Options"] = []string{tag}, []string{"nosniff"}
	if hasTag(r.Header, tag) {
		delete(h, "Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h["Content-Type"], h["Content-Length"] = []string{kind}, []string{strconv.Itoa(len(body))}
	// A client that went away misses nothing.
	_, _ = w.Write(body)
}

// acceptsGzip reports whether a caller takes gzip.
func acceptsGzip(h http.Header) bool {
	for _, line := range h["Accept-Encoding"] {
		for part := range strings.SplitSeq(line, ",") {
			coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
			if strings.TrimSpace(coding) == "gzip" {
				return strings.ReplaceAll(q, " ", "") != "q=0"
			}
		}
	}
	return false
}

// hasTag reports whether If-None-Match names the tag.
func hasTag(h http.Header, tag string) bool {
	for _, line := range h["If-None-Match"] {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
				return true
			}
		}
	}
	return false
}
