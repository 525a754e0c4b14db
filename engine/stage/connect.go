package stage

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/fitted"
	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Know gives the graph a knowledge that its retrieve stages search. It fails where a
// stage needs labels and the knowledge has none, or searches in a way that it cannot be searched.
func (g *Graph) Know(block *pipeline.Knowledge, k *knowledge.Knowledge) error {
	for _, s := range g.stages {
		if s == nil || s.Retrieve == nil || s.Retrieve.From != block {
			continue
		}
		all := []*pipeline.Stage{s.Stage}
		for _, f := range s.Fallbacks {
			all = append(all, f.Stage)
		}
		for _, one := range all {
			if one.Retrieve == nil {
				continue
			}
			if err := k.CheckMode(one.Retrieve.Ranking.Mode); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	if len(k.Labels) == 0 {
		if err := g.checkLabels(block); err != nil {
			return err
		}
	}
	g.knowledge[block], g.labels[block] = k, rule.NewLabelSet(k.Labels)
	return nil
}

// Processes starts the process of each stage that has one and does not learn from
// knowledge, by its position in the pipeline.
func (g *Graph) Processes(start func(i int, s *pipeline.Stage)) {
	for i, s := range g.stages {
		if s != nil && s.Kind != "" && !s.Info.Fits {
			start(i, s.Stage)
		}
	}
}

// Connect gives the stages their processes, by position in the pipeline, and starts
// those of fallbacks and of stages that learn. All knowledge is known by then.
func (g *Graph) Connect(ctx context.Context, processes []any, start launch.Func) error {
	for i, s := range g.stages {
		if s == nil {
			continue
		}
		if err := g.connect(ctx, s, processes[i], start); err != nil {
			return err
		}
	}
	for _, k := range g.knowledge {
		k.Begin(g.pipeline.Name, g.options.Observe)
	}
	return nil
}

func (g *Graph) connect(ctx context.Context, s *stage, process any, start launch.Func) (err error) {
	if at := s.in.retrieve; at >= 0 {
		block := g.stages[at].Retrieve.From
		s.knowledge, s.labels, s.above = g.knowledge[block], g.labels[block], g.labels[block]
		s.whole = g.stages[at].whole
	}
	if s.Retrieve != nil {
		s.knowledge, s.labels = g.knowledge[s.Retrieve.From], g.labels[s.Retrieve.From]
		if s.whole, err = s.readWhole(ctx); err != nil {
			return err
		}
	}
	if err := s.open(ctx, process, start); err != nil {
		return err
	}
	for _, definition := range s.Fallbacks {
		f := &stage{
			Stage: definition.Stage, graph: g, name: s.name + ", fallback." + definition.Name, index: s.index, in: s.in, knowledge: s.knowledge, labels: s.labels, above: s.above,
			rescue: true, ending: newEnding(), slots: g.slotsOf(definition.Stage),
		}
		if f.Retrieve == nil { // one of those searches
			f.whole = s.whole
		}
		if err := f.open(ctx, nil, start); err != nil {
			return err
		}
		s.fallbacks = append(s.fallbacks, f)
	}
	return nil
}

// open starts the process of a stage unless it is there, and gives it to the stage, which
// learns from its knowledge first where it has to. A retrieve stage has none.
func (s *stage) open(ctx context.Context, process any, start launch.Func) (err error) {
	switch {
	case s.Kind == "" || process != nil:
	case !s.Info.Fits:
		process, err = start(ctx, launch.Request{Stage: s.Stage})
	case s.Block != "elect" && s.graph.options.Holdout.Of(s.knowledge):
		return s.fold(ctx, s.learning(start))
	default:
		process, s.learnt, err = fitted.Start(ctx, s.learning(start))
	}
	if err != nil {
		return err
	}
	return s.connect(process)
}

// connect gives a stage its process; nil: a retrieve stage has none.
func (s *stage) connect(process any) (err error) {
	s.process = process
	if f, ok := process.(sdk.Fingerprinter); ok && s.Kind != "" {
		s.fingerprint = f.Fingerprint()
		s.identity = identity.Stage(s.Stage, f) + s.learnt
		if s.knowledge != nil && s.Info.Reads&sdk.Of(sdk.ColumnLabels, sdk.ColumnRandom) != 0 {
			collection, content := s.knowledge.Generation()
			s.identity += collection + content
		}
	}
	if r, ok := process.(sdk.Resolver); ok && s.Kind != "" {
		s.resolved = r.Resolved()
	}
	s.method, err = s.methodOf(process)
	return err
}

// checkLabels refuses a knowledge without labels where a stage cannot work without
// them. Voters on prompts can: they may answer questions from passages.
func (g *Graph) checkLabels(block *pipeline.Knowledge) error {
	if len(g.voters) == 0 {
		return nil
	}
	for _, s := range g.stages {
		if s == nil || s.in.retrieve < 0 || g.stages[s.in.retrieve].Retrieve.From != block {
			continue
		}
		var why string
		switch {
		case s.Info.Reads.Has(sdk.ColumnLabels):
			why = fmt.Sprintf("so %s (%s) has none to choose from", s, s.Use)
		case s.Kind == sdk.KindSample && !s.Info.Reads.Has(sdk.ColumnPrompts):
			why = fmt.Sprintf("so there is nothing to vote for, which %s (%s) does", s, s.Use)
		case s.Accept.Reads("labels") || s.Accept.Reads("candidate_labels"):
			why = fmt.Sprintf("so the accept rule of %s takes no answer", s)
		default:
			continue
		}
		from := "row of " + block.Main().Path
		advice := `name the column that holds it with label = "..." in the source block, or`
		switch {
		case block.Attached():
			from, advice = "entry of "+block.Collection(), `name the field that holds it with label = "..." in the config of its store, or`
		case block.Documents() != nil:
			from, advice = "document", "let it read rows with labels, or"
		}
		return fmt.Errorf(`knowledge %q: no %s has a label, %s; %s have questions answered from passages, by a prompt with use = "answer" and voters that read it`,
			block.Name, from, why, advice)
	}
	return nil
}
