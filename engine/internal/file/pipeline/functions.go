package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// maxFile is the size of the largest file that file() reads.
const maxFile = 1 << 20

// Functions lists the functions that expressions in a file can call.
func Functions() []string { return keys((&loader{}).functions()) }

// functions returns the functions that expressions may call. Functions about the environment, files and paths are
// defined here; the others come from go-cty.
func (l *loader) functions() map[string]function.Function {
	return map[string]function.Function{
		"env":    l.environment(false),
		"secret": l.environment(true),
		"file":   onPath(l.readFile),
		"path": onPath(func(path cty.Value) (cty.Value, error) {
			path, _ = path.Unmark()
			return cty.StringVal(absolute(path.AsString(), l.dir)), nil
		}),

		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "chomp": stdlib.ChompFunc, "coalesce": stdlib.CoalesceFunc,
		"compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc,
		"floor": stdlib.FloorFunc, "format": stdlib.FormatFunc, "indent": stdlib.IndentFunc, "join": stdlib.JoinFunc,
		"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "keys": stdlib.KeysFunc,
		"length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "lower": stdlib.LowerFunc, "max": stdlib.MaxFunc,
		"merge": stdlib.MergeFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "regex": stdlib.RegexFunc,
		"replace": stdlib.ReplaceFunc, "reverse": stdlib.ReverseListFunc, "slice": stdlib.SliceFunc,
		"sort": stdlib.SortFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc, "substr": stdlib.SubstrFunc,
		"title": stdlib.TitleFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc,
		"trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,
		"values": stdlib.ValuesFunc,
	}
}

// notThere is the beginning of an error that reveals nothing about a value.
const notThere = "the environment has no"

// environment makes env and secret: they take a name, and a default for an unset variable. In a disabled stage, an
// unset variable without a default has an unknown value.
func (l *loader) environment(isSecret bool) function.Function {
	what, unset := "variable", func(v cty.Value) cty.Value { return v }
	if isSecret {
		what, unset = "secret", func(v cty.Value) cty.Value { return l.markSecret("", v) }
	}
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String, AllowMarked: true}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if hides(args[0]) {
				return cty.NilVal, function.NewArgErrorf(0, "the name of a variable is shown, so it cannot be made from what is not")
			}
			name := rule.Plain(args[0]).AsString()
			value, ok := l.Getenv(name)
			read := Environment{Name: name, Secret: isSecret, Set: ok, Off: l.off, Open: isOpen(name, value)}
			if !ok && len(args) == 2 {
				read.Default = args[1].AsString()
			}
			if l.note(read) && isSecret && value != "" && len(value) < redact.Shortest {
				l.short = append(l.short, name)
			}
			switch {
			case len(args) > 2:
				return cty.NilVal, errors.New("it takes a name and at most one default")
			case ok && isSecret:
				return l.markSecret(name, cty.StringVal(value)), nil
			case ok && read.Open:
				return cty.StringVal(value).Mark(said{value, true}), nil
			case ok:
				return l.hide(value, fmt.Sprintf("the variable %s of the environment", name)), nil
			case len(args) == 2:
				return unset(args[1]), nil
			case l.off:
				return unset(cty.UnknownVal(cty.String)), nil
			}
			return cty.NilVal, function.NewArgErrorf(0, notThere+" %s %s; set it, or give a default as the second argument", what, name)
		},
	})
}

// note records a variable of the environment that was read, and reports whether it is new.
func (l *loader) note(e Environment) bool {
	if l.file == nil || slices.Contains(l.file.Environment, e) {
		return false
	}
	l.file.Environment = append(l.file.Environment, e)
	return true
}

// markSecret marks the value of a secret with the variable that it comes from; empty: it is the default in the file.
func (l *loader) markSecret(name string, v cty.Value) cty.Value {
	l.hidden++
	if !v.IsKnown() || v.AsString() == "" {
		return v.Mark(secret{})
	}
	l.Secrets.Add(v.AsString())
	return v.Mark(secret{name, v.AsString()})
}

// onPath makes a function of a path. f gets the path with its marks; the marks of its result are added.
func onPath(f func(path cty.Value) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String, AllowMarked: true}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, marks := args[0].Unmark()
			if !path.IsKnown() {
				return cty.UnknownVal(cty.String).WithMarks(marks), nil
			}
			v, err := f(path.WithMarks(marks))
			if err != nil && hides(args[0]) {
				err = errors.New(strings.TrimSuffix(unshown, "."))
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return v.WithMarks(marks), nil
		},
	})
}

// readFile returns the content of a file. The content is not shown if the file lies outside of the folder.
func (l *loader) readFile(path cty.Value) (cty.Value, error) {
	bare, marks := path.Unmark()
	at := absolute(bare.AsString(), l.dir)
	if l.file != nil && !slices.Contains(l.file.Reads, at) {
		l.file.Reads = append(l.file.Reads, at)
	}
	o, _ := originOf(marks)
	o.Text = "file()"
	if have, twice := l.reads[at]; !twice || len(have.Said) > len(o.Said) { // the origin with the fewest typed parts counts
		l.reads[at] = o
	}
	text, err := readText(at)
	if err != nil {
		return cty.NilVal, err
	}
	if !Inside(l.folder(), at) {
		return l.hide(text, o.Shown(at)), nil
	}
	return cty.StringVal(text), nil
}

func readText(path string) (string, error) {
	b, err := bounded.ReadRegular(path, maxFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; a path is relative to this file", err)
	case len(b) > maxFile:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxFile)
	case !utf8.Valid(b):
		return "", fmt.Errorf("%s is not UTF-8 text", path)
	}
	return string(b), nil
}

// Needs returns the stages above stage i for which it must wait, in file order: the stages that write what it, its
// rules or its fallbacks read. It omits stages that are disabled or not Used.
//
// Candidates come from the nearest retrieve or rerank stage above, and other data of the knowledge from the nearest
// retrieve stage. Prompts come from the nearest prompt stage, and samples from all sample stages.
func (p *Pipeline) Needs(i int) []int {
	s := p.Stages[i]
	reads := s.reads()
	var needs []int
	switch {
	case reads&candidates != 0 || s.ruleReadsAbove("candidates", "candidate_labels"):
		needs = append(needs, p.above(i, 1, "retrieve", "rerank")...)
	case reads&fromSearch != 0 || s.ruleReadsAbove("labels"):
		needs = append(needs, p.above(i, 1, "retrieve")...)
	}
	if reads.Has(sdk.ColumnPrompts) {
		needs = append(needs, p.above(i, 1, "prompt")...)
	}
	if s.Block == "elect" || reads.Has(sdk.ColumnSamples) || s.ruleReads("margin", "agreement", "votes") {
		needs = append(needs, p.above(i, i, "sample")...)
	}
	slices.Sort(needs)
	return needs
}

// Used reports whether stage i contributes to the pipeline: it is false for an enabled prompt stage
// whose prompts no enabled stage below reads.
func (p *Pipeline) Used(i int) bool {
	if s := p.Stages[i]; s.Block != "prompt" || !s.Enabled {
		return true
	}
	for j := i + 1; j < len(p.Stages); j++ {
		s := p.Stages[j]
		reads := s.Enabled && s.reads().Has(sdk.ColumnPrompts)
		if s.Enabled && s.Block == "prompt" {
			// The prompts of s replace those of stage i. If nobody reads the prompts of s either, nobody reads those of
			// stage i.
			return reads && p.Used(j)
		}
		if reads {
			return true
		}
	}
	return false
}

// above returns up to n enabled stages above stage i with these types of blocks, nearest first.
func (p *Pipeline) above(i, n int, blocks ...string) []int {
	var found []int
	for j := i - 1; j >= 0 && len(found) < n; j-- {
		if s := p.Stages[j]; slices.Contains(blocks, s.Block) && s.Enabled && p.Used(j) {
			found = append(found, j)
		}
	}
	return found
}

// ruleReadsAbove reports whether a rule reads names that the search above wrote. The keep of a retrieve stage, and the
// rules of its fallbacks, are about the stage's own candidates.
func (s *Stage) ruleReadsAbove(names ...string) bool {
	if s.Block == "retrieve" {
		return slices.ContainsFunc(names, s.When.Reads)
	}
	return s.ruleReads(names...)
}

func (s *Stage) ruleReads(names ...string) bool {
	rules := []*rule.Rule{s.When, s.Keep, s.Accept, s.Flag}
	for _, f := range s.Fallbacks {
		rules = append(rules, f.When, f.Stage.Keep, f.Stage.Accept, f.Stage.Flag)
	}
	return slices.ContainsFunc(rules, func(r *rule.Rule) bool { return slices.ContainsFunc(names, r.Reads) })
}
