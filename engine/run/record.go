package run

import (
	"slices"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// record is an item on its way. Each stage writes to its own output only, so
// that stages can work on the same record at the same time.
type record struct {
	row     source.Row
	id      string
	outputs []output // by stage
	verdict sdk.Verdict
	flagged bool
	texts   bool                 // its candidates are looked at, so they have texts
	ballots map[int][]sdk.Sample // by stage, as Again needs them; nil: not kept
	earlier *Result              // what an earlier part of the run answered; nil: nothing
}

// output is what one stage wrote for one item.
type output struct {
	failure    *Failure
	skipped    *Failure    // the item goes on in spite of it
	missing    *Failure    // the stage is stopped, or needs one that is
	filter     *sdk.Filter // of a retrieve stage: what it searches for this item
	vector     []float32
	candidates []sdk.Candidate
	reranked   bool // candidates are what a rerank stage made of them
	prototypes []sdk.Candidate
	prompts    []sdk.Prompt
	samples    []sdk.Sample
}

// failure returns the first failure among the given stages.
func (r *record) failure(stages []int) *Failure {
	for _, i := range stages {
		if f := r.outputs[i].failure; f != nil {
			return f
		}
	}
	return nil
}

// samples returns the samples of the given stages, in file order.
func (r *record) samples(stages []int) []sdk.Sample {
	var all []sdk.Sample
	for _, i := range stages {
		all = append(all, r.outputs[i].samples...)
	}
	return all
}

// inputs are the stages that another stage reads from: the nearest above that
// writes a column, or all voters above. Those that are not among needs may
// still be at work when the stage is: it must not look at their outputs.
type inputs struct {
	retrieve int // -1: none
	found    int // the nearest that writes candidates: a retrieve or a rerank stage
	prompt   int
	voters   []int
	needs    []int // all stages that must be done first, transitively
	firm     []int // of an election: what it cannot be held without, which a voter is if one of its rules names it
}

// sees reports whether the stage may look at another's output.
func (in inputs) sees(stage int) bool { return stage >= 0 && slices.Contains(in.needs, stage) }

// item puts together what a stage gets to see.
func (s *stage) item(r *record) sdk.Item {
	it := sdk.Item{ID: r.id, Text: r.row.Text, Meta: r.row.Meta}
	if s.in.sees(s.in.retrieve) {
		out := &r.outputs[s.in.retrieve]
		it.Vector, it.Prototypes = out.vector, out.prototypes
	}
	if s.in.sees(s.in.found) && !s.abstains() {
		it.Candidates = r.outputs[s.in.found].candidates
	}
	if s.in.sees(s.in.prompt) {
		it.Prompts = r.outputs[s.in.prompt].prompts
	}
	if s.Info.Reads.Has(sdk.ColumnSamples) {
		it.Samples = r.samples(s.in.voters)
	}
	it.Drawn = len(r.outputs[s.index].samples)
	return it
}
