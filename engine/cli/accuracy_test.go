package cli

import (
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/eval"
)

// BenchmarkAccuracy shows the accuracy and the calibration error of the main pipeline without a
// language model, on public data beside the checkout.
func BenchmarkAccuracy(b *testing.B) {
	for _, set := range []struct{ name, input, embedder string }{
		{"rage", "clinc_gold_test_public.tsv", "minilm"},
		{"rage", "clinc_gold_test_public.tsv", "hashing"},
		{"hwu64", "test_public.tsv", "hashing"},
	} {
		b.Run(set.name+"/"+set.embedder, func(b *testing.B) {
			train, input := sharedData(b, set.name+"/train.tsv"), sharedData(b, set.name+"/"+set.input)
			dir, file := b.TempDir(), intent(b)
			embedder := []string{"-var", "embedder=" + set.embedder}
			if set.embedder == "minilm" {
				embedder = withRememberedMiniLM(b, dir)
				write(b, dir, "intent.hcl", rememberedReach+readFile(b, "", file))
				file = filepath.Join(dir, "intent.hcl")
			}
			var r eval.Report
			for b.Loop() {
				args := append([]string{"eval", "--json", "-var", "train=" + train, "--input", input, file}, embedder...)
				out, _ := good(b, racflow(b, dir, args...))
				r = jsonLines[eval.Report](b, out)[0]
			}
			b.ReportMetric(r.Accuracy, "accuracy")
			b.ReportMetric(r.Calibration.ECE, "ECE")
			for _, v := range r.Voters {
				b.ReportMetric(v.Accuracy, v.Name+"-alone")
			}
		})
	}
}
