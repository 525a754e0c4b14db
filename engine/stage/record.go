package stage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/reviewed"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// Record is an item on its way. Each stage writes to its own output only, so that
// stages can work on the same record at the same time.
type Record struct {
	Row     source.Row
	Earlier *outcome.Result // what the journal has; nil: nothing. No stage is called then
	Taken   bool            // Earlier is the answer of another run
	Answer  *Answer         // of another machine; nil: the stages here answer

	searched bool // its searches are done

	decided *reviewed.Row // what a person has decided about its text; nil: nothing. No stage is called then
	id      string
	outputs []output // by stage
	verdict sdk.Verdict
	flagged bool
	texts   bool                 // its candidates are shown, so they have texts
	follow  func(Step)           // hears of each stage that is done with it; nil: nobody does
	ballots map[int][]sdk.Sample // by stage: what voters returned; nil: not kept
}

// Decided reports whether a person has decided about the item.
func (r *Record) Decided() bool { return r.decided != nil }

// output is what one stage wrote for one item.
type output struct {
	trace
	failure    *outcome.Failure
	skipped    *outcome.Failure // the stage failed and has on_error = "skip", or abstains
	refused    bool             // a voter's service refuses the item, so that it abstains
	missing    *outcome.Failure // the stage had to stop, or needs one that had to
	withheld   bool             // Options.Ask does not want the voter asked
	idle       bool             // the stage's when rule does not hold
	filter     *sdk.Filter      // of a retrieve stage: what it searches for this item
	vector     []float32
	candidates []sdk.Candidate
	reranked   bool // candidates are what a rerank stage made of them
	prototypes []sdk.Candidate
	prompts    []sdk.Prompt
	samples    []sdk.Sample
	collected  []string // keys of results that came later
	drawn      string   // digest of the random examples that the stage was given; empty: none
}

// ID is that of the row, or its line where it has none.
func (r *Record) ID() string { return r.id }

func (r *Record) fail(s *stage, err error) {
	r.outputs[s.index].failure = &outcome.Failure{Stage: s.String(), Err: err}
}

// failure returns the first failure among the given stages.
func (r *Record) failure(stages []int) *outcome.Failure {
	for _, i := range stages {
		if f := r.outputs[i].failure; f != nil {
			return f
		}
	}
	return nil
}

// missing returns the first of the given stages that is missing for the item.
func (r *Record) missing(stages []int) *outcome.Failure {
	for _, i := range stages {
		if f := r.outputs[i].missing; f != nil {
			return f
		}
	}
	return nil
}

// samples returns the samples of the given stages, in file order.
func (r *Record) samples(stages []int) []sdk.Sample {
	var all []sdk.Sample
	for _, i := range stages {
		all = append(all, r.outputs[i].samples...)
	}
	return all
}

// inputs are the stages that another stage reads from: the nearest above that writes a
// column, or all voters above. Those that are not among needs may still be at work
// when the stage is: it must not look at their outputs.
type inputs struct {
	retrieve int // -1: none
	found    int // the nearest that writes candidates: a retrieve or a rerank stage
	prompt   int
	voters   []int
	needs    []int // all stages that must be done first, transitively
	firm     []int // of an election: what it cannot be held without; a voter, if one of its rules names it
}

// sees reports whether the stage may look at another's output.
func (in inputs) sees(stage int) bool { return stage >= 0 && slices.Contains(in.needs, stage) }

// item puts together what a stage gets to see.
func (s *stage) item(r *Record) sdk.Item {
	it := sdk.Item{ID: r.id, Text: r.Row.Text, Meta: r.Row.Meta}
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
	it.Rejected = rejections(r.outputs[s.index].samples)
	return it
}

// rejections are what a voter is shown of its samples none of whose answers is accepted.
func rejections(samples []sdk.Sample) []sdk.Rejection {
	var all []sdk.Rejection
	for _, s := range samples {
		if len(s.Answers) == 0 || slices.ContainsFunc(s.Answers, func(a sdk.Answer) bool { return a.Accepted }) {
			continue
		}
		first := s.Answers[0]
		r := sdk.Rejection{Text: cmp.Or(s.Text, first.Label), Reason: first.Reason}
		if r.Reason == notAccepted {
			r.Reason = fmt.Sprintf("%q is not one of the answers that are accepted", first.Label)
		}
		all = append(all, r)
	}
	return all
}

// forgetTexts drops what models wrote, which nobody reads once no answer of theirs is asked for again.
func (r *Record) forgetTexts(stage int) {
	for i := range r.outputs[stage].samples {
		r.outputs[stage].samples[i].Text = ""
	}
}
