package sdktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
)

// enricher is an enricher made from a function over passages.
type enricher func(context.Context, []sdk.Passage) ([]sdk.Addition, error)

func (e enricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return e(ctx, passages)
}

func enrichStage(e enricher, options ...sdk.Option) sdk.Stage {
	return sdk.EnrichStage("words", "Adds words.", func(context.Context, sdk.Setup, none) (sdk.Enricher, error) { return e, nil }, options...)
}

// longest adds a document's id and the longest word of each passage. It fails for a passage of one
// word.
func longest(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	out, failed := make([]sdk.Addition, len(passages)), sdk.RowErrors{}
	for i, p := range passages {
		words := strings.Fields(p.Text())
		if len(words) == 1 {
			failed[i] = sdk.Invalid(errors.New("a single word"))
			continue
		}
		word := slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) })
		out[i] = sdk.Addition{Context: p.Document.ID, Terms: []string{word}}
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

func TestEnrichers(t *testing.T) {
	Stage(t, enrichStage(longest), "{}")
	var calls atomic.Int64
	Stage(t, enrichStage(func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
		out := make([]sdk.Addition, len(passages)) // a service may answer differently each time
		for i := range out {
			out[i].Context = fmt.Sprint(calls.Add(1))
		}
		return out, nil
	}, sdk.Network()), "{}")
}

func TestFaultyEnrichersFail(t *testing.T) {
	var calls atomic.Int64
	const number, same, cancel = "one addition per passage", "same document, same additions", "gives up when cancelled"
	for name, c := range map[string]struct {
		e           enricher
		check, want string
	}{
		"an addition too few": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			return make([]sdk.Addition, max(len(passages)-1, 0)), nil
		}, number, "0 results for 1 rows"},
		"an addition per document": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			n := 0
			for i, p := range passages {
				if i == 0 || p.Document != passages[i-1].Document {
					n++
				}
			}
			return make([]sdk.Addition, n), nil
		}, number, "1 results for 2 rows"},
		"one passage fails all": {func(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			out, err := longest(ctx, passages)
			if err != nil {
				return nil, fmt.Errorf("it failed: %d passages", len(passages))
			}
			return out, nil
		}, number, "it failed"},
		"needs a passage": {func(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			return longest(ctx, passages[:max(len(passages), 1)])
		}, number, "panic in the plugin"},
		"counts its calls": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			out := make([]sdk.Addition, len(passages))
			if len(out) > 0 {
				out[0].Context = fmt.Sprint(calls.Add(1))
			}
			return out, nil
		}, same, "other additions"},
		"numbers the batch": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			out := make([]sdk.Addition, len(passages))
			for i := range out {
				out[i].Context = fmt.Sprint(i)
			}
			return out, nil
		}, same, "other additions"},
		"knows the other documents": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			out := make([]sdk.Addition, len(passages))
			for i := range out {
				out[i].Terms = strings.Fields(passages[0].Text())
			}
			return out, nil
		}, same, "other additions"},
		"answers out of order": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			out := make([]sdk.Addition, len(passages))
			for i := range out {
				out[i].Context = passages[len(passages)-1-i].Document.ID
			}
			return out, nil
		}, same, "other additions"},
		"deaf": {func(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
			if len(passages) > 0 {
				time.Sleep(promptly + time.Second)
			}
			return make([]sdk.Addition, len(passages)), nil
		}, cancel, "after a cancelled call"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, enrichStage(c.e), c.check, c.want)
		})
	}
}
