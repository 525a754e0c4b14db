package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/eval"
)

// TestAccuracy holds the main pipeline, without a language model, to what it
// has reached on public data. The data may not be part of the project: it is
// looked for beside the checkout.
func TestAccuracy(t *testing.T) {
	if testing.Short() {
		t.Skip("embeds thousands of texts")
	}
	data, err := filepath.Abs("../../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		set, input, embedder string
		least                float64
	}{
		{"rage", "clinc_gold_test_public.tsv", "minilm", 0.87},
		{"rage", "clinc_gold_test_public.tsv", "hashing", 0.75},
		{"hwu64", "test_public.tsv", "hashing", 0.87},
	}
	for _, test := range tests {
		t.Run(test.set+" "+test.embedder, func(t *testing.T) {
			train, input := filepath.Join(data, test.set, "train.tsv"), filepath.Join(data, test.set, test.input)
			if _, err := os.Stat(input); err != nil {
				t.Skip("the data is not here: ", err)
			}
			dir, file := t.TempDir(), intent(t)
			embedder := []string{"-var", "embedder=" + test.embedder}
			if test.embedder == "minilm" {
				embedder = withRememberedMiniLM(t, dir)
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				file = filepath.Join(dir, "intent.hcl")
				if err := os.WriteFile(file, append([]byte(rememberedReach), content...), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := racflow(t, dir, append([]string{"eval", "--json", "-var", "train=" + train, "--input", input, file}, embedder...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var r eval.Report
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if r.Accuracy < test.least || r.Failed > 0 {
				t.Errorf("accuracy %.4f with %d failed, want at least %.3f and none", r.Accuracy, r.Failed, test.least)
			}
			for _, v := range r.Voters {
				if v.Alone.Interval().Low > .005 { // of the difference on the same items
					t.Errorf("voter %s alone reaches %.4f, the election %.4f", v.Name, v.Accuracy, r.Accuracy)
				}
			}
			// Calibrated as well as chance lets anybody see, and never far off.
			if c := r.Calibration; c.ECE > max(c.Chance, .02) {
				t.Errorf("the calibration error is %.4f, by chance it is up to %.4f", c.ECE, c.Chance)
			}
		})
	}
}
