package wire

import (
	"fmt"
	"math"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeRankings makes rows of lists of ranked candidates.
func EncodeRankings(lists [][]sdk.Ranked) *stagepb.Rows {
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	out := &stagepb.Rankings{
		Offsets: make([]uint32, 1, len(lists)+1), Candidate: make([]uint32, 0, total), Score: make([]float32, 0, total),
	}
	for _, list := range lists {
		for _, r := range list {
			// A negative index becomes one that no row has: the other side says so.
			out.Candidate = append(out.Candidate, uint32(min(uint64(r.Candidate), math.MaxUint32)))
			out.Score = append(out.Score, r.Score)
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Candidate)))
	}
	return &stagepb.Rows{N: uint32(len(lists)), Rankings: out}
}

// DecodeRankings returns the lists of ranked candidates in rows, where row i had
// candidates[i] of them.
func DecodeRankings(rows *stagepb.Rows, candidates []int) ([][]sdk.Ranked, error) {
	n, in := len(candidates), rows.GetRankings()
	if n > 0 && in == nil {
		return nil, fmt.Errorf("column rankings is missing")
	}
	for _, err := range []error{
		whole("rankings", int(rows.GetN()), n),
		spans("rankings", in.GetOffsets(), n, len(in.GetCandidate())),
		whole("rankings.score", len(in.GetScore()), len(in.GetCandidate())),
	} {
		if err != nil {
			return nil, err
		}
	}
	all := make([]sdk.Ranked, len(in.GetCandidate()))
	lists := make([][]sdk.Ranked, n)
	for i := range lists {
		lo, hi := in.Offsets[i], in.Offsets[i+1]
		seen := make([]bool, candidates[i])
		for j := lo; j < hi; j++ {
			c, score := in.Candidate[j], in.Score[j]
			switch {
			case uint64(c) >= uint64(len(seen)):
				return nil, fmt.Errorf("column rankings: candidate %d of %d in row %d", c, len(seen), i)
			case seen[c]:
				return nil, fmt.Errorf("column rankings: candidate %d stands twice in row %d", c, i)
			}
			seen[c] = true
			all[j] = sdk.Ranked{Candidate: int(c), Score: score}
		}
		lists[i] = all[lo:hi:hi]
	}
	return lists, nil
}
