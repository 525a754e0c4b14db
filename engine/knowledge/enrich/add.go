package enrich

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// maxContext is the most bytes of an entry's context that every store takes. A
// longer one is cut after its last whole word, the terms first.
const maxContext = 60_000

// Add puts what enrichers add to the passages of a document into its entries. It
// returns the contexts that are embedded in place of theirs; nil where nothing
// enriches.
func (all Enrichers) Add(entries []sdk.Entry, added []Additions) (contexts []string) {
	if len(all) == 0 {
		return nil
	}
	contexts = make([]string, len(entries))
	for i := range entries {
		e := &entries[i]
		searched := parts{lines: strings.Split(e.Context, "\n")}
		embedded := parts{lines: searched.lines}
		for n, found := range added {
			stage, a := all[n].stage, found.passages[i]
			if stage.Lexical {
				searched.add(a)
			} else {
				e.Meta = with(e.Meta, stage, a)
			}
			if stage.Embedded {
				embedded.add(a)
			}
		}
		e.Context, contexts[i] = searched.join(), embedded.join()
	}
	return contexts
}

// parts are those of a context.
type parts struct{ lines, terms []string }

func (p *parts) add(a sdk.Addition) {
	p.lines = append(p.lines[:len(p.lines):len(p.lines)], a.Context)
	p.terms = append(p.terms, a.Terms...)
}

func (p *parts) join() string { return bounded(sdk.JoinContext(p.lines, p.terms)) }

// with adds to metadata, under the name of its block, what is not searched.
func with(meta sdk.Meta, s *pipeline.Stage, a sdk.Addition) sdk.Meta {
	lines := a.Terms
	if a.Context != "" {
		lines = slices.Concat([]string{a.Context}, a.Terms)
	}
	if len(lines) == 0 {
		return meta
	}
	if meta = maps.Clone(meta); meta == nil {
		meta = sdk.Meta{}
	}
	meta[s.Name] = bounded(strings.Join(lines, "\n"))
	return meta
}

// bounded cuts a context to what stores take.
func bounded(text string) string {
	if len(text) <= maxContext {
		return text
	}
	end := maxContext
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexFunc(text[:end], unicode.IsSpace); space > 0 {
		end = space
	}
	return strings.TrimSuffix(strings.TrimRightFunc(text[:end], unicode.IsSpace), "\n"+sdk.Delimiter)
}
