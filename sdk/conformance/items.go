package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// batchChecks are those of the kinds that work on items. A stage may fail
// single rows, but never a batch because of one.
var batchChecks = []Check{
	{
		Name: "one result per row", Within: Long,
		Why: "Results are matched with rows by their place; a row that cannot be worked on fails alone.",
		Fix: "Return as many results as there are rows, in their order, and row errors for those that fail.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			for _, b := range []sdk.Batch{{}, items(1), items(9)} {
				if _, err := results(ctx, s, stage.Kind, b); err != nil {
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
			const again = 64 // as many calls at a time as a stage has to bear
			return sameResults(b.Items, again, eachRow(len(b.Items)), func(items []sdk.Item) ([]string, error) {
				return results(ctx, s, stage.Kind, sdk.Batch{Labels: b.Labels, Items: items})
			}, equal)
		}),
	},
	{
		Name: "nothing to work with", Within: Long,
		Why: "A row may have no text, no candidate and no vote, and the other rows of its batch must not fail with it.",
		Fix: "Return an empty result, or a row error, for a row without what the stage reads.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			b := items(1)
			b.Items = []sdk.Item{{ID: "empty"}, b.Items[0], {ID: "empty, too"}}
			_, err := results(ctx, s, stage.Kind, b)
			return err
		}),
	},
	{
		Name: "texts of every script", Within: Long,
		Why: "People write in every script, with marks, emoji and zero bytes, and paste texts of any length.",
		Fix: "Take every text as it is; count characters, not bytes, where it is cut.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			_, err := results(ctx, s, stage.Kind, scripts())
			return err
		}),
	},
	{
		Name: "numbers are finite", Within: Long,
		Why: "A weight or score that is not finite, or out of its bounds, cannot be added up or stored; the row fails.",
		Fix: "Guard divisions and logarithms: candidates without a score (NaN), equal scores, weights of 0 and 1e100, and vectors of zeros do come.",
		Run: opened(func(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
			_, err := results(ctx, s, stage.Kind, extremes())
			return err
		}),
	},
	{
		Name: "reads what it declares", Within: Long,
		Why: "The engine sends only the columns that a stage declares, and keeps results by them.",
		Fix: "Declare each column that changes the result, and use no other.",
		Run: own(honestReads),
	},
	endsWhenCancelled(
		func() sdk.Batch { return items(2000) }, func() sdk.Batch { return items(0) },
		func(ctx context.Context, s *wire.Stage, kind sdk.Kind, b sdk.Batch) error {
			_, err := results(ctx, s, kind, b)
			return err
		},
	),
}

// results calls the method of a kind.
func results(ctx context.Context, s *wire.Stage, kind sdk.Kind, b sdk.Batch) ([]string, error) {
	switch kind {
	case sdk.KindRerank:
		return flatten(s.Rerank(ctx, b))
	case sdk.KindPrompt:
		return flatten(s.Prompt(ctx, b))
	case sdk.KindSample:
		return flatten(s.Sample(ctx, b))
	case sdk.KindElect:
		return flatten(s.Elect(ctx, b))
	}
	return nil, fmt.Errorf("there are no checks for kind %q", kind)
}

// labels are those of all items.
var labels = []string{"card_lost", "pin_change", "weather"}

// items makes n items with all columns, among them rows without candidates,
// rows without voters and texts that are not UTF-8.
func items(n int) sdk.Batch {
	b := sdk.Batch{Labels: slices.Clone(labels), Items: make([]sdk.Item, n)}
	for i := range b.Items {
		b.Items[i] = item(i)
	}
	return b
}

func item(i int) sdk.Item {
	it := sdk.Item{
		ID: fmt.Sprint("item-", i), Text: fmt.Sprint("my card is gone ", i), Vector: []float32{1, 0, 0},
		Meta: sdk.Meta{"channel": "chat"}, Prompts: []sdk.Prompt{{Text: "which label?"}},
	}
	switch i % 4 {
	case 1:
		return it // a row for which nothing was found
	case 2:
		it.Text = "caf\xe9"
	case 3:
		it.Text = ""
	}
	for j := range 12 {
		c := sdk.Candidate{
			ID: fmt.Sprint("entry-", j), Text: fmt.Sprint("example ", j), Label: labels[j%len(labels)],
			Score: 1 - float32(j)/20, Dense: .9 - float32(j)/20, Lexical: sdk.Unscored,
		}
		it.Candidates = append(it.Candidates, c)
		if j < len(labels) {
			it.Prototypes = append(it.Prototypes, sdk.Candidate{Label: c.Label, Dense: c.Dense})
			it.Random = append(it.Random, c)
		}
	}
	it.Samples = []sdk.Sample{
		{Voter: "neighbours", Distance: .25, Answers: []sdk.Answer{{Label: labels[i%3], Weight: .6, Accepted: true}, {Label: labels[(i+1)%3], Weight: .4, Accepted: i%8 != 0}}},
		{Voter: "prototype", Answers: []sdk.Answer{{Label: labels[(i+1)%3], Weight: .5, Accepted: true}}},
		{Voter: "silent"},
	}
	return it
}

// scripts are items whose texts, ids, labels and metadata are of many scripts.
func scripts() sdk.Batch {
	texts := []string{
		"Größe, naïveté, Ελληνικά, Кириллица", "我昨天丢了卡。你呢？", "カードをなくした", "บัตรเครดิตหาย", "أين بطاقتي؟ \u202eabc\u202c", "שלום",
		"e\u0301a\u0308\u0323 \u200b\ufeff", "👩‍👩‍👧‍👦🇩🇪 🏳️‍🌈", "\x00 a zero byte", "\u2028\u0085\r\n\t", "\U0010ffff\uffff", "<b>&amp;</b> %s {{.}} ${x} \\ \"'`",
		strings.Repeat("a long text ", 3000), strings.Repeat("ж", 40_000),
	}
	b := items(len(texts))
	b.Labels = slices.Clone(texts[:6])
	slices.Sort(b.Labels)
	for i := range b.Items {
		it := &b.Items[i]
		it.ID, it.Text, it.Meta = fmt.Sprint(texts[i][:min(len(texts[i]), 40)], i), texts[i], sdk.Meta{texts[i%6]: texts[i%12]}
		it.Prompts = []sdk.Prompt{{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: texts[i]}}, Labels: b.Labels}}
		for j := range it.Candidates {
			it.Candidates[j].Text, it.Candidates[j].Label = texts[(i+j)%len(texts)], b.Labels[j%6]
		}
	}
	return b
}

// extremes are items whose numbers are at their bounds, or missing.
func extremes() sdk.Batch {
	b := items(8)
	for i := range b.Items {
		it := &b.Items[i]
		it.Vector = []float32{0, 0, 0}
		for j := range it.Candidates {
			c := &it.Candidates[j]
			switch i % 3 {
			case 0: // as after a lexical search that found nothing worth a score
				c.Score, c.Dense, c.Lexical = 0, sdk.Unscored, sdk.Unscored
			case 1:
				c.Score, c.Dense, c.Lexical = float32(math.Copysign(1e30, float64(j%2)-1)), -1, 1e30
			case 2:
				c.Score, c.Dense, c.Lexical = 1e-38, 1, 0
			}
		}
		for j := range it.Samples {
			it.Samples[j].Distance = []float64{0, 1, 1e-300}[i%3]
			for k := range it.Samples[j].Answers {
				it.Samples[j].Answers[k].Weight = []float64{0, 1e100, 1e-300}[(i+j+k)%3]
			}
		}
	}
	return b
}

// honestReads checks that the columns that a stage does not declare make no difference: taken away,
// as the engine does, filled, or filled with something else.
func honestReads(ctx context.Context, s *wire.Stage, stage sdk.Stage) error {
	b := items(9)
	want, err := results(ctx, s, stage.Kind, b)
	if err != nil {
		return err
	}
	every := *s
	every.Reads = ^sdk.Columns(0)
	for what, b := range map[string]sdk.Batch{"filled": b, "filled with something else": others(b, s.Reads)} {
		got, err := results(ctx, &every, stage.Kind, b)
		if err != nil {
			return fmt.Errorf("with columns that it does not declare %s: %w", what, err)
		}
		for i := range got {
			if d := equal(got[i], want[i]); d != "" {
				return fmt.Errorf("row %d, with columns that it does not declare %s: %s", i, what, d)
			}
		}
	}
	return nil
}

// others is a batch with other content in the columns that are not among reads.
func others(b sdk.Batch, reads sdk.Columns) sdk.Batch {
	out := sdk.Batch{Labels: b.Labels, Items: slices.Clone(b.Items)}
	if !reads.Has(sdk.ColumnLabels) {
		out.Labels = []string{"other"}
	}
	candidate := sdk.Candidate{ID: "other", Text: "other", Label: "other", Score: 9, Dense: .1, Lexical: 7}
	for i := range out.Items {
		it := &out.Items[i]
		for column, change := range map[sdk.Column]func(){
			sdk.ColumnText:       func() { it.Text = "something else" },
			sdk.ColumnMeta:       func() { it.Meta = sdk.Meta{"channel": "letter"} },
			sdk.ColumnVector:     func() { it.Vector = []float32{0, 1, 0} },
			sdk.ColumnPrototypes: func() { it.Prototypes = []sdk.Candidate{{Label: "other", Dense: .3}} },
			sdk.ColumnRandom:     func() { it.Random = []sdk.Candidate{candidate} },
			sdk.ColumnPrompts:    func() { it.Prompts = []sdk.Prompt{{Text: "another?"}} },
			sdk.ColumnSamples: func() {
				it.Samples = []sdk.Sample{{Voter: "other", Answers: []sdk.Answer{{Label: "other", Weight: 1, Accepted: true}}}}
			},
		} {
			if !reads.Has(column) {
				change()
			}
		}
		switch {
		case reads.Has(sdk.ColumnCandidateTexts):
		case !reads.Has(sdk.ColumnCandidates):
			it.Candidates = []sdk.Candidate{candidate}
		default:
			it.Candidates = slices.Clone(it.Candidates)
			for j := range it.Candidates {
				it.Candidates[j].Text, it.Candidates[j].Context = "another example", "elsewhere"
			}
		}
	}
	return out
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
