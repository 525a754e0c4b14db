package crossencoder

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// note is what the stage remembers in its state folder, so that the next run has the same
// budget.
type note struct {
	Model string  `json:"model"` // its fingerprint, and the processor's units
	Rate  float64 `json:"tokens_per_second"`
}

// rate returns how many tokens the model computes in a second of processor time, as it was
// measured here before, or by measure.
func (r *reranker) rate(ctx context.Context, setup sdk.Setup, measure func(context.Context, scorer) (float64, error)) (float64, error) {
	own := note{Model: fmt.Sprintf("%s %v", r.model.Fingerprint(), simd.Best())}
	path := filepath.Join(setup.StateDir, "cross-encoder.json")
	var known note
	if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &known) == nil && known.Model == own.Model && known.Rate > 0 {
		return known.Rate, nil
	}
	var err error
	if own.Rate, err = measure(ctx, r.model); err != nil || setup.StateDir == "" {
		return own.Rate, err
	}
	raw, err := json.Marshal(own)
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		r.log.Warn("how fast the model is cannot be stored and will be measured again", "error", err)
	}
	return own.Rate, nil
}

// sample is about how many words of a passage the model is measured on.
const sample = 120

// measure returns how many tokens of pairs the model computes in a second of processor time.
func measure(ctx context.Context, model scorer) (float64, error) {
	pair := encoder.Pair{Query: "how long is it kept", Passage: strings.Repeat("it is kept for as long as it is of use, ", sample/10)}
	if _, err := model.Score(ctx, []encoder.Pair{pair}); err != nil { // the first time, memory comes in
		return 0, err
	}
	before := processorTime()
	if _, err := model.Score(ctx, []encoder.Pair{pair}); err != nil {
		return 0, err
	}
	return float64(model.Tokens(pair)) / max(processorTime()-before, 1e-6), nil
}

// steps are the digits that round leaves a number.
var steps = []float64{7, 5, 3, 2, 1.5, 1}

// round returns the next of the numbers 1, 1.5, 2, 3, 5, 7, 10, 15 ... below x, so that
// measurements that differ a little lead to the same one; at least 1.
func round(x float64) int {
	x = min(max(x, 1), 1e9)
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, step := range steps {
		if step*unit <= x {
			return int(step * unit)
		}
	}
	return int(unit)
}
