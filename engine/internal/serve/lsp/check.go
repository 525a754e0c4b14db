package lsp

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// check loads a document from the editor's text. If parts are missing from the text, it keeps these parts of the
// previous text.
func (s *server) check(ctx context.Context, d *document) hcl.Diagnostics {
	if before := s.documents[d.uri]; before != nil {
		d.file, d.secrets, d.required = before.file, before.secrets, before.required
	}
	o := s.options.Load
	o.Text, o.Catalog = []byte(d.text.src), known{o.Catalog}
	o.Secrets = &redact.Secrets{} // secrets of this text only: a secret being typed changes with each letter
	file, diags := pipeline.Load(ctx, d.path, o)
	if len(file.Variables) > 0 {
		d.file, d.secrets = file, o.Secrets
	}
	if len(file.Required) > 0 {
		d.required = file.Required
	}
	return diags
}

// diagnostics converts diagnostics for the editor.
func (d *document) diagnostics(all hcl.Diagnostics) []diagnostic {
	out := []diagnostic{}
	for _, given := range all {
		shown := diagnostic{Severity: int(given.Severity), Source: "racflow", Message: given.Summary}
		if given.Detail != "" {
			shown.Message += ": " + given.Detail
		}
		switch at := given.Subject; {
		case at == nil:
		case at.Filename == d.path:
			shown.Range = d.text.rangeOf(span{at.Start.Byte, at.End.Byte})
		default: // a file of variables, not the edited file
			shown.Message = at.String() + ": " + shown.Message
		}
		out = append(out, shown)
	}
	return out
}

// known is a catalog that starts no program: it offers only the stages that another catalog already
// knows.
type known struct{ pipeline.Catalog }

// Stage implements pipeline.Catalog.
func (k known) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	if strings.Contains(use, "/") && !slices.Contains(k.Uses(kind), use) {
		return sdk.Stage{}, false
	}
	return k.Catalog.Stage(kind, use)
}

// Require implements pipeline.Requiring.
func (k known) Require(dir string, required []require.Plugin) pipeline.Catalog {
	if c, ok := k.Catalog.(pipeline.Requiring); ok {
		return known{c.Require(dir, required)}
	}
	return k
}

// Explain implements pipeline.Explainer.
func (k known) Explain(use string) error {
	plugin, _, third := strings.Cut(use, "/")
	if !third {
		return nil
	}
	if e, ok := k.Catalog.(pipeline.Explainer); ok {
		if why := e.Explain(use); why != nil {
			return why
		}
	}
	for _, kind := range catalog.Kinds {
		if slices.ContainsFunc(k.Uses(kind), func(use string) bool { return strings.HasPrefix(use, plugin+"/") }) {
			return nil // the plugin has described its stages, but not this one
		}
	}
	return fmt.Errorf("the plugin %q has not described its stages yet, and no program is started while a file is edited; racflow validate with this file asks it once", plugin)
}

// text is a document's text with the offsets of its lines.
type text struct {
	src   string
	lines []int // byte offsets; lines end with \n, \r\n or \r
}

func newText(src string) text {
	t := text{src: src, lines: []int{0}}
	for i := range len(src) {
		if src[i] == '\n' || src[i] == '\r' && (i+1 == len(src) || src[i+1] != '\n') {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// offset converts a position to a byte offset; a position beyond the end of its line becomes the
// end of the line.
func (t text) offset(p position) int {
	if p.Line < 0 || p.Line >= len(t.lines) {
		return len(t.src)
	}
	at, end := t.lines[p.Line], len(t.src)
	if p.Line+1 < len(t.lines) {
		end = t.lines[p.Line+1]
	}
	for units := 0; at < end; {
		r, n := utf8.DecodeRuneInString(t.src[at:])
		if units += utf16.RuneLen(r); units > p.Character || r == '\n' || r == '\r' {
			break
		}
		at += n
	}
	return at
}

// position converts a byte offset to a position.
func (t text) position(offset int) position {
	offset = min(max(offset, 0), len(t.src))
	line := sort.SearchInts(t.lines, offset+1) - 1
	units := 0
	for _, r := range t.src[t.lines[line]:offset] {
		units += utf16.RuneLen(r)
	}
	return position{Line: line, Character: units}
}

func (t text) rangeOf(s span) textRange {
	return textRange{Start: t.position(s.from), End: t.position(s.to)}
}

// span is a part of a text, in byte offsets.
type span struct{ from, to int }

func (s span) holds(offset int) bool { return s.from <= offset && offset <= s.to }

func (t text) at(s span) string { return t.src[s.from:s.to] }
