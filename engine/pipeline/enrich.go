package pipeline

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/rule"
)

// passageMeta are the names under which every passage says where it stands: what
// an enrich block adds cannot be kept there.
var passageMeta = []string{"document", "start", "end", "header"}

// readEnrich reads the enrich blocks of a knowledge, in file order.
func (l *loader) readEnrich(blocks hcl.Blocks) []*Stage {
	var all []*Stage
	for _, b := range l.distinct(blocks) {
		described := grammar.Described("knowledge", "enrich")
		names := described.Names()
		body := l.body(b, described, "when", "on_error")
		for _, name := range []string{"when", "on_error"} {
			if attr, ok := body.attrs[name]; ok {
				l.errorAt(attr.NameRange, "Not of an enrichment", enrichAdvice[name], name)
				delete(body.attrs, name)
			}
		}
		l.override(&body, names)
		s := l.makeStage(body, place{scope: rule.Scope{Vars: l.seen()}})
		l.checkCalls(s, body)
		l.checkSwitches(s, body)
		l.checkDelimiter(s, body, all)
		all = append(all, s)
	}
	return all
}

var enrichAdvice = map[string]string{
	"when":     "An enrich block has no %s: it works on every passage of the knowledge. enabled = ... turns the whole block off.",
	"on_error": "An enrich block has no %s: a passage that it fails on is kept without its addition, and tried again by the next build.",
}

// checkSwitches looks at where the additions of an enrich block go.
func (l *loader) checkSwitches(s *Stage, written stageBody) {
	if s.Lexical {
		return
	}
	at := written.attrs["lexical"].Range
	if slices.Contains(passageMeta, s.Name) {
		l.errorAt(at, "Name that is taken", "With lexical = false additions are kept as metadata under the block's name, and %q is where a passage says its own. Give the block another name.", s.Name)
	}
	if !s.Embedded && s.Enabled {
		l.warn(at, "Addition that is not searched", "With embed = false and lexical = false nothing finds an entry by what enrich.%s adds: it is only metadata.", s.Name)
	}
}

const maxDelimiter = 100 // bytes

// checkDelimiter looks at the delimiter of an enrich block, which stands below others.
func (l *loader) checkDelimiter(s *Stage, written stageBody, above []*Stage) {
	if s.Delimiter == "" {
		return
	}
	at := written.attrs["delimiter"].Expr.Range()
	if strings.TrimSpace(s.Delimiter) != s.Delimiter || strings.ContainsAny(s.Delimiter, "\r\n") || len(s.Delimiter) > maxDelimiter {
		l.errorAt(at, "Invalid value", "delimiter is one line of at most %d bytes, without spaces around it, such as \"---\".", maxDelimiter)
		return
	}
	for _, other := range above {
		if other.Delimiter != "" && other.Delimiter != s.Delimiter {
			l.errorAt(at, "Two delimiters", "enrich.%s has the delimiter %q: the terms of all blocks stand behind one. Write it in one of the blocks.", other.Name, other.Delimiter)
			return
		}
	}
}
