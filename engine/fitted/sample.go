package fitted

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/stratified"
)

// What a stage learns from at most of the rows of a knowledge: of more, it gets a sample that
// treats labels alike.
const maxFloats = 64 << 20 // of their vectors, where it reads those: 256 MiB

var maxRows = 200_000 // tests lower it

// Most returns how many rows a stage learns from at most, of a knowledge with vectors of a
// dimension. There are more only where there are more labels.
func Most(reads sdk.Columns, dimension int) int {
	if reads.Has(sdk.ColumnVector) && dimension > 0 {
		return min(maxRows, maxFloats/dimension)
	}
	return maxRows
}

// most is Most for the job; sampled: the knowledge has more rows.
func (j Job) most() (n int, sampled bool) {
	_, _, rows := j.Knowledge.Learnt()
	n = Most(j.Stage.Info.FitReads, j.Knowledge.Dimension())
	return min(n, rows), n < rows
}

// from is what is learnt from beside the content of the knowledge: a sample is something else
// than all rows.
func (j Job) from() string {
	if n, sampled := j.most(); sampled && j.Rows == nil {
		return fmt.Sprint(j.From, " sample ", n)
	}
	return j.From
}

// sample is the rows that are learnt from: by label, the highest rank of those that are; nil:
// all are.
type sample map[string]uint64

// draw returns the sample, and how many rows it has. It reads ids and labels alone, and keeps
// eight bytes for each row.
func (j Job) draw(ctx context.Context) (chosen sample, n int, err error) {
	most, sampled := j.most()
	if !sampled {
		return nil, most, nil
	}
	ranks := map[string][]uint64{}
	if err := j.Knowledge.Entries(ctx, sdk.Scan{}, func(e sdk.Entry) {
		ranks[e.Label] = append(ranks[e.Label], stratified.Rank(e.ID))
	}); err != nil {
		return nil, 0, err
	}
	sizes := make([]int, 0, len(ranks))
	for _, of := range ranks {
		sizes = append(sizes, len(of))
	}
	each := max(1, stratified.Each(sizes, most)) // no label goes without
	chosen = sample{}
	for label, of := range ranks {
		slices.Sort(of)
		of = of[:min(each, len(of))]
		chosen[label], n = of[len(of)-1], n+len(of)
	}
	return chosen, n, nil
}

// of returns those of some rows that are in the sample.
func (s sample) of(rows []sdk.TrainingRow) []sdk.TrainingRow {
	if s == nil {
		return rows
	}
	return slices.DeleteFunc(rows, func(r sdk.TrainingRow) bool { return stratified.Rank(r.ID) > s[r.Label] })
}
