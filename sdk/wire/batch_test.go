package wire

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestRankingsRoundTrip(t *testing.T) {
	want := [][]sdk.Ranked{{{Candidate: 2, Score: .5}, {Candidate: 0, Score: -1}}, {}, {{Candidate: 0}}}
	rows := overWire(t, EncodeRankings(want))
	got, err := DecodeRankings(rows, []int{3, 9, 1})
	must.Do(t, err)
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Error(diff)
	}
	if got, err := DecodeRankings(overWire(t, EncodeRankings(nil)), nil); err != nil || len(got) != 0 {
		t.Errorf("no rows gave %v, %v", got, err)
	}
	for _, rows := range []*stagepb.Rows{nil, {N: 3}} {
		if _, err := DecodeRankings(rows, []int{1, 1, 1}); err == nil {
			t.Errorf("%v was accepted", rows)
		}
	}
}

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
	// What a faulty stage hands over is refused at the other end.
	rows := EncodeRankings([][]sdk.Ranked{{{Candidate: -1}}})
	if _, err := DecodeRankings(rows, []int{math.MaxInt16}); err == nil {
		t.Error("a negative index was accepted")
	}
	if !slices.Equal(rows.Rankings.Candidate, []uint32{math.MaxUint32}) {
		t.Errorf("a negative index went out as %v", rows.Rankings.Candidate)
	}
}
