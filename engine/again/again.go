package again

import (
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Terms say which answers of an earlier run hold.
type Terms struct {
	Run     string   // the earlier one
	All     bool     // nothing has changed
	Changed []string // why none of them holds; nil: it depends on what their items get from the knowledge
}

// TermsOf compares an earlier run with a new one. searchable says that all searches can be done
// before other stages.
func TermsOf(old, now manifest.Manifest, searchable bool) Terms {
	t := Terms{Run: old.ID}
	attached := slices.ContainsFunc(now.Knowledge, func(k manifest.Knowledge) bool { return k.Attached }) // whose rows may have changed all the same
	same := slices.Equal(old.Knowledge, now.Knowledge) && !attached
	before, after := old, now
	before.Knowledge, after.Knowledge, before.Limit = nil, nil, after.Limit
	t.Changed = before.Differences(after)
	switch {
	case len(t.Changed) > 0:
	case same:
		t.All = true
	case old.Labels == "" || old.Labels != now.Labels:
		t.Changed = []string{"the labels of the knowledge"}
	case !searchable:
		t.Changed = []string{"the knowledge, and a search waits for other stages"}
	}
	return t
}

// Same refuses an earlier run that cannot be compared with a new one: it is of another pipeline, or
// over another input.
func Same(old, now manifest.Manifest) error {
	switch {
	case old.File != now.File || old.Pipeline != now.Pipeline:
		return fmt.Errorf("run %s is of pipeline %q in %s", old.ID, old.Pipeline, old.File)
	case !old.Input.Same(now.Input):
		return fmt.Errorf("run %s is over an input that was another: its answers cannot be told from one another; run without them", old.ID)
	}
	return nil
}

// Journal is the journal of the new run with the answers of the earlier one. It is a
// run.Recaller.
type Journal struct {
	*journal.Journal
	old   *journal.Journal
	terms Terms
}

// Of returns the journal of a new run that takes answers of an earlier one, on these terms.
func Of(book, old *journal.Journal, terms Terms) *Journal { return &Journal{book, old, terms} }

// Recall returns the earlier answer to a row, where it may hold: as it is, or only if its item
// gets the same from the knowledge as its Basis says.
func (j *Journal) Recall(row source.Row) (r outcome.Result, holds, ok bool) {
	if len(j.terms.Changed) > 0 {
		return r, false, false
	}
	r, ok = j.old.Answered(row)
	if !ok || r.Decided != nil || r.Unasked != nil {
		return outcome.Result{}, false, false
	}
	r.Asked = nil
	if r.From == "" {
		r.From = j.old.ID()
	}
	return r.Unpaid(), j.terms.All, true
}

// Take keeps earlier answers that hold.
func (j *Journal) Take(results []outcome.Result) error { return j.Copy(j.old, results) }

// Done lets go of the earlier run, which is as it was.
func (j *Journal) Done() error { return j.old.Close(nil) }
