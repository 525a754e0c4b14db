package conformance

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/wire"
)

// enrichChecks are those of enrichers. A stage may fail single passages, but
// never all of them because of one.
var enrichChecks = []Check{
	{Name: "one addition per passage", Within: Long,
		Why: "Additions are matched with passages by their place; a passage that cannot be worked on fails alone.",
		Fix: "Return as many additions as there are passages, in their order, and row errors for those that fail.",
		Run: opened(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
			all := passages()
			for _, batch := range [][]sdk.Passage{nil, of(all, "one.txt"), of(all, "notes.md"), all} {
				if _, err := flatten(e.Enrich(ctx, batch)); err != nil {
					return fmt.Errorf("batch of %d: %w", len(batch), err)
				}
			}
			return withoutPassages(ctx, e)
		})},
	{Name: "same document, same additions", Within: Long,
		Why: "A build enriches changed documents alone; other additions to an unchanged one would be paid for again.",
		Fix: "Let a document's additions depend on that document alone.",
		Run: own(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
			all := passages()
			call := func(passages []sdk.Passage) ([]string, error) { return flatten(e.Enrich(ctx, passages)) }
			if err := sameResults(all, 4, byDocument(all), call, equal); err != nil {
				return fmt.Errorf("other additions: %w", err)
			}
			want, err := call(all)
			if err != nil {
				return err
			}
			got, err := call(backwards(all, all))
			for i, w := range backwards(all, want) {
				if err == nil && got[i] != w {
					err = fmt.Errorf("documents in another order have other additions: %s", equal(got[i], w))
				}
			}
			return err
		})},
	endsWhenCancelled(
		func() []sdk.Passage {
			var many []sdk.Passage
			for i := range 100 {
				d := sdk.Document{ID: fmt.Sprint(i), Text: strings.Repeat("A sentence about a lost card.\n\n", 500)}
				many = append(many, windows(&d, 1000)...)
			}
			return many
		},
		func() []sdk.Passage { return nil },
		func(ctx context.Context, e *remote.Stage, _ sdk.Kind, p []sdk.Passage) error {
			_, err := e.Enrich(ctx, p)
			return err
		},
	),
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
func byDocument(all []sdk.Passage) iter.Seq2[int, int] {
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

// backwards returns values that belong to passages with their documents in the
// opposite order.
func backwards[T any](all []sdk.Passage, values []T) []T {
	var parts [][]T
	for lo, hi := range byDocument(all) {
		parts = append(parts, values[lo:hi])
	}
	slices.Reverse(parts)
	return slices.Concat(parts...)
}
