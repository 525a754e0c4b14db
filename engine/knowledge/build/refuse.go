package build

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/sdk"
)

// refusals are entries that the embedder or the store cannot take, by id.
type refusals struct {
	mu  sync.Mutex
	why map[string]error
}

func (r *refusals) add(id string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil {
		r.why = map[string]error{}
	}
	r.why[id] = why
}

// take adds the rows of a batch that failed alone. It returns an error of the whole
// batch, and one that may pass: whoever tries again then gets that row too.
func (r *refusals) take(batch []sdk.Entry, err error) error {
	var failed sdk.RowErrors
	if err == nil || !errors.As(err, &failed) {
		return err
	}
	for _, why := range failed {
		if stages.Passes(why) {
			return why
		}
	}
	for i, why := range failed {
		r.add(batch[i].ID, why)
	}
	return nil
}

// leaveOut reports what could not be used with its place, and returns those entries
// of which the store has an earlier content; held is how many it had before.
func (w *walk) leaveOut(stock *units.Stock, held int) (stale []string, err error) {
	var invalid []units.InvalidRow
	for id, why := range w.unusable {
		invalid = append(invalid, w.Source.At(id, why))
	}
	for id, why := range w.refused.why {
		unit, number := stock.UnitOf(id)
		if w.Chunker != nil {
			why = fmt.Errorf("chunk %d: %w", number, why)
		}
		invalid = append(invalid, w.Source.At(unit, why))
		if stock.Replaced(id) {
			stale = append(stale, id)
		}
	}
	r := &w.Report
	r.Added -= len(w.refused.why) - len(stale)
	r.Changed -= len(stale)
	r.Removed += len(stale)
	r.InvalidCount += len(invalid)
	slices.SortFunc(invalid, func(x, y units.InvalidRow) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Err.Error(), y.Err.Error()))
	})
	if held+r.Added-r.Removed == 0 {
		what := "row"
		if w.Block.Documents() != nil {
			what = "document"
		}
		err := fmt.Errorf("no %s of %s can be used", what, w.Block.Main().Path)
		if len(invalid) > 0 {
			err = fmt.Errorf("%w. The first error: %s", err, invalid[0])
		}
		return nil, &units.SourceError{Range: w.Block.Main().Range, Err: err}
	}
	if len(invalid) == 0 {
		return nil, nil
	}
	r.Invalid = slices.Concat(r.Invalid, invalid)
	slices.SortStableFunc(r.Invalid, func(x, y units.InvalidRow) int { return cmp.Compare(x.Line, y.Line) })
	r.Invalid = r.Invalid[:min(len(r.Invalid), units.MaxInvalid)]
	w.note.Invalid = r.InvalidCount
	return stale, nil
}
