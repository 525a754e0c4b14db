package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// Options holds what the command line adds to a file.
type Options struct {
	Vars             map[string]string                // given by -var
	VarFiles         []string                         // given by -var-file; later ones win
	Getenv           func(name string) (string, bool) // the environment
	Dir              string                           // the folder for relative paths on the command line
	State            string                           // the state folder, absolute; empty: unknown
	Input            string                           // replaces the path of every input block; "-" is standard input
	Columns          map[string]string                // columns of the rows of inputs, by meaning: id, text, label or gold
	KnowledgeColumns map[string]string                // columns of the rows of each source, by meaning: id, text, label or context
	Set              []Override                       // overrides of arguments, by target
	Expected         []Override                       // values from an expect block for variables; they take precedence
	Text             []byte                           // the file's text in an editor; nil: read the file from disk
	Catalog          Catalog
	Prices           Prices          // for models without a price in the file; nil: no prices are known
	Secrets          *redact.Secrets // gets the secrets of the file; may be nil
	// Blind leaves values of the environment, and of files outside of the folder, unknown. It is for a file that is
	// only inspected, and that was not granted to read them.
	Blind bool
	// Trusted reports whether programs of third parties may get their configs, to check them. nil: they may.
	Trusted func(*File) bool
}

// Load reads and checks a pipeline file. The File is never nil, so that its Sources can print the
// diagnostics; if there are no errors it is complete.
//
// Package bounded limits the resources of loading a file. When ctx ends, Load returns within half a second with a
// diagnostic that says so.
func Load(ctx context.Context, path string, o Options) (*File, hcl.Diagnostics) {
	ctx, cancel := bounded.WithTimeout(ctx)
	defer cancel()
	l := newLoader(ctx, path, o)
	type loaded struct {
		file  *File
		diags hcl.Diagnostics
	}
	got, err := bounded.Interruptible(ctx, func() (loaded, error) {
		src, err := o.Text, error(nil)
		if src == nil {
			src, err = bounded.ReadRegular(absolute(path, o.Dir), bounded.MaxSource)
		}
		if err != nil {
			return loaded{l.file, hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "Cannot read the pipeline file", Detail: fmt.Sprintf("%v.", err),
			}}}, nil
		}
		diags := l.parse(src)
		return loaded{l.file, diags}, nil
	})
	if err != nil { // the loader still runs, so do not touch its file
		return &File{Path: path}, hcl.Diagnostics{l.Interrupted()}
	}
	return got.file, got.diags
}

// loader holds the state of reading one file.
type loader struct {
	Options
	*bounded.Evaluator
	dir   string // folder of the file; paths in the file are relative to it
	home  string // the folder that the file belongs to; empty: not determined yet
	src   []byte
	file  *File
	diags hcl.Diagnostics

	vars, locals map[string]cty.Value // an unknown value is wrong, and already reported
	paths        map[string]bool      // variables whose values are paths
	visible      map[string]cty.Value // the variables as rules see them
	models       []*model
	overrides    []*replacement
	targets      []string          // possible targets of overrides, in the stages with their name read so far
	short        []string          // names of short secrets that the current expression is the first to read
	validations  []func()          // checks of configs by programs of third parties
	fromFile     map[string]bool   // variables whose values in Vars are the file's own, from an expect block
	typed        map[string]string // values of overrides that people typed, by the file name of their expressions
	reads        map[string]Origin // of paths in file.Reads
	hidden       int               // how often expressions read a secret, or a value that is not shown
	off          bool              // the stage being read is disabled: its environment may be missing
}

func newLoader(ctx context.Context, path string, o Options) *loader {
	if dir, err := filepath.Abs(o.Dir); err == nil {
		o.Dir = dir
	}
	l := &loader{
		Options: o, dir: filepath.Dir(absolute(path, o.Dir)),
		file: &File{Path: path, Sources: map[string]*hcl.File{}},
		vars: map[string]cty.Value{}, locals: map[string]cty.Value{}, paths: map[string]bool{},
		fromFile: map[string]bool{}, typed: map[string]string{}, reads: map[string]Origin{},
	}
	if l.Secrets == nil {
		l.Secrets = &redact.Secrets{}
	}
	if l.Getenv == nil {
		l.Getenv = func(string) (string, bool) { return "", false }
	}
	l.Evaluator = bounded.New(ctx, l.functions())
	return l
}

// parse reads and checks the content of the file.
func (l *loader) parse(src []byte) (diags hcl.Diagnostics) {
	defer bounded.Stop(func(d *hcl.Diagnostic) { diags = append(l.sorted(), d) })
	l.src, l.file.loader = src, l
	f, diags := bounded.Parse(src, l.file.Path)
	l.file.Sources[l.file.Path] = f
	if l.add(diags); diags.HasErrors() {
		return l.diags // later errors may follow from the syntax error
	}
	content, diags := f.Body.Content(grammar.Described().Schema())
	l.add(diags)
	blocks := content.Blocks.ByType()
	l.require(blocks[require.Block])
	l.readOverrides(blocks["variable"])
	l.readVariables(blocks["variable"])
	l.readLocals(blocks["locals"])
	for _, b := range l.distinct(blocks["limit"]) {
		l.file.Limits = append(l.file.Limits, l.readLimit(b))
	}
	for _, b := range l.distinct(blocks["model"]) {
		l.models = append(l.models, l.readModel(b))
	}
	l.file.Cache = l.readCache(blocks["cache"])
	for _, b := range l.distinct(blocks["knowledge"]) {
		l.file.Knowledge = append(l.file.Knowledge, l.readKnowledge(b))
	}
	for _, b := range l.distinct(blocks["pipeline"]) {
		l.file.Pipelines = append(l.file.Pipelines, l.readPipeline(b))
	}
	l.checkOverrides()
	if l.Trusted == nil || len(l.validations) > 0 && !l.diags.HasErrors() && l.Trusted(l.file) {
		for _, validate := range l.validations {
			validate()
		}
	}
	return l.sorted()
}

// require reads which third-party plugins the file requires, and adds them to the catalog.
func (l *loader) require(blocks hcl.Blocks) {
	required, diags := require.Read(blocks, l.dir)
	l.add(diags)
	l.file.Required = required
	if c, ok := l.Catalog.(Requiring); ok {
		l.Catalog = c.Require(l.dir, required)
	}
}

// add adds diagnostics, each only once: a fallback is read together with its stage, and would repeat the stage's
// errors. After too many diagnostics, an error ends loading and a warning is dropped.
func (l *loader) add(diags hcl.Diagnostics) {
	if len(diags) > bounded.MaxDiagnostics { // a body's diagnostics come in no order
		slices.SortStableFunc(diags, byPlace)
	}
	for _, d := range diags {
		// The detail may quote a value.
		if d.Detail = bounded.Short(l.Secrets.Shown(d.Detail)); bounded.ShowsMuch(d) || l.showsHidden(d) {
			d.EvalContext = nil
		}
		if len(l.diags) >= bounded.MaxDiagnostics {
			if d.Severity == hcl.DiagWarning {
				continue
			}
			panic(bounded.Stopped{Diagnostic: bounded.TooMany()})
		}
		if !slices.ContainsFunc(l.diags, func(have *hcl.Diagnostic) bool {
			return have.Summary == d.Summary && have.Detail == d.Detail && sameRange(have.Subject, d.Subject)
		}) {
			l.diags = append(l.diags, d)
		}
	}
}

// showsHidden reports whether a diagnostic would be printed with a value that is not shown.
func (l *loader) showsHidden(d *hcl.Diagnostic) bool {
	return d.Expression != nil && d.EvalContext != nil && l.namesHidden(d.Expression)
}

func sameRange(a, b *hcl.Range) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// sorted returns the diagnostics in the order of the file.
func (l *loader) sorted() hcl.Diagnostics {
	slices.SortStableFunc(l.diags, byPlace)
	return l.diags
}

// byPlace orders diagnostics by their place in the file; diagnostics without a place come first.
func byPlace(a, b *hcl.Diagnostic) int {
	switch {
	case a.Subject == nil && b.Subject == nil:
		return 0
	case a.Subject == nil:
		return -1
	case b.Subject == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Subject.Filename, b.Subject.Filename), a.Subject.Start.Byte-b.Subject.Start.Byte)
}

// errorAt adds an error at a place in the file.
func (l *loader) errorAt(at hcl.Range, summary, format string, args ...any) {
	l.add(hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &at,
	}})
}

// distinct rejects the second of two blocks with the same name, and names that cannot be names of folders.
func (l *loader) distinct(blocks hcl.Blocks) hcl.Blocks {
	first := map[string]*hcl.Block{}
	var kept hcl.Blocks
	for _, b := range blocks {
		name := b.Labels[0]
		key := b.Type + " " + name
		switch earlier := first[key]; {
		case earlier != nil:
			l.errorAt(b.DefRange, "Duplicate "+b.Type, "The %s %q stands on line %d already. Give this one another name.",
				b.Type, name, earlier.DefRange.Start.Line)
			continue
		case !hclsyntax.ValidIdentifier(name):
			l.errorAt(b.LabelRanges[0], "Invalid name",
				"A name starts with a letter and holds only letters, digits, - and _, such as %q.", "my-"+b.Type)
		}
		first[key] = b
		kept = append(kept, b)
	}
	return kept
}

// absolute resolves a path against a folder. It finds names in another normal form of Unicode. It leaves "-" (standard
// input) and the empty path as they are.
func absolute(path, dir string) string {
	if path == "" || path == "-" {
		return path
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return disk.Find(path)
}

// readLocals evaluates the values of all locals blocks, each after the locals that it refers to.
func (l *loader) readLocals(blocks hcl.Blocks) {
	all := map[string]*hcl.Attribute{}
	for _, b := range blocks {
		attrs, diags := b.Body.JustAttributes()
		l.add(diags)
		for _, name := range keys(attrs) {
			if earlier := all[name]; earlier != nil {
				l.errorAt(attrs[name].NameRange, "Duplicate local value", "There is a %q on line %d already.", name, earlier.NameRange.Start.Line)
				continue
			}
			all[name] = attrs[name]
		}
	}
	for name := range all {
		l.locals[name] = cty.DynamicVal // so that the name is known before the value
	}
	done := map[string]bool{}
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if i := slices.Index(above, name); i >= 0 {
			l.errorAt(all[name].NameRange, "Cycle of local values", "%s. Give one of them a value of its own.",
				strings.Join(append(above[i:], name), " needs "))
			return
		}
		if done[name] {
			return
		}
		for _, t := range all[name].Expr.Variables() {
			if needed, ok := nameIn(t); ok && t.RootName() == "local" && all[needed] != nil {
				visit(needed, append(above, name))
			}
		}
		if done[name] {
			return
		}
		done[name] = true
		l.locals[name] = l.eval(all[name].Expr)
	}
	for _, name := range keys(all) {
		visit(name, nil)
	}
}

// A retrieve stage fills the columns fromSearch; a rerank stage fills candidates again.
var (
	candidates = sdk.Of(sdk.ColumnCandidates, sdk.ColumnCandidateTexts)
	fromSearch = candidates | sdk.Of(sdk.ColumnVector, sdk.ColumnPrototypes, sdk.ColumnRandom, sdk.ColumnLabels)
)

// checkStructure checks that every enabled stage has its inputs, and that the pipeline produces something.
func (l *loader) checkStructure(p *Pipeline) {
	l.checkStandardInput(p)
	var elect, retrieve *Stage
	retrieves, prompts, voters := 0, 0, 0
	for _, s := range p.Stages {
		if !s.Enabled {
			continue
		}
		reads := s.reads()
		if reads&fromSearch != 0 && retrieves == 0 {
			l.errorAt(s.UseRange, "Nothing to read", "%s reads candidates or labels, and no retrieve stage stands above (or none is enabled). Put one above: retrieve \"neighbours\" { from = knowledge.NAME }.", s.Use)
		}
		if reads.Has(sdk.ColumnPrompts) && prompts == 0 {
			l.errorAt(s.UseRange, "Nothing to read", "%s reads prompts, and no prompt stage stands above (or none is enabled). Put one above: prompt \"shots\" { use = ... }.", s.Use)
		}
		l.checkFits(s, retrieves > 0)
		switch s.Block {
		case "retrieve":
			retrieves++
			retrieve = s
		case "prompt":
			prompts++
		case "sample":
			voters++
			l.checkWhole(s, retrieve)
		case "elect":
			if voters == 0 {
				l.noVotes(s)
			}
			if elect != nil {
				l.errorAt(s.Range, "Duplicate election", "A pipeline has one election; the one on line %d is enabled too.", elect.Range.Start.Line)
			}
			elect = s
		}
	}
	if retrieves == 0 && elect == nil {
		l.errorAt(p.Range, "Empty pipeline", "A pipeline needs an enabled retrieve or elect stage, or nothing comes out of it.")
	}
}

// noVotes reports an election without voters. It points at the name of a model if that name is empty.
func (l *loader) noVotes(elect *Stage) {
	for _, m := range l.models {
		if !m.exists {
			l.errorAt(m.attrs["name"].Expr.Range(), "No model", "This name is empty, so stages with model = model.%s are off, and no voter is left for elect.%s. Give the model a name.", m.name, elect.Name)
			return
		}
	}
	l.errorAt(elect.Range, "Nothing to read", "No sample stage stands above this election (or none is enabled), so there are no votes to count.")
}

func (l *loader) checkStandardInput(p *Pipeline) {
	var stdin []string
	if p.Input != nil && p.Input.Path == "-" {
		stdin = append(stdin, "the input")
	}
	for _, k := range p.Knowledge() {
		for _, s := range k.Sources {
			if s.Path == "-" {
				stdin = append(stdin, fmt.Sprintf("knowledge %q", k.Name))
			}
		}
	}
	if len(stdin) > 1 {
		l.errorAt(p.Range, "Standard input is read twice", "Only one of %s can read \"-\". Give the others a file.", strings.Join(stdin, " and "))
	}
}

// checkFits checks that a stage that may have to learn has rows to learn from, and that only elections learn from
// votes.
func (l *loader) checkFits(s *Stage, retrieve bool) {
	for _, f := range append([]Fallback{{Stage: s}}, s.Fallbacks...) {
		switch s := f.Stage; {
		case !s.Info.Fits:
		case s.Info.FitReads.Has(sdk.ColumnSamples) && s.Kind != sdk.KindElect:
			l.errorAt(s.UseRange, "Unusable stage", "%s wants to learn from the votes of voters, which only an election can. Use another %s stage.", s.Use, s.Kind)
		case !retrieve:
			l.errorAt(s.UseRange, "Nothing to learn from", "%s learns from the rows of a knowledge, and no retrieve stage stands above (or none is enabled). Put one above: retrieve \"neighbours\" { from = knowledge.NAME }.", s.Use)
		}
	}
}

// reads returns the columns that a stage or one of its fallbacks declares to read.
func (s *Stage) reads() sdk.Columns {
	all := s.Info.Reads
	for _, f := range s.Fallbacks {
		all |= f.Stage.Info.Reads
	}
	return all
}
