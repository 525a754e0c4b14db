package packet

import (
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// bill is an outcome.Bill.
type bill struct {
	Calls     int    `json:"calls"`
	Amounts   floats `json:"amounts"` // cost, most and gain
	Unbounded bool   `json:"unbounded,omitempty"`
}

func billOf(b *outcome.Bill) *bill {
	if b == nil {
		return nil
	}
	return &bill{b.Calls, floatsOf(b.Cost, b.Most, b.Gain), b.Unbounded}
}

func (r *reader) bill(in *bill) *outcome.Bill {
	if in == nil {
		return nil
	}
	out := &outcome.Bill{Calls: in.Calls, Unbounded: in.Unbounded}
	if n := r.numbers(in.Amounts, 3); n != nil {
		out.Cost, out.Most, out.Gain = n[0], n[1], n[2]
	}
	return out
}

func tokens(u sdk.Usage) []uint64 { return []uint64{u.InputTokens, u.CachedTokens, u.OutputTokens} }

func (r *reader) usage(in []uint64) sdk.Usage {
	if len(in) != 3 {
		r.fail("usage is three numbers, and not %d", len(in))
		return sdk.Usage{}
	}
	return sdk.Usage{InputTokens: in[0], CachedTokens: in[1], OutputTokens: in[2]}
}

func (w *writer) usages(all map[string]sdk.Usage) []uint64 {
	if all == nil {
		return nil
	}
	out := []uint64{}
	for _, voter := range slices.Sorted(maps.Keys(all)) {
		out = append(append(out, uint64(w.text(voter))), tokens(all[voter])...)
	}
	return out
}

func (r *reader) usages(in []uint64) map[string]sdk.Usage {
	if in == nil {
		return nil
	}
	all := map[string]sdk.Usage{}
	for one := range slices.Chunk(in, 4) {
		all[r.text(int(min(one[0], maxSize)))] = r.usage(one[1:]) // no packet has that many texts
	}
	return all
}

// costs are the voters that have a price, and what they took.
func (w *writer) costs(all map[string]float64) (voters []int, costs floats) {
	if all == nil {
		return nil, nil
	}
	voters = []int{}
	for _, voter := range slices.Sorted(maps.Keys(all)) {
		voters, costs = append(voters, w.text(voter)), append(costs, floatsOf(all[voter])...)
	}
	return voters, costs
}

func (r *reader) costs(voters []int, costs floats) map[string]float64 {
	if voters == nil {
		return nil
	}
	all := map[string]float64{}
	for i, cost := range r.numbers(costs, len(voters)) {
		all[r.text(voters[i])] = cost
	}
	return all
}
