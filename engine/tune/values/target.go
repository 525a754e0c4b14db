package values

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Target is an argument or a variable with the values that are tried.
type Target struct {
	eval.Target
	Now string // the value of the file, of a variable; empty: of an argument
	// Unnamed says that nobody named the target: values that do not suit the file are
	// left out.
	Unnamed bool

	stages []*pipeline.Stage // that it changes, as far as that is known
}

// Variable is the name of the variable; empty: the target is an argument.
func (t Target) Variable() string {
	name, ok := strings.CutPrefix(t.Name, "var.")
	if !ok {
		return ""
	}
	return name
}

// Setting says in words what a person is to do to the file.
func (t Target) Setting(value string) string {
	argument := t.Name[strings.LastIndex(t.Name, ".")+1:]
	switch {
	case t.Variable() != "":
		return fmt.Sprintf("%s = %s", argument, value)
	case len(t.stages) == 1:
		return fmt.Sprintf("set %s = %s in %s.%s", argument, value, t.stages[0].Block, t.stages[0].Name)
	}
	return fmt.Sprintf("set %s = %s", t.Name, value)
}

// Calls reports whether voters that ask services have to take part where the target is
// varied: it changes what they are asked, or how the votes are counted.
func (t Target) Calls() bool {
	return len(t.stages) == 0 || slices.ContainsFunc(t.stages, func(s *pipeline.Stage) bool { return !free(s) })
}

// free reports whether a stage can be varied without a service being asked anew.
func free(s *pipeline.Stage) bool {
	return !s.Info.Network && slices.Contains([]string{"retrieve", "rerank", "sample"}, s.Block)
}

// Named are the targets that somebody named, in that order.
func Named(f *pipeline.File, p *pipeline.Pipeline, targets []eval.Target) []Target {
	uses := usesOf(f, p)
	var all []Target
	for _, named := range targets {
		t := Target{Target: named}
		if name := t.Variable(); name != "" {
			t.Now = valueOf(f, name)
			for _, u := range uses {
				if u.variable == name {
					t.stages = append(t.stages, u.stage)
				}
			}
		} else {
			t.stages = stagesOf(p, named.Name)
		}
		all = append(all, t)
	}
	return all
}

// arguments are those of blocks that are tried where nobody names any; of a config, all
// numbers and choices are.
var arguments = map[string][]string{
	"retrieve": {"top_k", "num_candidates", "mode", "fusion", "dense_weight", "rrf_k"},
	"rerank":   {"top_k"},
}

// Found are the targets that are tried where nobody names any: variables of the file that
// are arguments of searches, rerankers and statistical voters, in file order, but for
// those that are tuned otherwise.
func Found(f *pipeline.File, p *pipeline.Pipeline, taken ...string) []Target {
	var all []Target
	for _, u := range usesOf(f, p) {
		known := slices.ContainsFunc(all, func(t Target) bool { return t.Variable() == u.variable })
		if known || slices.Contains(taken, u.variable) || u.argument.OutputUnaffected {
			continue
		}
		config := slices.ContainsFunc(u.stage.Info.Arguments, func(a sdk.Argument) bool { return a.Name == u.argument.Name })
		if !config && !slices.Contains(arguments[u.stage.Block], u.argument.Name) {
			continue
		}
		if tried := grid(u.argument, valueOf(f, u.variable)); len(tried) > 0 {
			t := Named(f, p, []eval.Target{{Name: "var." + u.variable, Values: tried}})[0]
			t.Unnamed = true
			all = append(all, t)
		}
	}
	return slices.DeleteFunc(all, Target.Calls)
}

func valueOf(f *pipeline.File, name string) string {
	for _, v := range f.Variables {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// stagesOf are the enabled stages that a target STAGE.ARGUMENT or BLOCK.STAGE.ARGUMENT
// may mean.
func stagesOf(p *pipeline.Pipeline, target string) []*pipeline.Stage {
	parts := strings.Split(target, ".")
	argument := parts[len(parts)-1]
	var all []*pipeline.Stage
	for _, s := range p.Stages {
		config := slices.ContainsFunc(s.Info.Arguments, func(a sdk.Argument) bool { return a.Name == argument })
		switch {
		case !s.Enabled || len(parts) < 2 || s.Name != parts[len(parts)-2] || len(parts) == 3 && s.Block != parts[0]:
		case config || slices.Contains(blockArguments(s.Block), argument):
			all = append(all, s)
		}
	}
	return all
}

func blockArguments(block string) []string { return grammar.Described("pipeline", block).Names() }
