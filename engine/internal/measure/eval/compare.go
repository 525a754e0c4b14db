package eval

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/journal"
)

// This file compares two runs: which items they answer differently, and whether one run is better
// by more than chance.
//
// It matches items by id, or by line if the input has no ids; items with the same id are matched in
// order. If the input has labels, it compares the runs by the items that only one of them gets
// right, with the exact test of McNemar ("Note on the sampling error of the difference between
// correlated proportions or percentages", Psychometrika 12:153-157, 1947; see interval.go). An item
// is counted but not compared if it failed, lacks a voter or was not reached in one of the runs. An
// item that a run decided not to answer is wrong.
//
// The comparison needs journals but no inputs.

// RunComparison describes how two runs differ.
type RunComparison struct {
	A, B ComparedRun
	// Numbers of items that both runs answered, that only A or only B answered, and whose labels
	// differ between the two inputs, so that the right answer is not known.
	Both       int `json:"both"`
	OnlyA      int `json:"only_a"`
	OnlyB      int `json:"only_b"`
	Relabelled int `json:"relabelled"`
	Decided    int `json:"decided,omitempty"` // of Both: a person decided the answer of one run, or of both

	Right   *Paired        `json:"right,omitempty"`   // of Both, items with a known label; nil: none
	Flips   []LabelFlip    `json:"flips,omitempty"`   // by expected label, most flips first
	Changes []AnswerChange `json:"changes,omitempty"` // of Both, items without a known label; most frequent first
	Items   []ChangedItem  `json:"items"`             // items that flipped or changed, in the order of the input

	Manifest []string `json:"manifest"` // differences between the manifests
}

// ComparedRun sums up one of the runs.
type ComparedRun struct {
	Run      string   `json:"run"`
	Answered int      `json:"answered"`
	Scored   int      `json:"scored"`             // the run's own answers to items with a known label
	Accuracy *float64 `json:"accuracy,omitempty"` // nil: no label is known
	Interval Interval `json:"interval,omitzero"`  // of the accuracy
	Tokens   uint64   `json:"tokens"`
	Cost     float64  `json:"cost"`
}

// LabelFlip counts the items of a label that only one run gets right.
type LabelFlip struct {
	Label  string `json:"label"`
	Lost   int    `json:"lost"`   // A is right, B is wrong
	Gained int    `json:"gained"` // B is right, A is wrong
}

// AnswerChange counts the items with one answer in A and another in B; empty: no answer.
type AnswerChange struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Items int    `json:"items"`
}

// ChangedItem is an item that the runs answer differently.
type ChangedItem struct {
	Line     int    `json:"line"` // in the input of B
	ID       string `json:"id"`
	Expected string `json:"expected,omitempty"`
	A        string `json:"a"`
	B        string `json:"b"`
	Lost     bool   `json:"-"` // A is right, and B is wrong
}

// Compare compares two open runs.
func Compare(a, b *journal.Journal) *RunComparison {
	r := &RunComparison{Manifest: append([]string{}, a.Manifest.Differences(b.Manifest)...), Items: []ChangedItem{}}
	before := map[string]string{}
	for _, v := range a.Manifest.Variables {
		before[v.Name] = v.Value
	}
	for _, v := range b.Manifest.Variables {
		if old, ok := before[v.Name]; ok && old != v.Value {
			r.Manifest = append(r.Manifest, fmt.Sprintf("var.%s is %s, it was %s", v.Name, v.Value, old))
		}
	}
	ofA, ofB := map[string]journal.Item{}, map[string]bool{}
	for key, item := range r.A.read(a) {
		ofA[key] = item
	}
	flips, changes := map[string]*LabelFlip{}, map[[2]string]int{}
	for key, now := range r.B.read(b) {
		ofB[key] = true
		old, ok := ofA[key]
		if !ok {
			r.OnlyB++
			continue
		}
		r.Both++
		r.add(old, now, flips, changes)
	}
	for key := range ofA {
		if !ofB[key] {
			r.OnlyA++
		}
	}
	for _, f := range flips {
		r.Flips = append(r.Flips, *f)
	}
	slices.SortFunc(r.Flips, func(a, b LabelFlip) int {
		return cmp.Or(b.Lost+b.Gained-a.Lost-a.Gained, cmp.Compare(a.Label, b.Label))
	})
	for _, c := range slices.SortedFunc(maps.Keys(changes), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		r.Changes = append(r.Changes, AnswerChange{c[0], c[1], changes[c]})
	}
	slices.SortStableFunc(r.Changes, func(a, b AnswerChange) int { return b.Items - a.Items })
	return r
}

// add compares the two results of an item.
func (r *RunComparison) add(old, now journal.Item, flips map[string]*LabelFlip, changes map[[2]string]int) {
	a, b := old.Result.Answer, now.Result.Answer
	expected := cmp.Or(now.Row.Label, old.Row.Label)
	item := ChangedItem{Line: now.Row.Line, ID: now.Row.ID, Expected: expected, A: a, B: b}
	switch {
	case old.Result.Decided != nil || now.Result.Decided != nil:
		r.Decided++
	case old.Row.Label != "" && old.Row.Label != expected:
		r.Relabelled++
	case expected != "":
		if r.Right == nil {
			r.Right = &Paired{}
		}
		wasRight, isRight := old.Result.Form.Holds(a, expected), now.Result.Form.Holds(b, expected)
		r.Right.Add(wasRight, isRight)
		if wasRight == isRight {
			return
		}
		f := flips[expected]
		if f == nil {
			f = &LabelFlip{Label: expected}
			flips[expected] = f
		}
		if item.Lost = wasRight; wasRight {
			f.Lost++
		} else {
			f.Gained++
		}
		r.Items = append(r.Items, item)
	case a != b:
		changes[[2]string{a, b}]++
		r.Items = append(r.Items, item)
	}
}

// read sums up a run, and yields the items that it answered.
func (s *ComparedRun) read(j *journal.Journal) iter.Seq2[string, journal.Item] {
	return func(yield func(string, journal.Item) bool) {
		s.Run = j.ID()
		right, seen := 0, map[string]int{}
		for item := range j.Kept() {
			seen[item.Row.ID]++
			key := fmt.Sprintf("%d %s", seen[item.Row.ID], item.Row.ID)
			if item.Status != journal.Answered {
				continue
			}
			s.Answered++
			s.Tokens += item.Result.Usage.InputTokens + item.Result.Usage.OutputTokens
			s.Cost += item.Result.Cost
			if item.Row.Label != "" && !item.Result.FreeText && !item.Result.RetrievalOnly && item.Result.Decided == nil {
				if s.Scored++; item.Result.Form.Holds(item.Result.Answer, item.Row.Label) {
					right++
				}
			}
			if !yield(key, item) {
				return
			}
		}
		if s.Scored > 0 {
			share := float64(right) / float64(s.Scored)
			s.Accuracy, s.Interval = &share, Wilson(right, s.Scored)
		}
	}
}
