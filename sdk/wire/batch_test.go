package wire

import (
	"math"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

func TestRankingsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil      func(*stagepb.Rows)
		candidates []int
	}{
		"a row too few":         {func(*stagepb.Rows) {}, []int{3}},
		"a row too many":        {func(*stagepb.Rows) {}, []int{3, 1, 1}},
		"beyond the candidates": {func(*stagepb.Rows) {}, []int{2, 1}},
		"no candidates":         {func(*stagepb.Rows) {}, []int{3, 0}},
		"a huge index":          {func(r *stagepb.Rows) { r.Rankings.Candidate[0] = math.MaxUint32 }, []int{3, 1}},
		"the same twice":        {func(r *stagepb.Rows) { r.Rankings.Candidate[0] = 0 }, []int{3, 1}},
		"a score missing":       {func(r *stagepb.Rows) { r.Rankings.Score = r.Rankings.Score[:2] }, []int{3, 1}},
		"offsets out of order":  {func(r *stagepb.Rows) { r.Rankings.Offsets[1] = 9 }, []int{3, 1}},
	} {
		rows := overWire(t, EncodeRankings([][]sdk.Ranked{{{Candidate: 2}, {Candidate: 0}}, {{Candidate: 0}}}))
		c.spoil(rows)
		if _, err := DecodeRankings(rows, c.candidates); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// The receiver refuses the output of a faulty stage.
	rows := EncodeRankings([][]sdk.Ranked{{{Candidate: -1}}})
	if _, err := DecodeRankings(rows, []int{math.MaxInt16}); err == nil {
		t.Error("a negative index was accepted")
	}
	if !slices.Equal(rows.Rankings.Candidate, []uint32{math.MaxUint32}) {
		t.Errorf("a negative index went out as %v", rows.Rankings.Candidate)
	}
}
