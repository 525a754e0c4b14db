package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// passageMeta lists the metadata of every passage. An enrich block cannot store its additions under these names.
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
		l.override(&body, b.Labels[0], names)
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

// checkSwitches checks where the additions of an enrich block are stored and searched.
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

// checkDelimiter checks the delimiter of an enrich block: its form, and that no block above has a different one.
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

func (l *loader) readKnowledge(b *hcl.Block) *Knowledge {
	k := &Knowledge{Name: b.Labels[0], Range: b.DefRange, Analyzer: "standard", Embed: &Stage{}, Store: &Stage{}}
	content, diags := b.Body.Content(grammar.Described("knowledge").Schema())
	for _, d := range diags {
		if d.Summary == "Missing name for enrich" {
			d.Detail = `A knowledge may have several: say what this one is called, such as enrich "contextualize" { ... }.`
		}
	}
	l.add(diags)
	k.Embed = l.readStage(l.single(b, content.Blocks, "embed"), place{knowledge: k})
	store := l.single(b, content.Blocks, "store")
	k.Store = l.readStage(store, place{knowledge: k})
	l.readOrigin(k, b, content.Blocks, store)
	if k.Store.Is("local") && len(k.Store.Paths()) == 0 && l.State != "" {
		k.Home = filepath.Dir(l.State)
	}
	return k
}

// labels reads how labels are written. For an input, the knowledge determines what they are (adopt).
func (a arguments) labels() source.Labels {
	s := source.Labels{Separator: a.text("separator", ""), Columns: a.texts("level_columns")}
	s.Many = a.choice("labels", "one", "one", "many") == "many"
	if s.Levels = a.text("levels", ""); s.Levels == "" && len(s.Columns) > 0 {
		s.Levels = "/"
	}
	if s.Many && s.Levels != "" {
		a.errorAt(a.attrs["labels"].NameRange, "Contradiction", "The labels of a row are a set, or one path in a tree: leave out labels, or levels and level_columns.")
	}
	return s
}

// sameLabels checks that all sources of a knowledge write the same kind of labels.
func (l *loader) sameLabels(all []Source) {
	for _, s := range all[min(1, len(all)):] {
		if !s.Reviewed && s.Labels.LabelForm != all[0].Labels.LabelForm {
			l.errorAt(s.Range, "Contradiction", "The source on line %d has other labels: give labels and levels alike in all sources of a knowledge.", all[0].Range.Start.Line)
		}
	}
}

// LabelForm returns the form of a knowledge's labels.
func (k *Knowledge) LabelForm() sdk.LabelForm {
	if len(k.Sources) == 0 {
		return sdk.LabelForm{}
	}
	return k.Sources[0].Labels.LabelForm
}

// LabelForm returns the form of the labels in a pipeline's answers. It is the form of the first searched
// knowledge whose labels are sets or have levels. Commands that only inspect knowledge have no pipeline (nil).
func (p *Pipeline) LabelForm() sdk.LabelForm {
	if p == nil {
		return sdk.LabelForm{}
	}
	for _, k := range p.Knowledge() {
		if f := k.LabelForm(); f != (sdk.LabelForm{}) {
			return f
		}
	}
	return sdk.LabelForm{}
}

// adopt gives an input the knowledge's form of labels.
func (s *Source) adopt(f sdk.LabelForm) {
	if s != nil {
		s.Labels.LabelForm = f
	}
}

// single returns the knowledge's one block of a type, or an empty one.
func (l *loader) single(in *hcl.Block, blocks hcl.Blocks, typ string) *hcl.Block {
	found := blocks.OfType(typ)
	if len(found) == 0 {
		return &hcl.Block{Type: typ, Body: &hclsyntax.Body{SrcRange: in.DefRange, EndRange: in.DefRange}, DefRange: in.DefRange, TypeRange: in.DefRange}
	}
	for _, extra := range found[1:] {
		l.errorAt(extra.DefRange, "Duplicate block", "A knowledge has one %s block; there is one on line %d already.", typ, found[0].DefRange.Start.Line)
	}
	return found[0]
}

// readSource reads a source or input block. instead replaces its path; cut says that a chunker cuts documents of
// the source.
func (l *loader) readSource(b *hcl.Block, instead string, cut bool) Source {
	in := "knowledge"
	if b.Type == "input" {
		in = "pipeline"
	}
	content, diags := b.Body.Content(grammar.Described(in, b.Type).Schema())
	l.add(diags)
	a := arguments{l, content.Attributes}
	s := Source{
		ID:    a.text("id", "id"),
		Text:  a.text("text", "text"),
		Label: a.text("label", "label"),
		Meta:  a.texts("meta"),
		Range: b.DefRange,
	}
	s.Path, s.Origin = a.path("path")
	s.Labels = a.labels()
	if b.Type == "input" {
		s.Gold = a.text("gold", "gold")
	} else {
		s.Context = a.text("context", "")
	}
	if instead != "" {
		s.Path, s.Origin = absolute(instead, l.Dir), Origin{Said: []string{instead}}
	} else if attr, ok := content.Attributes["path"]; !ok {
		l.errorAt(b.DefRange, "Missing argument", `A %s block needs path, the file to read: path = "data.tsv", or "-" for standard input.`, b.Type)
	} else if v, _ := l.eval(attr.Expr).UnmarkDeep(); v.IsWhollyKnown() {
		if b.Type == "source" && a.nameDocuments(s.Path, cut) {
			l.readDocuments(&s, a, attr.Expr.Range())
			return s
		}
		l.checkFile(s, attr.Expr.Range())
	}
	for _, name := range []string{"exclude", "max_bytes", "html"} {
		attr, ok := content.Attributes[name]
		if ok && name == "exclude" && len(a.texts(name)) == 0 {
			continue // a file for either rows or documents has the path in a variable
		}
		if ok {
			l.errorAt(attr.NameRange, "Not of rows", "%s is about documents, and %s is a file of rows.", name, s.shown())
		}
	}
	s.Form = a.form(s.Path)
	if instead != "" {
		s.Replace(s.Path) // the file describes its own input, not this one
	}
	l.mapColumns(&s, b.Type == "input")
	return s
}

// checkFile reports a missing file.
func (l *loader) checkFile(s Source, at hcl.Range) {
	path := s.Path
	if path == "-" {
		return
	}
	if path != "" && source.IsGlob(path) {
		files, err := source.Files(path)
		if err != nil {
			l.errorAt(at, "Missing file", "%v. A path written in a file is relative to that file, one given with -var to the working directory.", err)
		}
		for _, path := range files {
			l.checkKind(path, s.Origin, at)
		}
		return
	}
	info, err := os.Stat(path)
	switch {
	case path == "":
		l.errorAt(at, "Missing file", `The path is empty. Name a file, or "-" for standard input.`)
	case len(s.Origin.Private) > 0 && (err != nil || info.IsDir()):
		l.errorAt(at, "Missing file", "There is no file of rows at this path, %s.", s.shown())
	case os.IsNotExist(err):
		l.errorAt(at, "Missing file", "There is no file %s. A path written in a file is relative to that file, one given with -var to the working directory.%s", path, l.neighbour(path))
	case err != nil:
		l.errorAt(at, "Missing file", "%v.", err)
	case info.IsDir():
		l.errorAt(at, "Missing file", "%s is a folder. Name a file of rows in it.", path)
	default:
		l.checkKind(path, s.Origin, at)
	}
}

// checkKind reports a pipe or device that the file names, which may never end. People may name one outside of
// the file.
func (l *loader) checkKind(path string, o Origin, at hcl.Range) (fine bool) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode().IsRegular() || l.file.IsSaid(path, o) {
		return true
	}
	l.errorAt(at, "Not a file", "%s is a pipe or a device, whose content may never end. Name a file, or give the pipe on the command line, as with --input.", o.Shown(path))
	return false
}

func (l *loader) neighbour(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return rule.DidYouMean(filepath.Base(path), names)
}

// uses lists the possible values of use for a kind.
func (l *loader) uses(kind sdk.Kind) string {
	return strings.Join(l.Catalog.Uses(kind), ", ")
}
