package crossencoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// Models with random weights: a cross-encoder, and an encoder without a head.
const (
	crossFolder = "testdata/tiny"
	embedFolder = "../../internal/encoder/testdata/tiny"
)

// TestScores compares with sentence-transformers (testdata/tiny.py).
func TestScores(t *testing.T) {
	open, err := Stage().Open(t.Context(), sdk.Setup{}, fmt.Appendf(nil, `{"model": %q}`, crossFolder))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(crossFolder, "scores.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][3]any
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 5 {
		t.Fatal(len(rows), err)
	}
	var pairs []encoder.Pair
	for _, row := range rows {
		pairs = append(pairs, encoder.Pair{Query: row[0].(string), Passage: row[1].(string)})
	}
	got, err := open.(*reranker).model.Score(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		if want := row[2].(float64); math.Abs(float64(got[i])-want) > 1e-4 {
			t.Errorf("%q: score %v, want %v", pairs[i], got[i], want)
		}
	}
}

func TestConformance(t *testing.T) {
	for _, precision := range []string{"float32", "bfloat16", "int8"} {
		t.Run(precision, func(t *testing.T) {
			sdktest.Stage(t, Stage(), fmt.Sprintf(`{"model": %q, "precision": %q}`, crossFolder, precision))
		})
	}
}

func TestGolden(t *testing.T) {
	golden.Check(t, Stage(), fmt.Sprintf(`{"model": %q, "budget": "0s"}`, crossFolder), "1 7485f4a8d0cee70d")
}

// The ranking depends on the model, on what it computes in, and on where pairs are cut off.
func TestFingerprint(t *testing.T) {
	seen := map[string]string{}
	for _, config := range []string{`"tokens": 500`, `"tokens": 600`, `"tokens": 500, "precision": "int8"`, `"tokens": 500, "max_tokens": 20`, `"budget": "0s"`} {
		open, err := Stage().Open(t.Context(), sdk.Setup{}, fmt.Appendf(nil, `{"model": %q, %s}`, crossFolder, config))
		if err != nil {
			t.Fatal(err)
		}
		print := Stage().Fingerprint(open)
		if other, ok := seen[print]; ok {
			t.Errorf("%s and %s have the fingerprint %s", config, other, print)
		}
		seen[print] = config
	}
}

// A folder that is there and no cross-encoder is an error of the argument before anything runs; a
// model that is not there is one when the stage opens.
func TestWrongModel(t *testing.T) {
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	none := filepath.Join(t.TempDir(), "ranker")
	for _, c := range []struct {
		name, config, invalid, closed string // what Validate and Open say; empty: nothing
	}{
		{"a cross-encoder", fmt.Sprintf(`{"model": %q}`, crossFolder), "", ""},
		{"an encoder", fmt.Sprintf(`{"model": %q}`, embedFolder), "no cross-encoder", "no cross-encoder"},
		{"an empty folder", fmt.Sprintf(`{"model": %q}`, t.TempDir()), "config.json", "config.json"},
		{"no folder", fmt.Sprintf(`{"model": %q}`, none), "", "racflow model pull ranker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(c.config))
			for _, got := range []struct {
				err  error
				want string
			}{{Stage().Validate([]byte(c.config)), c.invalid}, {err, c.closed}} {
				of := (*sdk.ArgumentError)(nil)
				if got.want == "" && got.err != nil || got.want != "" && (!errors.As(got.err, &of) || of.Argument != "model" || !strings.Contains(got.err.Error(), got.want)) {
					t.Errorf("error %v, want %q", got.err, got.want)
				}
			}
		})
	}
}
