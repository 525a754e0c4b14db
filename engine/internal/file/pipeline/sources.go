package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
)

// Attached reports whether the knowledge is a collection that another program maintains and racflow only
// reads. It has no sources, and its store opens as an sdk.Attacher.
func (k *Knowledge) Attached() bool { return k.Collection() != "" }

// Collection returns the name or alias of an attached collection in the file; empty: the knowledge
// is built from its sources.
func (k *Knowledge) Collection() string { return k.Store.Config.text(k.Store.Info.Attaches) }

// text returns the value of a string argument; empty: it is not given.
func (c Config) text(name string) (text string) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(c.Public, &given) // made by the loader
	_ = json.Unmarshal(given[name], &text)
	return text
}

// readOrigin reads the origin of a knowledge's entries: its sources, or an attached collection. With an
// attached collection it refuses every block that would make entries.
func (l *loader) readOrigin(k *Knowledge, in *hcl.Block, blocks hcl.Blocks, store *hcl.Block) {
	argument := k.Store.Info.Attaches
	w, given := k.Store.Config.written[argument]
	if given = given && (w.unknown || k.Attached()); !given { // an unknown value is already reported
		cut := len(blocks.OfType("chunk")) > 0
		k.Sources = l.readSources(in, blocks.OfType("source"), cut, argument)
		if cut {
			k.Chunk = l.readStage(l.single(in, blocks, "chunk"), place{knowledge: k})
		}
		k.Enrich = l.readEnrich(blocks.OfType("enrich"))
		l.readDescribed(k, in, blocks)
		return
	}
	refuse := func(at hcl.Range, format string, args ...any) {
		beside := fmt.Sprintf("Line %d gives the store a collection that you already have (%s = ...). ", w.at.Start.Line, argument)
		l.errorAt(at, "Not of an attached collection", "%s", beside+fmt.Sprintf(format, args...))
	}
	for _, b := range blocks {
		switch b.Type {
		case "source":
			refuse(b.DefRange, "racflow only reads it and writes nothing into it, so a source has no place. Leave out one of them.")
		case "labels":
			refuse(b.DefRange, "Its labels are read as they are. Leave out one of them.")
		case "chunk", "enrich":
			refuse(b.DefRange, "Its entries are read as they are, so there is nothing for %s to do. Leave it out.", b.Type)
		}
	}
	if analyzer, ok := store.Body.(*hclsyntax.Body).Attributes["analyzer"]; ok {
		refuse(analyzer.NameRange, "How it is searched by words was decided when it was made. Leave analyzer out.")
	}
}

// mostBytes is the largest document that fits into a message together with what a stage adds to the
// document.
const mostBytes = 32 << 20

// rowArguments lists the arguments that describe how a file of rows is read.
var rowArguments = append([]string{"id", "text", "label", "meta", "context"}, formArguments...)

// nameDocuments reports whether the path of a source names documents. A text file or workbook counts as
// a document if the knowledge has a chunk block and the source has no argument about rows. In a folder
// it always counts as a document.
func (a arguments) nameDocuments(path string, cut bool) bool {
	switch {
	case source.IsGlob(path) && source.Is(path):
		return false
	case document.Is(path):
		return true
	case !cut || source.Is(path) && !document.IsWorkbook(path) || !document.May(path):
		return false
	}
	return !slices.ContainsFunc(rowArguments, func(name string) bool { return a.attrs[name] != nil })
}

// readDocuments reads the arguments of a source whose path names documents.
func (l *loader) readDocuments(s *Source, a arguments, at hcl.Range) {
	for _, name := range rowArguments {
		if attr, ok := a.attrs[name]; ok {
			l.errorAt(attr.NameRange, "Not of documents", "%s says how a file of rows is read, and %s names documents, which are read whole.", name, s.shown())
		}
	}
	s.ID, s.Text, s.Label, s.Context = "", "", "", ""
	s.Documents = &document.Set{
		Path: s.Path, Exclude: a.texts("exclude"),
		Max:  a.wholeNumber("max_bytes", document.MaxBytes, 1, mostBytes),
		HTML: a.choice("html", "readable", "readable", "all"),
	}
	if document.IsGlob(s.Path) {
		if err := document.Check(s.Path); err != nil {
			l.errorAt(at, "Missing file", "%v.", err)
			return
		}
	}
	for _, glob := range s.Documents.Exclude {
		if err := document.Check(glob); err != nil {
			l.errorAt(a.attrs["exclude"].Expr.Range(), "Invalid value", "exclude: %v.", err)
		}
	}
	l.checkKind(s.Path, s.Origin, at)
	f, err := document.Open(*s.Documents)
	if err != nil && len(s.Origin.Private) > 0 {
		l.errorAt(at, "Missing file", "There is no folder at this path, %s.", s.shown())
		return
	}
	if err != nil {
		l.errorAt(at, "Missing file", "There is no folder for %s: %v. A path written in a file is relative to that file, one given with -var to the working directory.%s", s.Path, err, l.neighbour(filepath.Clean(s.Path)))
		return
	}
	_ = f.Close()
}

// readSources reads the sources of a knowledge: one of documents, or any number of sources of rows. It
// puts the source with people's decisions last. attaches is the store's argument that could name a
// collection instead; empty: none.
func (l *loader) readSources(in *hcl.Block, blocks hcl.Blocks, cut bool, attaches string) []Source {
	var all []Source
	var reviewed *Source
	for _, b := range blocks {
		if path, origin, is := l.readReviewed(b); is {
			switch s := (Source{Path: path, Origin: origin, Form: source.Form{Format: source.JSONL}, Reviewed: true, Range: b.DefRange}); {
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
	l.sameLabels(all)
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

// readDescribed reads the labels block, and adds it to the sources of a knowledge of rows. An empty path
// means no table, so that a file can have the path in a variable.
func (l *loader) readDescribed(k *Knowledge, in *hcl.Block, blocks hcl.Blocks) {
	if len(blocks.OfType("labels")) == 0 {
		return
	}
	b := l.single(in, blocks, "labels")
	content, diags := b.Body.Content(grammar.Described("knowledge", "labels").Schema())
	l.add(diags)
	a := arguments{l, content.Attributes}
	s := Source{
		Text: a.text("label", "label"), Meta: []string{}, Range: b.DefRange,
		Describes: &DescribedColumns{a.text("name", "name"), a.text("description", "description"), a.text("examples", "examples"), a.text("becomes", "becomes")},
	}
	s.Path, s.Origin = a.path("path")
	attr, ok := content.Attributes["path"]
	switch {
	case !ok:
		l.errorAt(b.DefRange, "Missing argument", `A labels block needs path, the file that describes labels: path = "labels.tsv".`)
	case s.Path == "":
		return
	case s.Path == "-":
		l.errorAt(attr.Expr.Range(), "Invalid value", "Labels are described in a file, not on standard input.")
	case k.Documents() != nil:
		l.errorAt(b.DefRange, "Not of documents", "A labels block describes labels of rows, and the source on line %d names documents, which have none.", k.Main().Range.Start.Line)
	case k.Chunk != nil:
		l.errorAt(b.DefRange, "Not of chunks", "A labels block describes labels of rows, each of which is one entry: leave out the chunk block.")
	default:
		l.checkFile(s, attr.Expr.Range())
	}
	s.Form = a.form(s.Path)
	if len(k.Sources) > 0 {
		k.Sources = append(k.Sources, s)
	}
}

// readReviewed reads a source of people's decisions. is reports whether it is such a source. Without a
// path there are no decisions, so that a file can have the path in a variable.
func (l *loader) readReviewed(b *hcl.Block) (path string, origin Origin, is bool) {
	content, diags := b.Body.Content(grammar.Described("knowledge", "source").Schema())
	a := arguments{l, content.Attributes}
	if !a.bool("reviewed", false) {
		return "", origin, false
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
		return "", origin, true
	}
	if path, origin = a.path("path"); path == "" {
		return "", origin, true
	}
	if path == "-" || source.IsGlob(path) || filepath.Ext(path) != ".jsonl" {
		l.errorAt(named.Expr.Range(), "Invalid value", "People's decisions are written to one file of JSON lines: give it a name such as reviewed.jsonl.")
	} else {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			l.errorAt(named.Expr.Range(), "Missing file", "%s is a folder. Name a file in it, which need not exist yet.", origin.Shown(path))
		}
		l.checkKind(path, origin, named.Expr.Range())
	}
	return path, origin, true
}
