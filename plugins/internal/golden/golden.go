// Package golden tests that the outputs of built-in stages stay the same: a test fails
// when a stage gives another output for the same input and its sdk.Revision was not
// raised, by which knowledge and runs recognise the change.
//
// Numbers are rounded, since processors differ in their last bits.
package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// Check opens a stage and compares its output for a fixed input with want: its revision
// and a hash of the output.
func Check(t *testing.T, stage sdk.Stage, config, want string) {
	t.Helper()
	open, err := stage.Open(t.Context(), sdk.Setup{Block: "golden", Samples: 3}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, open)
	if err != nil {
		t.Fatal(err)
	}
	Compare(t, stage, out, want)
}

// Compare does the same for an output that the test has got from the stage.
func Compare(t testing.TB, stage sdk.Stage, out any, want string) {
	t.Helper()
	revision := stage.Fingerprint(nil)
	got := revision + " " + hash(t, out)
	was, _, _ := strings.Cut(want, " ")
	switch {
	case got == want:
	case revision == was:
		t.Errorf("%s gives another output than at revision %s: where that is intended, raise revision (sdk.Revision) and write the new hash here, %s", stage.Name, was, got)
	default:
		t.Errorf("%s is at revision %s: write %q here", stage.Name, revision, got)
	}
}

// output is what a stage makes of the input of its kind.
func output(t *testing.T, stage any) (any, error) {
	ctx := t.Context()
	switch s := stage.(type) {
	case sdk.Chunker:
		return s.Chunk(ctx, documents())
	case sdk.Enricher:
		return s.Enrich(ctx, passages())
	case sdk.Embedder:
		return s.Embed(ctx, sdk.RolePassage, texts)
	case sdk.Reranker:
		return s.Rerank(ctx, batch())
	case sdk.Prompter:
		return s.Prompt(ctx, batch())
	case sdk.Sampler:
		return s.Sample(ctx, batch())
	case sdk.Elector:
		return s.Elect(ctx, batch())
	}
	t.Fatalf("a %T has no output to compare", stage)
	return nil, nil
}

// hash is that of a value's JSON, with rounded numbers.
func hash(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var any any
	if err := json.Unmarshal(text, &any); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(rounded(any)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// rounded is a decoded value whose numbers have four digits behind the point.
func rounded(v any) any {
	switch v := v.(type) {
	case float64:
		return math.Round(v*1e4)/1e4 + 0 // no negative zero
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rounded(v[k])
		}
	}
	return v
}
