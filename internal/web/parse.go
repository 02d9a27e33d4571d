package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
)

// maxDepth bounds how deep a body may nest; no body of the API comes near it.
const maxDepth = 16

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

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// escapePointer makes a name an element of a JSON pointer.
func escapePointer(name string) string { return pointerEscapes.Replace(name) }
