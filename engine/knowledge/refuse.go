package knowledge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// refusals are entries that the embedder or the store cannot take, by id.
type refusals struct {
	mu  sync.Mutex
	why map[string]error
}

// takeRows notes the rows of a batch that failed alone. An error of the whole batch
// it returns, and one that may pass: whoever tries again then gets that row too.
func (r *refusals) takeRows(batch []sdk.Entry, err error) error {
	var failed sdk.RowErrors
	if err == nil || !errors.As(err, &failed) {
		return err
	}
	errs := make([]error, len(batch))
	for i, why := range failed {
		if passes(why) {
			return why
		}
		errs[i] = why
	}
	_ = r.take(batch, errs)
	return nil
}

// take notes the rows of a batch that failed, and returns their errors.
func (r *refusals) take(batch []sdk.Entry, errs []error) sdk.RowErrors {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := sdk.RowErrors{}
	for i, why := range errs {
		if why == nil {
			continue
		}
		if r.why == nil {
			r.why = map[string]error{}
		}
		r.why[batch[i].ID], failed[i] = why, why
	}
	return failed
}

// without returns the rows of a batch that did not fail.
func without(batch []sdk.Entry, failed sdk.RowErrors) []sdk.Entry {
	if len(failed) == 0 {
		return batch
	}
	var rest []sdk.Entry
	for i, e := range batch {
		if failed[i] == nil {
			rest = append(rest, e)
		}
	}
	return rest
}

// leaveOut reports what could not be used with its place, and returns those
// entries of which the store has an earlier content.
func (b *builder) leaveOut() (stale []string, err error) {
	var faults []InvalidRow
	for id, why := range b.unusable {
		at := b.rows.places[id]
		at.Err = why
		faults = append(faults, at)
	}
	refused := b.refused.why
	for id, why := range refused {
		unit, number := b.unitOf(id)
		at := b.rows.places[unit]
		if at.Err = why; b.chunker != nil {
			at.Err = fmt.Errorf("chunk %d: %w", number, why)
		}
		faults = append(faults, at)
		if b.changed[id] {
			stale = append(stale, id)
		}
	}
	r := &b.Report
	r.Added -= len(refused) - len(stale)
	r.Changed -= len(stale)
	r.Removed += len(stale)
	r.InvalidCount += len(faults)
	slices.SortFunc(faults, func(x, y InvalidRow) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Err.Error(), y.Err.Error()))
	})
	if b.held+r.Added-r.Removed == 0 {
		what := "row"
		if b.block.Source.Documents != nil {
			what = "document"
		}
		err := fmt.Errorf("no %s of %s can be used", what, b.block.Source.Path)
		if len(faults) > 0 {
			err = fmt.Errorf("%w. The first error: %s", err, faults[0])
		}
		return nil, &SourceError{b.block.Source.Range, err}
	}
	if len(faults) == 0 {
		return nil, nil
	}
	r.Invalid = slices.Concat(r.Invalid, faults)
	slices.SortStableFunc(r.Invalid, func(x, y InvalidRow) int { return cmp.Compare(x.Line, y.Line) })
	r.Invalid = r.Invalid[:min(len(r.Invalid), maxFaults)]
	b.note.Invalid = r.InvalidCount
	return stale, nil
}
