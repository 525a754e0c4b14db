package sdktest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// texts are the inputs that break embedders.
var texts = []string{
	"I lost my card yesterday", "what is the weather like", "", "   \t\n", "Größe, naïveté, Ελληνικά, 中文分词, 🙂",
	"caf\xe9 is not UTF-8", "\x00 a zero byte", strings.Repeat("a long text ", 2000), strings.Repeat("x", 5000), "I lost my card yesterday",
}

var embedChecks = map[string]check{
	"one vector per text": func(t testing.TB, stage sdk.Stage, config string) error {
		e, err := openEmbedder(t, stage, config)
		if err != nil {
			return err
		}
		for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
			// As in the engine, a vector that is neither of norm 1 nor zero is an error.
			if _, err := e.Embed(t.Context(), role, texts); err != nil {
				return err
			}
		}
		empty, err := e.Embed(t.Context(), sdk.RoleQuery, nil)
		if err != nil || len(empty) != 0 {
			return fmt.Errorf("an empty batch gave %d vectors, %v", len(empty), err)
		}
		return nil
	},
	"same text, same vector": func(t testing.TB, stage sdk.Stage, config string) error {
		e, err := openEmbedder(t, stage, config)
		if err != nil {
			return err
		}
		together, err := e.Embed(t.Context(), sdk.RolePassage, texts)
		if err != nil {
			return err
		}
		// One by one, all at the same time.
		var calls errgroup.Group
		for i, text := range texts {
			calls.Go(func() error {
				alone, err := e.Embed(t.Context(), sdk.RolePassage, []string{text})
				if err != nil {
					return err
				}
				if d := distance(alone[0], together[i]); !(d < 1e-4) {
					return fmt.Errorf("text %d, %.20q: alone it is %v away from its vector in a batch", i, text, d)
				}
				return nil
			})
		}
		return calls.Wait()
	},
	"gives up when cancelled": func(t testing.TB, stage sdk.Stage, config string) error {
		e, err := openEmbedder(t, stage, config)
		if err != nil {
			return err
		}
		many := make([]string, 5000)
		for i := range many {
			many[i] = fmt.Sprintf("utterance number %d about a lost card and the weather", i)
		}
		call := func(texts []string) func(context.Context) error {
			return func(ctx context.Context) error { _, err := e.Embed(ctx, sdk.RoleQuery, texts); return err }
		}
		return cancelled(call(many), call([]string{"probe"}))
	},
}

// openEmbedder opens an embedder, fitted where it wants to be, and then from
// its state in a new process as the engine does.
func openEmbedder(t testing.TB, stage sdk.Stage, config string) (*remote.Stage, error) {
	setup := sdk.Setup{StateDir: t.TempDir()}
	e, err := Open(t, stage, setup, config)
	if err != nil || !e.Fits() {
		return e, err
	}
	rows := []sdk.TrainingRow{{ID: "1", Text: "I lost my card"}, {ID: "2", Text: "what is the weather"}, {ID: "3", Text: "a long text"}}
	err = e.Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { _ = yield(rows[:2], nil) && yield(rows[2:], nil) })
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	state, err := e.State()
	if err != nil {
		return nil, err
	}
	setup.StateDir = StateDir(t, stage, t.TempDir(), state)
	return Open(t, stage, setup, config)
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}
