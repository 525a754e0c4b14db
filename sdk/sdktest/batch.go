package sdktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// batchChecks are those of the kinds that work on items. A stage may fail
// single rows, but never a batch because of one row.
var batchChecks = map[string]check{
	"one result per row": func(t testing.TB, stage sdk.Stage, config string) error {
		s, err := Open(t, stage, sdk.Setup{StateDir: t.TempDir(), Samples: 1}, config)
		if err != nil {
			return err
		}
		for _, b := range []sdk.Batch{{}, items(1), items(9)} {
			if _, err := results(t.Context(), s, stage.Kind, b); err != nil {
				return fmt.Errorf("batch of %d: %w", len(b.Items), err)
			}
		}
		return nil
	},
	"same row, same result": func(t testing.TB, stage sdk.Stage, config string) error {
		if stage.Network {
			return nil // another machine's answer is not the stage's own
		}
		s, err := Open(t, stage, sdk.Setup{StateDir: t.TempDir(), Samples: 1}, config)
		if err != nil {
			return err
		}
		b := items(9)
		want, err := results(t.Context(), s, stage.Kind, b)
		if err != nil {
			return err
		}
		var calls errgroup.Group
		for range manyCalls {
			calls.Go(func() error {
				got, err := results(t.Context(), s, stage.Kind, b)
				if err == nil && !reflect.DeepEqual(got, want) {
					err = fmt.Errorf("got %v, before it was %v", got, want)
				}
				return err
			})
		}
		for i := range b.Items {
			calls.Go(func() error {
				alone, err := results(t.Context(), s, stage.Kind, sdk.Batch{Labels: b.Labels, Items: b.Items[i : i+1]})
				if err == nil && !reflect.DeepEqual(alone[0], want[i]) {
					err = fmt.Errorf("got %v for row %d alone, in its batch before it was %v", alone[0], i, want[i])
				}
				return err
			})
		}
		return calls.Wait()
	},
	"gives up when cancelled": func(t testing.TB, stage sdk.Stage, config string) error {
		s, err := Open(t, stage, sdk.Setup{StateDir: t.TempDir(), Samples: 1}, config)
		if err != nil {
			return err
		}
		call := func(n int) func(context.Context) error {
			return func(ctx context.Context) error { _, err := results(ctx, s, stage.Kind, items(n)); return err }
		}
		return cancelled(call(2000), call(0))
	},
}

// manyCalls is how many calls come at a time to find out whether a stage bears
// it.
const manyCalls = 64

// results calls the method of a kind and brings its answer into one form.
// Errors of single rows are a result, too.
func results(ctx context.Context, s *remote.Stage, kind sdk.Kind, b sdk.Batch) (all []string, err error) {
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

func flatten[T any](rows []T, err error) ([]string, error) {
	failed, ok := err.(sdk.RowErrors)
	if err != nil && !ok {
		return nil, err
	}
	all := make([]string, len(rows))
	for i := range rows {
		if unusable := new(remote.NumberError); errors.As(failed[i], &unusable) {
			return nil, fmt.Errorf("row %d: %w", i, unusable)
		}
		all[i] = fmt.Sprintf("%+v %v", rows[i], failed[i])
	}
	return all, nil
}

// items makes n items with all columns, among them rows without candidates,
// rows without voters and texts that are not UTF-8.
func items(n int) sdk.Batch {
	labels := []string{"card_lost", "pin_change", "weather"}
	b := sdk.Batch{Labels: labels, Items: make([]sdk.Item, n)}
	for i := range b.Items {
		it := &b.Items[i]
		it.ID, it.Text, it.Vector = fmt.Sprint("item-", i), fmt.Sprint("my card is gone ", i), []float32{1, 0, 0}
		it.Meta = sdk.Meta{"channel": "chat"}
		it.Prompts = []sdk.Prompt{{Text: "which label?"}}
		switch i % 4 {
		case 1:
			continue // a row for which nothing was found
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
			{Voter: "neighbours", Answers: []sdk.Answer{{Label: labels[i%3], Weight: .6, Accepted: true}, {Label: labels[(i+1)%3], Weight: .4, Accepted: i%8 != 0}}},
			{Voter: "prototype", Answers: []sdk.Answer{{Label: labels[(i+1)%3], Weight: .5, Accepted: true}}},
			{Voter: "silent"},
		}
	}
	return b
}
