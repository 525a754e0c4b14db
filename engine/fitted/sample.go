package fitted

import (
	"context"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// A stage learns from at most so many rows of a knowledge, and fewer where the vectors that it
// reads would take more than 256 MiB; of more, from a sample that treats labels alike.
var maxRows = 200_000 // tests lower it
const maxFloats = 64 << 20

// bound is how many rows the stage learns from, but for a row of each label.
func (j Job) bound() int {
	_, _, n := j.Knowledge.Learnt()
	if wide := j.Knowledge.Dimension; wide > 0 && j.Stage.Info.FitReads.Has(sdk.ColumnVector) {
		n = min(n, maxFloats/wide)
	}
	return min(n, maxRows)
}

// draw returns the highest rank of each label that is in the sample, and how many rows are;
// nil: all are. It reads ids and labels alone, and keeps eight bytes for each row.
func (j Job) draw(ctx context.Context) (last map[string]uint64, n int, err error) {
	if _, _, n = j.Knowledge.Learnt(); n <= j.bound() {
		return nil, n, nil
	}
	ranks := map[string][]uint64{}
	err = j.Knowledge.Entries(ctx, sdk.Scan{}, func(e sdk.Entry) { ranks[e.Label] = append(ranks[e.Label], support.StratifiedRank(e.ID)) })
	var sizes []int
	for _, of := range ranks {
		sizes = append(sizes, len(of))
	}
	each := max(1, support.EachStratified(sizes, j.bound())) // no label goes without
	last, n = map[string]uint64{}, 0
	for label, of := range ranks {
		slices.Sort(of)
		of = of[:min(each, len(of))]
		last[label], n = of[len(of)-1], n+len(of)
	}
	return last, n, err
}
