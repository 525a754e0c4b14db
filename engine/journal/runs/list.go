package runs

import (
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
)

// State is what a run has come to.
type State string

// States of a run. Resuming does something for those that are Unfinished or have
// FailedItems.
const (
	Complete    State = "complete"
	Unfinished  State = "unfinished"
	FailedItems State = "failed items"
	AtWork      State = "at work"
	Damaged     State = "damaged" // its manifest cannot be read
)

// Info describes a run.
type Info struct {
	ID       string
	Manifest manifest.Manifest // zero where the run was killed as it began, or is Damaged
	Answered int               // items that resuming would not ask again
	Items    int               // of the input, up to the limit; 0: not known, since the run did not come to its end
	Tokens   uint64            // that the answers took, in and out
	Cost     float64           // of them, by the prices in the file
	State    State
	End      *journal.Totals // nil: it was cut off, or is at work
	Bytes    int64           // of its files
}

// List describes all runs, oldest first.
func (r Runs) List() []Info {
	var all []Info
	ids, _ := r.list()
	for _, id := range ids {
		all = append(all, r.Info(id))
	}
	return all
}

// Info describes a run. One that was killed as it began is Unfinished, so that it can be
// removed.
func (r Runs) Info(id string) Info {
	dir := r.folder(id)
	m, err := manifest.Read(dir)
	info := Info{ID: id, Manifest: m, State: Unfinished, End: journal.End(dir), Bytes: journal.Size(dir)}
	switch end := info.End; {
	case err != nil && manifest.Has(dir):
		info.State = Damaged
	case end == nil && journal.Busy(dir):
		info.State = AtWork
	case end.Unfinished():
	case end.Failed > 0:
		info.State = FailedItems
	default:
		info.State = Complete
	}
	if end := info.End; end != nil && end.Complete {
		info.Answered, info.Items = end.Items-end.Failed-end.Provisional, end.Items+end.Left
		info.Tokens, info.Cost = end.InputTokens+end.OutputTokens, end.Cost
	} else {
		t := journal.Count(dir, m.Format)
		info.Answered, info.Tokens, info.Cost = t.Items, t.Usage.InputTokens+t.Usage.OutputTokens, t.Cost
	}
	return info
}

// Unfinished counts the runs that stay until they are resumed or removed, those
// at work included.
func (r Runs) Unfinished() int {
	n := 0
	ids, _ := r.list()
	for _, id := range ids {
		if r.End(id).Owes() {
			n++
		}
	}
	return n
}
