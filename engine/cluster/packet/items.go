package packet

import (
	"bytes"
	"encoding/json"
	"slices"

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

// flat is a list of tuples as numbers, one behind the other; nil of nil.
func flat[T any](all []T, add func(out []int, one T) []int) []int {
	if all == nil {
		return nil
	}
	out := []int{}
	for _, one := range all {
		out = add(out, one)
	}
	return out
}

// unflat makes something of each tuple of n numbers.
func unflat[T any](r *reader, what string, in []int, n int, of func([]int) T) []T {
	if in == nil || !r.tuples(what, in, n) {
		return nil
	}
	out := make([]T, 0, len(in)/n)
	for one := range slices.Chunk(in, n) {
		out = append(out, of(one))
	}
	return out
}

// tuples reports whether a list is one of tuples of n.
func (r *reader) tuples(what string, list []int, n int) bool {
	if len(list)%n != 0 {
		r.fail("%s of %d numbers, which is no multiple of %d", what, len(list), n)
		return false
	}
	return true
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
