package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Record is an item in work. Each stage writes only to its own output, so that stages can work on
// the same record at the same time.
type Record struct {
	Row   source.Row
	Given *Given // nil: the stages answer

	id      string
	outputs []output // by stage
	verdict sdk.Verdict
	flagged bool
	// citations are the passages that the verdict cites, or that support it.
	citations []outcome.Citation
	texts     bool                 // the item's candidates are shown, so they need texts
	follow    func(Step)           // called when a stage has finished the item; nil: no callback
	ballots   map[int][]sdk.Sample // the voters' samples by stage; nil: not kept
}

// Given is an answer from elsewhere: no stage is called for the item.
type Given struct {
	From   Origin
	Result outcome.Result // without the fields that the row sets
	Left   bool           // the item is left unanswered for a resumed run; see Graph.Result
}

// Origin is the source of an answer.
type Origin uint8

// Origins of answers that do not come from stages.
const (
	Earlier Origin = iota // the journal, from an earlier part of the run
	Person                // a person's decision about the text
)

// From reports whether the item's answer has this origin.
func (r *Record) From(o Origin) bool { return r.Given != nil && r.Given.From == o }

// Unanswered reports whether stages must be asked about the item: its row is usable, and it has no answer
// yet.
func (r *Record) Unanswered() bool { return r.Row.Err == nil && r.Given == nil }

// output is the output of one stage for one item.
type output struct {
	trace
	failure    *outcome.Failure
	skipped    *outcome.Failure // the stage failed and has on_error = "skip", or abstains
	refused    bool             // the voter's service refuses the item, so the voter abstains
	missing    *outcome.Failure // the stage had to stop, or needs a stage that had to stop
	withheld   bool             // Options.Ask excludes the voter
	idle       bool             // the stage's when rule does not hold
	filter     *sdk.Filter      // of a retrieve stage: its filter for this item
	vector     []float32
	candidates []sdk.Candidate
	reranked   bool // a rerank stage made the candidates
	prototypes []sdk.Candidate
	prompts    []sdk.Prompt
	samples    []sdk.Sample
	collected  []string // see outcome.Result.Collected
}

// ID returns the row's id or, if it has none, its line.
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

// inputs are the stages whose outputs another stage reads: the nearest above that writes a column,
// or all voters above. A stage must not read outputs of stages outside needs, because these stages
// may still be working.
type inputs struct {
	retrieve int // -1: none
	found    int // the nearest stage that writes candidates: retrieve or rerank
	prompt   int
	voters   []int
	needs    []int // all stages that must finish first, transitively
	firm     []int // of an election: required stages, other than voters
}

// sees reports whether the stage may read another's output.
func (in inputs) sees(stage int) bool { return stage >= 0 && slices.Contains(in.needs, stage) }

// item returns the parts of an item that a stage reads.
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

// rejections returns a voter's samples without an accepted answer.
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

// forgetTexts drops the texts of models, which are not needed once the voter is not asked again.
func (r *Record) forgetTexts(stage int) {
	for i := range r.outputs[stage].samples {
		r.outputs[stage].samples[i].Text = ""
	}
}

// Result returns the result of an item. left means that the item stays unanswered for a resumed
// run, because it has no answer without the missing voters.
func (g *Graph) Result(rec *Record) (out outcome.Result, left bool) {
	row := rec.Row
	out = outcome.Result{
		Line: row.Line, ID: rec.id, Text: row.Text, Expected: g.Renames().In(g.form, row.Label), Gold: row.Gold, Fields: row.Fields,
		Answer: rec.verdict.Answer, Form: g.form, Verdict: result.Verdict{
			Agreement: rec.verdict.Agreement, Confidence: rec.verdict.Confidence, Unknown: rec.verdict.Unknown, Labels: rec.verdict.Labels,
			Reason: rec.verdict.Reason, Flagged: rec.flagged,
		},
		RetrievalOnly: g.elect < 0, FreeText: g.elect >= 0 && g.retrieve >= 0 && len(g.Labels()) == 0,
	}
	if file, line := row.Place(); file != "" {
		out.File, out.FileLine = file, line
	}
	if row.Err != nil {
		out.Failure = &outcome.Failure{Err: row.Err}
		return out, false
	}
	if given := rec.Given; given != nil {
		return withRow(given.Result, out), given.Left
	}
	for i := range rec.outputs {
		if f := rec.outputs[i].failure; f != nil && out.Failure == nil {
			out.Failure = f
		}
		if f := rec.outputs[i].skipped; f != nil {
			out.Skipped = append(out.Skipped, f)
		}
	}
	if out.Failure == nil {
		out.Missing, left = g.without(rec)
	}
	if g.elect >= 0 && out.Failure == nil && out.Answer == "" && out.Reason == "" {
		out.Reason = "no election was held: its when rule does not hold"
	}
	out.Citations = rec.citations
	out.Votes = g.votes(rec)
	g.bill(rec, &out)
	if g.found >= 0 {
		out.Candidates = rec.outputs[g.found].candidates
	}
	for i, s := range g.stages {
		if prompts := rec.outputs[i].prompts; len(prompts) > 0 {
			out.Prompts = append(out.Prompts, outcome.Prompted{Stage: s.String(), Prompts: prompts})
		}
		out.Collected = append(out.Collected, rec.outputs[i].collected...)
	}
	g.trace(rec, &out)
	return out, left
}

// bill adds to a result the requests, usage and cost of its voters.
func (g *Graph) bill(rec *Record, result *outcome.Result) {
	for _, s := range rec.samples(g.voters) {
		if s.Key != (sdk.Key{}) {
			result.Requests = append(result.Requests, outcome.Request{Voter: s.Voter, Key: s.Key})
		}
		if result.Usage.Add(s.Usage); s.Usage == (sdk.Usage{}) {
			continue
		}
		if result.Usages == nil {
			result.Usages = map[string]sdk.Usage{}
		}
		of := result.Usages[s.Voter]
		of.Add(s.Usage)
		result.Usages[s.Voter] = of
	}
	for _, voter := range slices.Sorted(maps.Keys(result.Usages)) { // sorted, as floating-point sums depend on the order
		cost := g.pipeline.Cost(voter, result.Usages[voter])
		if result.Cost += cost; cost > 0 {
			if result.Costs == nil {
				result.Costs = map[string]float64{}
			}
			result.Costs[voter] = cost
		}
	}
}

// withRow sets the fields of a result that come from the row and the pipeline.
func withRow(r, row outcome.Result) outcome.Result {
	r.Line, r.File, r.FileLine, r.ID, r.Text = row.Line, row.File, row.FileLine, row.ID, row.Text
	r.Expected, r.Gold, r.Fields = row.Expected, row.Gold, row.Fields
	r.Form, r.RetrievalOnly, r.FreeText = row.Form, row.RetrievalOnly, row.FreeText
	return r
}

// FoundAll returns the candidates of the last retrieve or rerank stage for rows that travel
// together, best first, with texts, or an error per row. It calls only the stages that this stage
// needs.
func (g *Graph) FoundAll(ctx context.Context, rows []source.Row) (found [][]sdk.Candidate, errs []error) {
	found, errs = make([][]sdk.Candidate, len(rows)), make([]error, len(rows))
	if g.found < 0 {
		for i := range errs {
			errs[i] = errors.New("the pipeline has no retrieve block that is used")
		}
		return found, errs
	}
	records := make([]*Record, len(rows))
	for i, row := range rows {
		records[i] = g.NewRecord(row)
		records[i].texts = true
	}
	stages := append(slices.Clip(g.stages[g.found].in.needs), g.found)
	g.run(ctx, records, func(i int) bool { return slices.Contains(stages, i) })
	for i, rec := range records {
		if err := ctx.Err(); err != nil {
			errs[i] = err
		} else if rec.Row.Err != nil {
			errs[i] = rec.Row.Err
		} else if f := cmp.Or(rec.failure(stages), rec.missing(stages)); f != nil {
			errs[i] = f
		} else {
			found[i] = rec.outputs[g.found].candidates
		}
	}
	return found, errs
}

// promptOf returns the prompt of a voter's sample, and the candidates that the prompt was written
// from. Samples use the item's prompts in turn.
func (g *Graph) promptOf(rec *Record, voter, sample int) (sdk.Prompt, []sdk.Candidate) {
	in := g.stages[voter].in
	if !in.sees(in.prompt) || len(rec.outputs[in.prompt].prompts) == 0 {
		return sdk.Prompt{}, nil
	}
	prompts := rec.outputs[in.prompt].prompts
	var found []sdk.Candidate
	if of := g.stages[in.prompt].in; of.sees(of.found) { // a search that the prompt does not read may still be running
		found = rec.outputs[of.found].candidates
	}
	return prompts[sample%len(prompts)], found
}

// accepts reports whether a sample has this answer, accepted.
func accepts(s sdk.Sample, label string) bool {
	return slices.ContainsFunc(s.Answers, func(a sdk.Answer) bool { return a.Accepted && a.Label == label })
}

// notAnswered is the Reason if voters report that the passages in their prompts give no answer.
const notAnswered = "the passages do not answer this"

// decide sets the verdict of an election. If answers are texts, "no label fits" gets another
// reason.
func (s *stage) decide(rec *Record, verdict sdk.Verdict) {
	rec.verdict = verdict
	if verdict.Answer != "" || verdict.Reason != ballot.NoLabelFits {
		return
	}
	for _, v := range s.graph.voters {
		for i, sample := range rec.outputs[v].samples {
			if p, _ := s.graph.promptOf(rec, v, i); p.Passages != nil && accepts(sample, "") {
				rec.verdict.Reason = notAnswered
				return
			}
		}
	}
}
