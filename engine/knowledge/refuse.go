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

// take notes the rows of a batch that failed alone and returns their errors. An
// error of the whole batch it returns, and one that may pass: whoever tries
// again then gets that row too.
func (r *refusals) take(batch []sdk.Entry, err error) (sdk.RowErrors, error) {
	var failed sdk.RowErrors
	if err == nil || !errors.As(err, &failed) {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, why := range failed {
		switch sdk.CodeOf(why) {
		case sdk.CodeTransient, sdk.CodeCancelled, sdk.CodeDeadline:
			return nil, why
		}
		if r.why == nil {
			r.why = map[string]error{}
		}
		r.why[batch[i].ID] = why
	}
	return failed, nil
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

// leaveOut reports the refused rows with their lines, and returns those of
// which the store has an earlier content.
func (b *builder) leaveOut() (stale []string, err error) {
	refused := b.refused.why
	if len(refused) == 0 {
		return nil, nil
	}
	var faults []Fault
	for i, e := range b.rows.entries {
		why := refused[e.ID]
		if why == nil {
			continue
		}
		faults = append(faults, Fault{b.block.Source.Path, b.rows.lines[i], why})
		if b.changed[e.ID] {
			stale = append(stale, e.ID)
		}
	}
	if len(faults) == len(b.rows.entries) {
		return nil, &SourceError{b.block.Source.Range, fmt.Errorf("no row of %s can be used. The first fault: %s", b.block.Source.Path, faults[0])}
	}
	r := &b.Report
	r.Added -= len(faults) - len(stale)
	r.Changed -= len(stale)
	r.Removed += len(stale)
	r.FaultCount += len(faults)
	r.Faults = slices.Concat(r.Faults, faults)
	slices.SortStableFunc(r.Faults, func(x, y Fault) int { return cmp.Compare(x.Line, y.Line) })
	r.Faults = r.Faults[:min(len(r.Faults), maxFaults)]
	b.note.Faults = r.FaultCount
	return stale, nil
}
