package journal

import (
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// This file decides which answers of an earlier run still hold, for a new run over the same
// input: it takes these, and answers the others anew.
//
// An answer holds where nothing that has changed can affect it. Where the file, what stages work
// with or have learnt, or racflow itself has changed, none does. Where only the knowledge has,
// an item's answer holds if the knowledge has the same labels, and the item gets the same from
// it: each search finds the same candidates with the same labels and scores, and texts where a
// stage reads them, the same centroids of labels, and the same random examples are drawn for its
// prompts. All that stages below see of a knowledge is that, so they would be asked the same
// again. So the searches are done for every item, and nothing else for those whose answers hold. That is
// also done where an attached collection is searched: its owner may have changed it, and nobody says so.
//
// Items that failed, that lack a voter, or that a spending limit left to the free voters are
// answered anew, and so are those that people had decided about.
//
// Runs note what their items got from the knowledge (outcome.Basis). What an answer took was
// paid in the earlier run: it does not count here.

// EarlierTerms say which answers of an earlier run hold.
type EarlierTerms struct {
	Run     string   // the earlier one
	All     bool     // nothing has changed
	Changed []string // why none of them holds; nil: it depends on what their items get from the knowledge
}

// EarlierTermsOf compares an earlier run with a new one. searchable says that all searches can be done
// before other stages.
func EarlierTermsOf(old, now Manifest, searchable bool) EarlierTerms {
	t := EarlierTerms{Run: old.ID}
	attached := slices.ContainsFunc(now.Knowledge, func(k ManifestKnowledge) bool { return k.Attached }) // whose rows may have changed all the same
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

// CheckSame refuses an earlier run that cannot be compared with a new one: it is of another pipeline, or
// over another input.
func CheckSame(old, now Manifest) error {
	switch {
	case old.File != now.File || old.Pipeline != now.Pipeline:
		return fmt.Errorf("run %s is of pipeline %q in %s", old.ID, old.Pipeline, old.File)
	case !old.Input.Same(now.Input):
		return fmt.Errorf("run %s is over an input that was another: its answers cannot be told from one another; run without them", old.ID)
	}
	return nil
}

// WithEarlier is the journal of the new run with the answers of the earlier one. It is a
// run.Recaller.
type WithEarlier struct {
	*Journal
	old   *Journal
	terms EarlierTerms
}

// NewWithEarlier returns the journal of a new run that takes answers of an earlier one, on these terms.
func NewWithEarlier(now, old *Journal, terms EarlierTerms) *WithEarlier {
	return &WithEarlier{now, old, terms}
}

// Recall returns the earlier answer to a row. ok: there is one that may hold. holds: it does;
// else it does only if its item gets the same from the knowledge as its Basis says.
func (j *WithEarlier) Recall(row source.Row) (r outcome.Result, holds, ok bool) {
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
func (j *WithEarlier) Take(results []outcome.Result) error { return j.Copy(j.old, results) }

// Done lets go of the earlier run, which is as it was.
func (j *WithEarlier) Done() error { return j.old.Close(nil) }
