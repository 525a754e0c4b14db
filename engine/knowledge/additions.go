package knowledge

import (
	"fmt"
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

// add puts what enrichers add to the passages of a document into its entries. It
// returns the contexts that are embedded in place of theirs; nil where nothing
// enriches.
func (b *builder) add(entries []sdk.Entry, added []addition) (contexts []string) {
	if len(b.enrichers) == 0 {
		return nil
	}
	contexts = make([]string, len(entries))
	for i := range entries {
		e := &entries[i]
		searched := parts{situating: strings.Split(e.Context, "\n")}
		embedded := parts{situating: searched.situating}
		for n, found := range added {
			stage, a := b.enrichers[n].stage, found.passages[i]
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
type parts struct{ situating, terms []string }

func (p *parts) add(a sdk.Addition) {
	p.situating = append(p.situating[:len(p.situating):len(p.situating)], a.Context)
	p.terms = append(p.terms, a.Terms...)
}

func (p *parts) join() string { return bounded(sdk.JoinContext(p.situating, p.terms)) }

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

// checkNames reports an enrich block whose additions would take the place of what
// the source knows.
func (b *builder) checkNames(meta sdk.Meta) error {
	for _, e := range b.enrichers {
		if _, taken := meta[e.stage.Name]; taken && !e.stage.Lexical {
			return fmt.Errorf("enrich.%s: with lexical = false additions are kept as metadata under the block's name, and the source has a column %q; give the block another name", e.stage.Name, e.stage.Name)
		}
	}
	return nil
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

// texts are what is embedded: what situates an entry stands before its text, and
// terms stand behind it.
func (m batch) texts() []string {
	all := make([]string, len(m.entries))
	for i, e := range m.entries {
		context := e.Context
		if m.contexts != nil {
			context = m.contexts[i]
		}
		situating, terms := sdk.SplitContext(context)
		if all[i] = e.Text; situating != "" {
			all[i] = situating + "\n" + all[i]
		}
		if len(terms) > 0 {
			all[i] += "\n" + sdk.Delimiter + "\n" + strings.Join(terms, "\n")
		}
	}
	return all
}
