package run

import (
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
}

// output is what one stage wrote for one item.
type output struct {
	failure    *Failure
	vector     []float32
	candidates []sdk.Candidate
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
// writes a column, or all voters above.
type inputs struct {
	retrieve int // -1: none
	prompt   int
	voters   []int
	needs    []int // all stages that must be done first, transitively
}

// item puts together what a stage that reads the given columns gets to see.
func (r *record) item(in inputs, reads sdk.Columns) sdk.Item {
	it := sdk.Item{ID: r.id, Text: r.row.Text, Meta: r.row.Meta}
	if in.retrieve >= 0 {
		out := &r.outputs[in.retrieve]
		it.Vector, it.Candidates, it.Prototypes = out.vector, out.candidates, out.prototypes
	}
	if in.prompt >= 0 {
		it.Prompts = r.outputs[in.prompt].prompts
	}
	if reads.Has(sdk.ColumnSamples) {
		it.Samples = r.samples(in.voters)
	}
	return it
}
