package packet

import (
	"bytes"
	"encoding/json"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// each makes something of each element; nil of nil.
func each[A, B any](all []A, of func(A) B) []B {
	if all == nil {
		return nil
	}
	out := make([]B, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// decoded reads items that are JSON of their own, so that it is known how many there are before
// anything is made of them.
func decoded[T any](r *reader, all []json.RawMessage) []T {
	if all == nil {
		return nil
	}
	if len(all) > maxItems {
		r.fail("%d items are more than %d", len(all), maxItems)
		return nil
	}
	out := make([]T, len(all))
	for i, one := range all {
		dec := json.NewDecoder(bytes.NewReader(one))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&out[i]); err != nil {
			r.fail("item %d: %v", i+1, err)
			return nil
		}
	}
	return out
}

func (r *reader) rows(in []json.RawMessage) []source.Row {
	return each(decoded[row](r, in), r.row)
}

func (r *reader) results(in []json.RawMessage, rows []source.Row) []outcome.Result {
	all := decoded[*item](r, in)
	if all == nil {
		return nil
	}
	if len(all) != len(rows) {
		r.fail("%d results are not those of %d rows", len(all), len(rows))
		return nil
	}
	out := make([]outcome.Result, len(all))
	for i, one := range all {
		out[i] = r.result(one, rows[i])
	}
	return out
}
