package path

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/section"
)

type config struct {
	Parts []string `config:"parts" default:"path,title,headings,declaration" min_length:"1" pattern:"." doc:"The parts of a context, in this order: headings, declaration, and keys of the document's metadata."`
	Names string   `config:"names" default:"whole" one_of:"whole,words" doc:"Whether paths and other names in the metadata stay whole or are split into words."`
	Limit int      `config:"limit" default:"300" min:"1" doc:"Most characters of a context, which is truncated beyond."`
}

// The parts that are not keys of the document's metadata.
const (
	headings    = "headings"
	declaration = "declaration"
)

// Stage describes the enricher.
func Stage() sdk.Stage {
	return sdk.EnrichStage("path", "Says where a passage stands: path, title, headings and enclosing declaration, without a model.", open, sdk.Revision("3"), sdk.PreferBatch(512))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Enricher, error) {
	return &enricher{c}, nil
}

type enricher struct{ config }

// Enrich implements sdk.Enricher.
func (e *enricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	all := make([]sdk.Addition, len(passages))
	var d document
	for i, p := range passages {
		if p.Document != d.Document {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			d = document{Document: p.Document}
		}
		all[i].Context = e.context(&d, p)
	}
	return all, nil
}

// document is a document with the structure that was found in its text.
type document struct {
	*sdk.Document
	read     bool
	sections section.Sections
	outline  syntax.Outline
}

// sectioned are the formats of documents whose text is Markdown.
var sectioned = []string{"", "markdown", "html", "docx", "pptx", "xlsx", "notebook"}

// structure reads the text of a document when it is first needed.
func (d *document) structure() {
	if d.read {
		return
	}
	d.read = true
	format, _ := d.Meta["format"].(string)
	if language := syntax.Of(d.Document); language != nil && (format == "" || format == "code") {
		d.outline = language.Read(d.Text).Outline()
	} else if slices.Contains(sectioned, format) {
		d.sections = section.Read(d.Text)
	}
}

// above are the titles or signatures around a passage, from the outside to the inside:
// those that its chunker reports, or those in its document.
func (d *document) above(part string, p sdk.Passage) string {
	if known, ok := p.Meta[part].(string); ok {
		return known
	}
	d.structure()
	first := p.End - len(strings.TrimLeftFunc(d.Text[p.Start:p.End], unicode.IsSpace))
	path := d.sections.At(first)
	if part == declaration {
		path = d.outline.At(first)
	}
	return strings.Join(path, " > ")
}

func (e *enricher) context(d *document, p sdk.Passage) string {
	var parts []string
	for _, name := range e.Parts {
		var part string
		switch name {
		case headings, declaration:
			part = d.above(name, p)
		default:
			part, _ = d.Meta[name].(string)
			if e.Names == "words" && !strings.ContainsFunc(strings.TrimSpace(part), unicode.IsSpace) {
				part = words(part)
			}
		}
		if part = fewshot.OneLine(part); part != "" {
			parts = append(parts, part)
		}
	}
	return fewshot.Clip(strings.Join(once(parts), " / "), e.Limit)
}

// once drops the parts that another one begins or ends with.
func once(parts []string) []string {
	var kept []string
	for i, p := range parts {
		repeated := false
		for j, other := range parts {
			repeated = repeated || len(other) > len(p) && holds(other, p) || j < i && other == p
		}
		if !repeated {
			kept = append(kept, p)
		}
	}
	return kept
}

// holds reports whether a text begins or ends with a shorter part, apart from the rest.
func holds(text, part string) bool {
	apart := func(c byte) bool { return strings.IndexByte(" /:", c) >= 0 }
	return strings.HasPrefix(text, part) && apart(text[len(part)]) ||
		strings.HasSuffix(text, part) && apart(text[len(text)-len(part)-1])
}
