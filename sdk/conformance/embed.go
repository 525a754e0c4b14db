package conformance

import (
	"context"
	"errors"
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

var embedChecks = []Check{
	{Name: "one vector per text", Within: Long,
		Why: "Vectors are matched with texts by their place, also those of empty and odd texts.",
		Fix: "Return a vector for each text, in their order; a text with nothing to embed has one of zeros.",
		Run: opened(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
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
		Run: opened(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
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
		Run: opened(func(ctx context.Context, e *remote.Stage, _ sdk.Stage) error {
			call := func(texts []string) ([][]float32, error) { return e.Embed(ctx, sdk.RolePassage, texts) }
			return sameResults(texts, 0, eachRow(len(texts)), call, func(got, want []float32) string {
				if d := distance(got, want); !(d < 1e-4) {
					return fmt.Sprintf("it is %v away from its vector before", d)
				}
				return ""
			})
		})},
	endsWhenCancelled(
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

// embedded are vectors, whatever their numbers.
func embedded(vectors [][]float32, err error) ([][]float32, error) {
	var failed sdk.RowErrors
	if !errors.As(err, &failed) {
		return vectors, err
	}
	for row, err := range failed {
		if number := new(remote.NumberError); !errors.As(err, &number) {
			return nil, fmt.Errorf("text %d: %w", row, err)
		}
	}
	return vectors, nil
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}
