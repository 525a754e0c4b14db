package journal

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Status is what an item of a run has come to.
type Status int

// What items come to.
const (
	Answered    Status = iota
	Provisional        // the answer lacks a voter
	Failed             // a stage failed, or the row cannot be used
	Unreached          // the run ended before it
)

var statusNames = [...]string{Answered: "answered", Provisional: "provisional", Failed: "failed", Unreached: "not reached"}

func (s Status) String() string { return statusNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(text []byte) error {
	at := slices.Index(statusNames[:], string(text))
	if at < 0 {
		return fmt.Errorf("%q is not what an item comes to", text)
	}
	*s = Status(at)
	return nil
}

// Item is a row of a run's input with what became of it.
type Item struct {
	Row    source.Row
	Status Status
	// Result is as the run gave it, but for what Seen has, Skipped and Latency, which are not
	// kept. Of an item that is Unreached it has what the row says.
	Result outcome.Result
	Seen   *Seen // nil: the journal does not have what was seen of the item
}

// Results yields the items of the run in the order of the input, whose rows next returns
// (io.EOF ends them; see manifest.Manifest.Rows), up to the run's limit. Of a run that is being
// written it has what is kept by then, if Index was called. An error of next is yielded
// last, with an Item that has nothing.
func (j *Journal) Results(next func() (source.Row, error)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for n := 0; j.Manifest.Limit == 0 || n < j.Manifest.Limit; n++ {
			row, err := next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !yield(j.Item(row), nil) {
				return
			}
		}
	}
}

// Kept yields what the run has kept, by lines of the input, without reading that: rows have
// line, id and label. Items that were not reached are left out.
func (j *Journal) Kept() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		j.mu.Lock()
		statuses := map[int]Status{}
		for _, status := range []Status{Provisional, Failed, Answered} { // the last one counts
			for line := range j.shelves[status].known {
				statuses[line] = status
			}
		}
		j.mu.Unlock()
		for _, line := range slices.Sorted(maps.Keys(statuses)) {
			j.mu.Lock()
			e := j.shelves[statuses[line]].entry(line, j.Manifest.Format)
			j.mu.Unlock()
			if e == nil {
				continue
			}
			item := Item{Row: source.Row{Line: line, ID: e.ID, Label: e.Expected}, Status: statuses[line], Result: e.whole(), Seen: e.Seen}
			j.complete(&item)
			if !yield(item) {
				return
			}
		}
	}
}

// Item is a row of the input with what became of it.
func (j *Journal) Item(row source.Row) Item {
	item := Item{Row: row, Status: Unreached}
	for _, status := range []Status{Answered, Failed, Provisional} {
		if row.Err != nil && status != Failed {
			continue
		}
		if e := j.entry(status, row); e != nil {
			item.Status, item.Result, item.Seen = status, e.whole(), e.Seen
			break
		}
	}
	j.complete(&item)
	return item
}

// complete adds to a result what the row and the manifest say.
func (j *Journal) complete(item *Item) {
	row, r := &item.Row, &item.Result
	r.Line, r.ID, r.Text, r.Expected, r.Gold = row.Line, nameOf(*row), row.Text, row.Label, row.Gold
	if row.ID != "" {
		r.ID = row.ID
	}
	r.RetrievalOnly, r.FreeText = j.Manifest.Answers == manifest.Passages, j.Manifest.Answers == manifest.Texts
	if item.Status == Failed && row.Err != nil {
		r.Failure = &outcome.Failure{Err: row.Err}
	}
}
