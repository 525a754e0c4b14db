package sdktest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/wire"
)

// enrichChecks are those of enrichers. A stage may fail single passages, but
// never all of them because of one.
var enrichChecks = map[string]check{
	"one addition per passage": func(t testing.TB, stage sdk.Stage, config string) error {
		e, err := Open(t, stage, sdk.Setup{StateDir: t.TempDir()}, config)
		if err != nil {
			return err
		}
		all := passages()
		for _, batch := range [][]sdk.Passage{nil, of(all, "one.txt"), of(all, "notes.md"), all} {
			if _, err := flatten(e.Enrich(t.Context(), batch)); err != nil {
				return fmt.Errorf("batch of %d: %w", len(batch), err)
			}
		}
		return withoutPassages(t.Context(), e)
	},
	"same document, same additions": func(t testing.TB, stage sdk.Stage, config string) error {
		if stage.Network {
			return nil // another machine's answer is not the stage's own
		}
		e, err := Open(t, stage, sdk.Setup{StateDir: t.TempDir()}, config)
		if err != nil {
			return err
		}
		all := passages()
		want, err := flatten(e.Enrich(t.Context(), all))
		if err != nil {
			return err
		}
		// Again, turned round and one by one, all at the same time.
		var calls errgroup.Group
		for range 4 {
			calls.Go(func() error {
				got, err := flatten(e.Enrich(t.Context(), all))
				if err == nil && !reflect.DeepEqual(got, want) {
					err = fmt.Errorf("the same batch has other additions than before: %s", firstOther(got, want))
				}
				return err
			})
		}
		calls.Go(func() error {
			got, err := flatten(e.Enrich(t.Context(), backwards(all)))
			if err == nil && !reflect.DeepEqual(got, backwardsBy(all, want)) {
				err = fmt.Errorf("documents in another order have other additions: %s", firstOther(got, backwardsBy(all, want)))
			}
			return err
		})
		for lo, hi := range byDocument(all) {
			calls.Go(func() error {
				alone, err := flatten(e.Enrich(t.Context(), all[lo:hi]))
				if err == nil && !reflect.DeepEqual(alone, want[lo:hi]) {
					err = fmt.Errorf("document %s has other additions alone than in a batch: %s", all[lo].Document.ID, firstOther(alone, want[lo:hi]))
				}
				return err
			})
		}
		return calls.Wait()
	},
	"gives up when cancelled": func(t testing.TB, stage sdk.Stage, config string) error {
		e, err := Open(t, stage, sdk.Setup{StateDir: t.TempDir()}, config)
		if err != nil {
			return err
		}
		var many []sdk.Passage
		for i := range 100 {
			d := sdk.Document{ID: fmt.Sprint(i), Text: strings.Repeat("A sentence about a lost card.\n\n", 500)}
			many = append(many, windows(&d, 1000)...)
		}
		call := func(passages []sdk.Passage) func(context.Context) error {
			return func(ctx context.Context) error { _, err := e.Enrich(ctx, passages); return err }
		}
		return cancelled(call(many), call(nil))
	},
}

// withoutPassages checks that documents may come with an empty list of passages.
func withoutPassages(ctx context.Context, e *remote.Stage) error {
	rows, err := wire.EncodeDocuments(documents()[:3])
	if err != nil {
		return err
	}
	rows.Chunks = &stagepb.Chunks{Offsets: make([]uint32, rows.N+1)}
	reply := &stagepb.RowsReply{}
	err = e.Conn.Invoke(ctx, stagepb.Stage_Enrich_FullMethodName, &stagepb.EnrichRequest{Rows: rows}, reply)
	if err == nil && reply.GetFailure() != nil {
		err = wire.DecodeFailure(reply.GetFailure())
	}
	if err == nil {
		_, err = wire.DecodeAdditions(reply.GetRows(), 0)
	}
	if err != nil {
		return fmt.Errorf("documents without passages: %w", err)
	}
	return nil
}

// passages are those of the documents that break chunkers, long ones shortened:
// a document as one passage, or windows that overlap.
func passages() []sdk.Passage {
	const most, width = 600, 60
	var all []sdk.Passage
	for i, d := range documents() {
		if text := []rune(d.Text); len(text) > most {
			d.Text = string(text[:most])
		}
		switch {
		case strings.TrimSpace(d.Text) == "": // it has none
		case i%5 == 0:
			all = append(all, sdk.Passage{Document: &d, Chunk: sdk.Chunk{End: len(d.Text)}})
		default:
			all = append(all, windows(&d, width)...)
		}
	}
	twin := *all[0].Document
	twin.ID, twin.Meta = "twin of "+twin.ID, nil
	return append(all, sdk.Passage{Document: &twin, Chunk: sdk.Chunk{End: len(twin.Text)}})
}

// windows cuts a document every width characters into passages that reach a
// tenth of that into the next.
func windows(d *sdk.Document, width int) []sdk.Passage {
	var all []sdk.Passage
	starts := make([]int, 0, len(d.Text)+1)
	for at := range d.Text {
		starts = append(starts, at)
	}
	starts = append(starts, len(d.Text))
	for lo := 0; lo < len(starts)-1; lo += width {
		c := sdk.Chunk{Start: starts[lo], End: starts[min(lo+width+width/10, len(starts)-1)], Meta: sdk.Meta{"headings": "Cards / Fees"}}
		if strings.TrimSpace(d.Text[c.Start:c.End]) != "" {
			all = append(all, sdk.Passage{Document: d, Chunk: c})
		}
	}
	return all
}

// of returns the passages of one document.
func of(all []sdk.Passage, id string) []sdk.Passage {
	return slices.DeleteFunc(slices.Clone(all), func(p sdk.Passage) bool { return p.Document.ID != id })
}

// byDocument yields where the passages of each document begin and end.
func byDocument(all []sdk.Passage) func(yield func(lo, hi int) bool) {
	return func(yield func(lo, hi int) bool) {
		for lo, hi := 0, 0; lo < len(all); lo = hi {
			for hi < len(all) && all[hi].Document == all[lo].Document {
				hi++
			}
			if !yield(lo, hi) {
				return
			}
		}
	}
}

// backwards returns passages with their documents in the opposite order.
func backwards(all []sdk.Passage) []sdk.Passage { return backwardsBy(all, all) }

// backwardsBy returns what belongs to passages as backwards does the passages.
func backwardsBy[T any](all []sdk.Passage, values []T) []T {
	var parts [][]T
	for lo, hi := range byDocument(all) {
		parts = append(parts, values[lo:hi])
	}
	slices.Reverse(parts)
	return slices.Concat(parts...)
}

// firstOther shows where two lists of results first differ.
func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("passage %d got %.200s, before it was %.200s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d of them, before it were %d", len(got), len(want))
}
