package pipeline

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/source"
)

// readSources reads the sources of a knowledge: one of documents, or any number of rows. The one
// with people's decisions comes last, wherever it stands. attaches is the argument of the store by which
// the knowledge could do without them; empty: it cannot.
func (l *loader) readSources(in *hcl.Block, blocks hcl.Blocks, cut bool, attaches string) []Source {
	var all []Source
	var reviewed *Source
	for _, b := range blocks {
		if path, is := l.readReviewed(b); is {
			switch s := (Source{Path: path, Form: source.Form{Format: source.JSONL}, Reviewed: true, Range: b.DefRange}); {
			case reviewed != nil:
				l.errorAt(b.DefRange, "Duplicate block", "A knowledge has one file of people's decisions; there is one on line %d already.", reviewed.Range.Start.Line)
			case path != "":
				reviewed = &s
			}
			continue
		}
		s := l.readSource(b, "", cut)
		if len(all) > 0 && (s.Documents != nil || all[0].Documents != nil) {
			l.errorAt(b.DefRange, "Duplicate block", "There is a source on line %d already. A knowledge has several only where all are files of rows: of documents, name them with one glob, such as {guide,reference}/**/*.md.", all[0].Range.Start.Line)
			continue
		}
		all = append(all, s)
	}
	switch {
	case len(all) == 0 && (reviewed != nil || len(blocks) > 0):
		l.errorAt(blocks[0].DefRange, "Missing block", "What people decide adds to a knowledge. Beside it there has to be a source with rows: source { path = ... }.")
	case len(all) == 0 && attaches != "":
		l.errorAt(in.DefRange, "Missing block", "A knowledge has a source, an embed and a store block; source is missing. Say where its entries come from: source { path = ... }. Or name a collection that you already have, which is then only read: config { %s = ... } in the store block.", attaches)
	case len(all) == 0:
		l.errorAt(in.DefRange, "Missing block", "A knowledge has a source, an embed and a store block; source is missing.")
	case reviewed != nil && all[0].Documents != nil:
		l.errorAt(reviewed.Range, "Not of documents", "What people decide are labels of rows, and the source on line %d names documents, which have none.", all[0].Range.Start.Line)
	case reviewed != nil:
		all = append(all, *reviewed)
	}
	return all
}

// readReviewed reads a source of people's decisions; is reports whether it is one. Without a
// path there are none, so that a file can leave it to a variable.
func (l *loader) readReviewed(b *hcl.Block) (path string, is bool) {
	content, diags := b.Body.Content(grammar.Described("knowledge", "source").Schema())
	a := arguments{l, content.Attributes}
	if !a.bool("reviewed", false) {
		return "", false
	}
	l.add(diags)
	for _, name := range slices.Sorted(maps.Keys(content.Attributes)) {
		if name != "path" && name != "reviewed" {
			l.errorAt(content.Attributes[name].NameRange, "Not of decisions", "A file of people's decisions has its own format, so that %s says nothing of it. Leave it out.", name)
		}
	}
	named, ok := content.Attributes["path"]
	if !ok {
		l.errorAt(b.DefRange, "Missing argument", `A source block needs path, the file that decisions are written to: path = "reviewed.jsonl".`)
		return "", true
	}
	if path = a.text("path", ""); path == "" {
		return "", true
	}
	path = absolute(path, l.dir)
	if path == "-" || source.IsGlob(path) || filepath.Ext(path) != ".jsonl" {
		l.errorAt(named.Expr.Range(), "Invalid value", "People's decisions are written to one file of JSON lines: give it a name such as reviewed.jsonl.")
	} else if !l.Absent {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			l.errorAt(named.Expr.Range(), "Missing file", "%s is a folder. Name a file in it, which need not exist yet.", path)
		}
	}
	return path, true
}
