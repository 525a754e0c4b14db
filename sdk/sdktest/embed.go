package sdktest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// texts are the inputs that break embedders.
var texts = []string{
	"I lost my card yesterday", "what is the weather like", "", "   \t\n", "Größe, naïveté, Ελληνικά, 中文分词, 🙂",
	"caf\xe9 is not UTF-8", "\x00 a zero byte", strings.Repeat("a long text ", 2000), strings.Repeat("x", 5000), "I lost my card yesterday",
}

var embedChecks = map[string]check{
	"one vector per text": opened(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
		for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
			// As in the engine, a vector that is neither of norm 1 nor zero is an error.
			if _, err := e.Embed(ctx, role, texts); err != nil {
				return err
			}
		}
		empty, err := e.Embed(ctx, sdk.RoleQuery, nil)
		if err != nil || len(empty) != 0 {
			return fmt.Errorf("an empty batch gave %d vectors, %v", len(empty), err)
		}
		return nil
	}),
	"same text, same vector": opened(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
		call := func(texts []string) ([][]float32, error) { return e.Embed(ctx, sdk.RolePassage, texts) }
		return sameResults(texts, 0, eachRow(len(texts)), call, func(got, want []float32) string {
			if d := distance(got, want); !(d < 1e-4) {
				return fmt.Sprintf("it is %v away from its vector before", d)
			}
			return ""
		})
	}),
	"gives up when cancelled": endsWhenCancelled(
		func() []string {
			many := make([]string, 5000)
			for i := range many {
				many[i] = fmt.Sprintf("utterance number %d about a lost card and the weather", i)
			}
			return many
		},
		func() []string { return []string{"probe"} },
		func(ctx context.Context, e *remote.Stage, _ sdk.Kind, texts []string) error {
			_, err := e.Embed(ctx, sdk.RoleQuery, texts)
			return err
		},
	),
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}
