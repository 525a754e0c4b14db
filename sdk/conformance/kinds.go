package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// batchChecks are the checks of kinds that work on items. A stage may fail single rows, but never a
// batch because of one row.
var batchChecks = []Check{
	{
		Name: "one result per row", Within: Long,
		Why: "Results are matched with rows by their place; a row that cannot be worked on fails alone.",
		Fix: "Return as many results as there are rows, in their order, and row errors for those that fail.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			for _, b := range []sdk.Batch{{}, items(1), items(9)} {
				if _, err := call(ctx, s, stage.Kind, b); err != nil {
					return fmt.Errorf("batch of %d: %w", len(b.Items), err)
				}
			}
			return nil
		}),
	},
	{
		Name: "same row, same result", Within: Long,
		Why: "Batches differ from run to run and calls are made at the same time; a result is kept for the next run.",
		Fix: "Let a row's result depend on that row alone, and seed what is random with it.",
		Run: own(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			b := items(9)
			const again = 64 // calls at a time that every stage has to stand
			return sameResults(ctx, s, stage.Kind, b, again, eachRow(len(b.Items)))
		}),
	},
	{
		Name: "nothing to work with", Within: Long,
		Why: "A row may have no text, no candidate and no vote, and the other rows of its batch must not fail with it.",
		Fix: "Return an empty result, or a row error, for a row without what the stage reads.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			b := items(1)
			b.Items = []sdk.Item{{ID: "empty"}, b.Items[0], {ID: "empty, too"}}
			_, err := call(ctx, s, stage.Kind, b)
			return err
		}),
	},
	{
		Name: "texts of every script", Within: Long,
		Why: "People write in every script, with marks, emoji and zero bytes, and paste texts of any length.",
		Fix: "Take every text as it is; count characters, not bytes, where it is cut.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			_, err := call(ctx, s, stage.Kind, scripts())
			return err
		}),
	},
	{
		Name: "numbers are finite", Within: Long,
		Why: "A weight or score that is not finite, or out of its bounds, cannot be added up or stored; the row fails.",
		Fix: "Guard divisions and logarithms: candidates without a score (NaN), equal scores, weights of 0 and 1e100, and vectors of zeros do come.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			_, err := call(ctx, s, stage.Kind, extremes())
			return err
		}),
	},
	{
		Name: "reads what it declares", Within: Long,
		Why: "The engine sends only the columns that a stage declares, and keeps results by them.",
		Fix: "Declare each column that changes the result, and use no other.",
		Run: own(honestReads),
	},
	gaveUp(2000, 0),
}

// honestReads checks that columns that a stage does not declare make no difference: removed, as the
// engine does, filled, or filled with other values.
func honestReads(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
	b := items(9)
	want, err := call(ctx, s, stage.Kind, b)
	if err != nil {
		return err
	}
	every := *s
	every.Reads = ^sdk.Columns(0)
	for what, b := range map[string]sdk.Batch{"filled": b, "filled with something else": others(b, s.Reads)} {
		got, err := call(ctx, &every, stage.Kind, b)
		if err != nil {
			return fmt.Errorf("with columns that it does not declare %s: %w", what, err)
		}
		for i := range got {
			if err := got[i].differs(want[i], fmt.Sprintf("row %d, with columns that it does not declare %s", i, what)); err != nil {
				return err
			}
		}
	}
	return nil
}

// scoresFall checks that the scores of a reranker do not contradict its order.
var scoresFall = Check{
	Name: "scores fall", Within: Long,
	Why: "The order of a ranking counts, and rules see the scores; scores that rise say that the worst stands first.",
	Fix: "Sort by the score in descending order, or return scores of which more is better.",
	Run: opened(func(ctx context.Context, s *wire.Stage, _ sdk.Stage) error {
		lists, err := s.Rerank(ctx, items(9))
		if failed := (sdk.RowErrors)(nil); err != nil && !errors.As(err, &failed) {
			return err
		}
		for i, list := range lists {
			for j := 1; j < len(list); j++ {
				if list[j].Score > list[j-1].Score {
					return fmt.Errorf("row %d: score %v at place %d follows score %v", i, list[j].Score, j+1, list[j-1].Score)
				}
			}
		}
		return nil
	}),
}

var embedChecks = []Check{
	{Name: "one vector per text", Within: Long,
		Why: "Vectors are matched with texts by their place, also those of empty and odd texts.",
		Fix: "Return a vector for each text, in their order; a text with nothing to embed has one of zeros.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
				if _, err := embedded(e.Embed(ctx, role, texts)); err != nil {
					return err
				}
			}
			empty, err := e.Embed(ctx, sdk.RoleQuery, nil)
			if err != nil || len(empty) != 0 {
				return fmt.Errorf("an empty batch gave %d vectors, %v", len(empty), err)
			}
			return nil
		})},
	{Name: "vectors are finite and of norm 1", Within: Long,
		Why: "Stores compare vectors by their product, which is the cosine for vectors of norm 1; a number that is not finite spoils the index.",
		Fix: "Divide each vector by its norm, unless that is 0, and look for infinite numbers of half precision.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
				// As in the engine, a vector that is neither of norm 1 nor zero is an error.
				if _, err := e.Embed(ctx, role, texts); err != nil {
					return err
				}
			}
			return nil
		})},
	{Name: "same text, same vector", Within: Long,
		Why: "Vectors are kept by their text, and a query has to find the text that it repeats.",
		Fix: "Let a text's vector depend on that text alone, whatever is beside it in the batch.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			return sameResults(ctx, e, sdk.KindEmbed, texts, 0, eachRow(len(texts)))
		})},
	gaveUp(5000, 1),
}

// embedded returns vectors, whatever their numbers.
func embedded(vectors [][]float32, err error) ([][]float32, error) {
	var failed sdk.RowErrors
	if !errors.As(err, &failed) {
		return vectors, err
	}
	for row, err := range failed {
		if number := new(wire.NumberError); !errors.As(err, &number) {
			return nil, fmt.Errorf("text %d: %w", row, err)
		}
	}
	return vectors, nil
}

// enrichChecks are the checks of enrichers. A stage may fail single passages, but never all of them
// because of one.
var enrichChecks = []Check{
	{Name: "one addition per passage", Within: Long,
		Why: "Additions are matched with passages by their place; a passage that cannot be worked on fails alone.",
		Fix: "Return as many additions as there are passages, in their order, and row errors for those that fail.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			all := passages()
			for _, batch := range [][]sdk.Passage{nil, of(all, "one.txt"), of(all, "notes.md"), all} {
				if _, err := call(ctx, e, sdk.KindEnrich, batch); err != nil {
					return fmt.Errorf("batch of %d: %w", len(batch), err)
				}
			}
			return nil
		})},
	{Name: "same document, same additions", Within: Long,
		Why: "A build enriches changed documents alone; other additions to an unchanged one would be paid for again.",
		Fix: "Let a document's additions depend on that document alone.",
		Run: own(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			all := passages()
			if err := sameResults(ctx, e, sdk.KindEnrich, all, 4, byDocument(all)); err != nil {
				return fmt.Errorf("other additions: %w", err)
			}
			return nil
		})},
	gaveUp(2000, 0),
}

var chunkChecks = []Check{
	{Name: "chunks give the document back", Within: Long,
		Why: "What is in no chunk cannot be found, and answers cite chunks by their place in the document.",
		Fix: "Let chunks begin and end between characters, in order, and cover all that is not white space.",
		Run: opened(func(ctx context.Context, c *wire.Stage, _ sdk.Stage) error {
			all := documents()
			for _, batch := range [][]sdk.Document{nil, all[:1], all} {
				lists, err := c.Chunk(ctx, batch)
				if err != nil {
					return fmt.Errorf("batch of %d: %w", len(batch), err)
				}
				for i, chunks := range lists {
					if err := covers(batch[i].Text, chunks); err != nil {
						return fmt.Errorf("document %s: %w", batch[i].ID, err)
					}
					if err := headed(batch[i].Text, chunks); err != nil {
						return fmt.Errorf("document %s: %w", batch[i].ID, err)
					}
				}
			}
			return nil
		})},
	{Name: "same document, same chunks", Within: Long,
		Why: "A build makes chunks of changed documents alone; other chunks of an unchanged one would be paid for again.",
		Fix: "Let a document's chunks depend on that document alone.",
		Run: opened(func(ctx context.Context, c *wire.Stage, _ sdk.Stage) error {
			all := documents()
			return sameResults(ctx, c, sdk.KindChunk, all, 0, eachRow(len(all)))
		})},
	gaveUp(20_000, 0),
}

// covers checks that all bytes between chunks, and before and after them, are white space. Decoding
// has already checked order and boundaries.
func covers(text string, chunks []sdk.Chunk) error {
	end := 0
	check := func(next int) error {
		if next > end && strings.TrimFunc(text[end:next], unicode.IsSpace) != "" {
			return fmt.Errorf("bytes %d to %d are in no chunk: %.40q", end, next, text[end:next])
		}
		return nil
	}
	for _, c := range chunks {
		if err := check(c.Start); err != nil {
			return err
		}
		end = max(end, c.End)
	}
	if err := check(len(text)); err != nil {
		return err
	}
	if strings.TrimFunc(text, unicode.IsSpace) == "" && len(chunks) > 0 {
		return fmt.Errorf("white space has %d chunks", len(chunks))
	}
	return nil
}

// headed checks that headers are not empty. Decoding has already checked that they lie in the
// document, before their chunks.
func headed(text string, chunks []sdk.Chunk) error {
	for i, c := range chunks {
		if h := c.Header; h != (sdk.Span{}) && strings.TrimSpace(text[h.Start:h.End]) == "" {
			return fmt.Errorf("the header of chunk %d, bytes %d to %d, is white space", i, h.Start, h.End)
		}
	}
	return nil
}
