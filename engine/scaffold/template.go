package scaffold

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/source"
)

// template is one of the pipeline files that racflow comes with, on its way to another.
// The first error stays.
type template struct {
	file *hclwrite.File
	name string
	err  error
}

// open reads a file, with another comment in place of the one that it begins with, and
// more variables behind its own.
func open(files fs.FS, name, comment, variables string) *template {
	t := &template{name: name}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.err = err
		return t
	}
	for bytes.HasPrefix(text, []byte("#")) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	before, after, found := bytes.Cut(text, []byte("\nlocals {"))
	if variables != "" {
		if !found {
			t.err = fmt.Errorf("%s has no locals block that the variables stand before", name)
			return t
		}
		text = bytes.Join([][]byte{before, []byte(variables), []byte("locals {"), after}, []byte("\n"))
		text = bytes.Replace(text, []byte("locals {\n"), []byte("locals {"), 1)
	}
	var b bytes.Buffer
	for line := range strings.Lines(comment) {
		b.WriteString(strings.TrimRight("# "+clean(line), " ") + "\n")
	}
	b.Write(text)
	parsed, err := parse(b.Bytes(), name)
	if err != nil {
		t.err = err
		return t
	}
	parsed.forget()
	return parsed
}

// forget drops what the file expects of the data that it comes with.
func (t *template) forget() {
	for _, p := range t.file.Body().Blocks() {
		for _, b := range p.Body().Blocks() {
			if p.Type() == "pipeline" && b.Type() == "expect" {
				p.Body().RemoveBlock(b)
			}
		}
	}
}

func parse(text []byte, name string) (*template, error) {
	file, diags := hclwrite.ParseConfig(text, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("make a pipeline file: %w", diags)
	}
	return &template{file: file, name: name}, nil
}

// clean makes one line of a text, without what a comment or a terminal would obey.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 }), " ")
}

// block finds a block by its type and labels, below others that are given before it as
// type and label.
func (t *template) block(path ...string) *hclwrite.Block {
	if t.err != nil {
		return nil
	}
	body := t.file.Body()
	var found *hclwrite.Block
	for _, step := range path {
		kind, label, _ := strings.Cut(step, " ")
		found = nil
		for _, b := range body.Blocks() {
			if b.Type() == kind && (label == "" || len(b.Labels()) > 0 && b.Labels()[0] == label) {
				found = b
				break
			}
		}
		if found == nil {
			t.err = fmt.Errorf("%s has no block %s", t.name, strings.Join(path, " > "))
			return nil
		}
		body = found.Body()
	}
	return found
}

// set sets an argument of a block to a text, a number or a truth value.
func (t *template) set(argument string, value any, path ...string) {
	b := t.block(path...)
	if b == nil {
		return
	}
	switch v := value.(type) {
	case string:
		b.Body().SetAttributeValue(argument, cty.StringVal(v))
	case bool:
		b.Body().SetAttributeValue(argument, cty.BoolVal(v))
	case int:
		b.Body().SetAttributeValue(argument, cty.NumberIntVal(int64(v)))
	case hclwrite.Tokens:
		b.Body().SetAttributeRaw(argument, v)
	}
}

// remove removes an argument of a block.
func (t *template) remove(argument string, path ...string) {
	if b := t.block(path...); b != nil {
		b.Body().RemoveAttribute(argument)
	}
}

// drop removes a block, with the comment before it.
func (t *template) drop(path ...string) {
	inner := t.block(path...)
	if inner == nil {
		return
	}
	body := t.file.Body()
	if len(path) > 1 {
		body = t.block(path[:len(path)-1]...).Body()
	}
	body.RemoveBlock(inner)
}

// columns says which columns hold what, also where they have the names that are usual. An
// id is empty where a column of that name is none.
func (t *template) columns(r *Rows, m source.Mapping, path ...string) {
	t.set("text", m.Text, path...)
	if m.Label != "" {
		t.set("label", m.Label, path...)
	}
	if r.From == nil {
		t.form(r.Form, path...)
	}
	if m.ID != "" || slices.Contains(r.Columns(), "id") {
		t.set("id", m.ID, path...)
	}
}

// form says how rows are written, where that is not found out anew.
func (t *template) form(f source.Form, path ...string) {
	for _, a := range []struct{ name, value string }{{"format", string(f.Format)}, {"delimiter", f.Delimiter}, {"sheet", f.Sheet}} {
		if a.value != "" {
			t.set(a.name, a.value, path...)
		}
	}
	if f.Header != nil && !*f.Header {
		t.set("header", false, path...)
	}
	if f.HeaderRow > 1 {
		t.set("header_row", f.HeaderRow, path...)
	}
	if f.Where[0] != "" {
		where := hclwrite.TokensForObject([]hclwrite.ObjectAttrTokens{{Name: hclwrite.TokensForValue(cty.StringVal(f.Where[0])), Value: hclwrite.TokensForValue(cty.StringVal(f.Where[1]))}})
		t.set("where", where, path...)
	}
}

// expression is HCL that is written as it is.
func expression(text string) hclwrite.Tokens {
	return hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(text)}}
}

// emptied are the empty lines that blocks leave which were removed at the end of another one.
var emptied = regexp.MustCompile(`\n\n+\}`)

// bytes is the file, formatted.
func (t *template) bytes() ([]byte, error) {
	if t.err != nil {
		return nil, fmt.Errorf("make a pipeline file: %w", t.err)
	}
	return emptied.ReplaceAll(hclwrite.Format(t.file.Bytes()), []byte("\n}")), nil
}
