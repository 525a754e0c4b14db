package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// spent is what the samples of a voter took about an item. In JSON it is
// [in, cached of these, out], with the cost behind them where there is one.
type spent struct {
	sdk.Usage
	cost float64
}

// MarshalJSON implements json.Marshaler.
func (s spent) MarshalJSON() ([]byte, error) {
	all := []any{s.InputTokens, s.CachedTokens, s.OutputTokens}
	if s.cost != 0 {
		all = append(all, s.cost)
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *spent) UnmarshalJSON(text []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	to := []any{&s.InputTokens, &s.CachedTokens, &s.OutputTokens, &s.cost}
	if len(all) < 3 || len(all) > len(to) {
		return fmt.Errorf("what a voter took are three or four numbers, and not %d", len(all))
	}
	for i := range all {
		if err := json.Unmarshal(all[i], to[i]); err != nil {
			return err
		}
	}
	return nil
}

// spend fills in what each voter took.
func (e *entry) spend(r *outcome.Result) {
	for voter, usage := range r.Usages {
		if e.Spent == nil {
			e.Spent = map[string]spent{}
		}
		e.Spent[voter] = spent{usage, r.Costs[voter]}
	}
}

// took is the sum over the voters, in the order in which a result sums costs up.
func (e *entry) took() (usage sdk.Usage, cost float64) {
	for _, voter := range slices.Sorted(maps.Keys(e.Spent)) {
		s := e.Spent[voter]
		usage.Add(s.Usage)
		cost += s.cost
	}
	return usage, cost
}

// whole is result with what is not needed to resume a run: what each voter took, and the
// votes about an item that failed.
func (e *entry) whole() outcome.Result {
	r := e.result()
	for voter, s := range e.Spent {
		if r.Usages == nil {
			r.Usages, r.Costs = map[string]sdk.Usage{}, map[string]float64{}
		}
		if r.Usages[voter] = s.Usage; s.cost != 0 {
			r.Costs[voter] = s.cost
		}
	}
	if e.Answer == nil {
		for _, v := range e.Votes {
			r.Votes = append(r.Votes, outcome.Vote(v))
		}
	}
	return r
}
