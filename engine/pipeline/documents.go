package pipeline

import (
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/source"
)

// mostBytes is the largest size of a document that fits a message together with
// what a stage says of it.
const mostBytes = 32 << 20

// rowArguments say how a file of rows is read.
var rowArguments = append([]string{"id", "text", "label", "meta", "context"}, formArguments...)

// nameDocuments reports whether the path of a source names documents. A text file or a
// workbook is one where the knowledge cuts it and nothing says how rows would be read; in a
// folder it always is.
func (a arguments) nameDocuments(path string, cut bool) bool {
	switch {
	case source.IsGlob(path) && source.Is(path):
		return false
	case document.Is(a.at(path)):
		return true
	case !cut || source.Is(path) && !document.IsWorkbook(path) || !document.May(a.at(path)):
		return false
	}
	return !slices.ContainsFunc(rowArguments, func(name string) bool { return a.attrs[name] != nil })
}

// readDocuments reads the arguments of a source whose path names documents.
func (l *loader) readDocuments(s *Source, a arguments, at hcl.Range) {
	for _, name := range rowArguments {
		if attr, ok := a.attrs[name]; ok {
			l.errorAt(attr.NameRange, "Not of documents", "%s says how a file of rows is read, and %s names documents, which are read whole.", name, s.Path)
		}
	}
	s.ID, s.Text, s.Label, s.Context = "", "", "", ""
	s.Documents = &document.Set{
		Path: s.Path, Exclude: a.texts("exclude"),
		Max:  a.whole("max_bytes", document.MaxBytes, 1, mostBytes),
		HTML: a.choice("html", "readable", "readable", "all"),
	}
	if l.Absent {
		return
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
	f, err := document.Open(*s.Documents)
	if err != nil {
		l.errorAt(at, "Missing file", "There is no folder for %s: %v. A path written in a file is relative to that file, one given with -var to the working directory.%s", s.Path, err, l.neighbour(filepath.Clean(s.Path)))
		return
	}
	_ = f.Close()
}
