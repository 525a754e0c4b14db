package journal

import (
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// This file decides which answers of an earlier run still hold for a new run over the same input: those
// are taken, and the other items answered anew.
//
// An answer holds if no change can affect it. If the file, the stages' resources, what they learnt, or
// racflow itself has changed, none holds. If only the knowledge has changed, an answer holds if the
// knowledge has the same labels and the item gets the same from it: each search finds the same
// candidates with the same labels and scores, and with the same texts if a stage reads them; the
// centroids of labels are the same; and the same random examples are drawn for its prompts. Lower stages
// see nothing else of a knowledge, so they would be asked the same again. So every item is searched for,
// and nothing else is done for items whose answers hold. This is also done for an attached collection,
// which its owner may have changed without notice.
//
// Items that failed, lack a voter, were left to the free voters by a spending limit, or were decided by
// people are answered anew.
//
// Runs record what their items got from the knowledge (outcome.Basis). The earlier run paid for its
// answers: their usage and cost do not count here.

// EarlierTerms say which answers of an earlier run hold.
type EarlierTerms struct {
	Run     string   // ID of the earlier run
	All     bool     // nothing has changed
	Changed []string // why no answer holds; nil: it depends on what each item gets from the knowledge
}

// EarlierTermsOf compares an earlier run with a new one. searchable: all searches can precede the
// other stages.
func EarlierTermsOf(old, now Manifest, searchable bool) EarlierTerms {
	t := EarlierTerms{Run: old.ID}
	attached := slices.ContainsFunc(now.Knowledge, func(k ManifestKnowledge) bool { return k.Attached }) // its rows may have changed nonetheless
	same := slices.Equal(old.Knowledge, now.Knowledge) && !attached
	before, after := old, now
	before.Knowledge, after.Knowledge, before.Limit, before.Share = nil, nil, after.Limit, after.Share
	t.Changed = before.Differences(after)
	switch {
	case len(t.Changed) > 0:
	case same:
		t.All = true
	case old.Labels != now.Labels:
		t.Changed = []string{"the labels of the knowledge"}
	case !searchable:
		t.Changed = []string{"the knowledge, and a search waits for other stages"}
	}
	return t
}

// CheckSame refuses an earlier run of another pipeline, or over another input: it cannot be compared
// with the new one.
func CheckSame(old, now Manifest) error {
	switch {
	case old.File != now.File || old.Pipeline != now.Pipeline:
		return fmt.Errorf("run %s is of pipeline %q in %s", old.ID, old.Pipeline, old.File)
	case !old.Input.Same(now.Input):
		return fmt.Errorf("run %s is over an input that was another: its answers cannot be told from one another; run without them", old.ID)
	}
	return nil
}

// WithEarlier is the journal of the new run with the answers of the earlier one. It implements
// run.Recaller.
type WithEarlier struct {
	*Journal
	old   *Journal
	terms EarlierTerms
}

// NewWithEarlier returns the journal of a new run that takes answers of an earlier one, by these terms.
func NewWithEarlier(now, old *Journal, terms EarlierTerms) *WithEarlier {
	return &WithEarlier{now, old, terms}
}

// Recall returns the earlier answer to a row. ok: there is one that may hold. holds: it does;
// otherwise it holds only if the item gets from the knowledge what the result's Basis says.
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

// Done closes the earlier run, which is unchanged.
func (j *WithEarlier) Done() error { return j.old.Close(nil) }
