package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/source"
)

// Briefs yields every item of the run in the order of its input, those that were not reached
// among them. Where the input is gone they are those that the journal has. An
// error is yielded last, with nil.
func (r *Run) Briefs(ctx context.Context) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for item, err := range r.items(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(briefOf(&item), nil) {
				return
			}
		}
	}
}

// Item returns all that is known of an item, by its ID, or else by its line in the input.
// Of several with one ID it is the first.
func (r *Run) Item(ctx context.Context, id string) (*Item, error) {
	number, _ := strconv.Atoi(id)
	var found *journal.Item
	for item, err := range r.items(ctx) {
		if err != nil {
			return nil, err
		}
		if item.Row.ID == id {
			found = &item
			break
		}
		if item.Row.Line == number {
			found = &item
		}
	}
	if found == nil {
		return nil, fmt.Errorf("run %s has no item %q: it was not reached, or is called in another way", r.ID(), id)
	}
	whole := keptOf(found, briefOf(found))
	return &whole.Item, r.complete(ctx, []*kept{whole})
}

// items are those of the input with what the journal has of them, or where the input is gone,
// those of the journal.
func (r *Run) items(ctx context.Context) iter.Seq2[journal.Item, error] {
	return func(yield func(journal.Item, error) bool) {
		rows, err := r.rows()
		if err != nil {
			for item := range r.journal.Kept() {
				if err := ctx.Err(); err != nil {
					yield(journal.Item{}, err)
					return
				}
				if !yield(item, nil) {
					return
				}
			}
			return
		}
		defer rows.Close() //nolint:errcheck // it was only read
		next := func() (source.Row, error) {
			if err := ctx.Err(); err != nil {
				return source.Row{}, err
			}
			return rows.Next()
		}
		for item, err := range r.journal.Results(next) {
			if !yield(item, err) {
				return
			}
		}
	}
}

// reader reads rows of an input.
type reader interface {
	Next() (source.Row, error)
	io.Closer
}

var errNoInput = errors.New("the input is not there any more")

// rows opens the input: as the file reads it, with metadata, which prompts may show, or, where
// the file has come to read other columns, as the manifest says.
func (r *Run) rows() (reader, error) {
	rows, err := r.journal.Manifest.Rows()
	if err != nil {
		return nil, errNoInput
	}
	if r.pipeline != nil && reflect.DeepEqual(r.pipeline.InputColumns(), r.journal.Manifest.Columns) {
		if as, err := r.pipeline.Rows(); err == nil {
			_ = rows.Close() // nothing was read
			return as, nil
		}
	}
	return rows, nil
}

func briefOf(item *journal.Item) *Brief {
	item.Result.Fields = item.Row.Fields
	if file, line := item.Row.Place(); file != "" {
		item.Result.File, item.Result.FileLine = file, line
	}
	b := &Brief{Result: result.Of(item.Result, nil), Line: item.Row.Line, Status: item.Status, Cost: item.Result.Costs, Seen: item.Seen != nil}
	for voter, u := range item.Result.Usages {
		if b.Usages == nil {
			b.Usages = map[string]Usage{}
		}
		b.Usages[voter] = Usage{Input: u.InputTokens, Cached: u.CachedTokens, Output: u.OutputTokens}
	}
	return b
}

// together is how many items are looked up at a time.
const together = 128

// Items yields those items of the run that are wanted, in the order of the input, with all
// that is known of them. An error is yielded last, with nil.
func (r *Run) Items(ctx context.Context, want func(*Brief) bool) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		var batch []*kept
		give := func() bool {
			if err := r.complete(ctx, batch); err != nil {
				yield(nil, err)
				return false
			}
			for _, k := range batch {
				if !yield(&k.Item, nil) {
					return false
				}
			}
			batch = slices.Delete(batch, 0, len(batch))
			return true
		}
		for item, err := range r.items(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			brief := briefOf(&item)
			if !want(brief) {
				continue
			}
			if batch = append(batch, keptOf(&item, brief)); len(batch) == together && !give() {
				return
			}
		}
		give()
	}
}
