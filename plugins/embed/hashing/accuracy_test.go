package hashing

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

const data = "../../../../shared/data/rage/"

// read returns the texts and labels of a TSV file with a header.
func read(t testing.TB, path string) (texts, labels []string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("without the data: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(file)), "\n")
	header := strings.Split(lines[0], "\t")
	text, label := slices.Index(header, "text"), slices.Index(header, "label")
	for _, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		texts, labels = append(texts, fields[text]), append(labels, fields[label])
	}
	return texts, labels
}

// TestAccuracy sorts real utterances by the nearest centroid of their labels.
func TestAccuracy(t *testing.T) {
	if testing.Short() {
		t.Skip("it embeds thousands of texts")
	}
	texts, labels := read(t, data+"train.tsv")
	e, _ := fitted(t, texts...)
	centroids := map[string][]float32{}
	for i, vector := range embed(t, e, texts...) {
		c := centroids[labels[i]]
		if c == nil {
			c = make([]float32, e.Dimension())
			centroids[labels[i]] = c
		}
		for j, v := range vector {
			c[j] += v
		}
	}
	norms := map[string]float64{}
	for label, c := range centroids {
		norms[label] = math.Sqrt(cosine(c, c))
	}
	texts, labels = read(t, data+"clinc_gold_test_public.tsv")
	right := 0
	for i, vector := range embed(t, e, texts...) {
		best, bestLabel := 0.0, ""
		for label, c := range centroids {
			if s := cosine(vector, c) / norms[label]; s > best {
				best, bestLabel = s, label
			}
		}
		if bestLabel == labels[i] {
			right++
		}
	}
	accuracy := float64(right) / float64(len(texts))
	t.Logf("nearest centroid: %.4f of %d", accuracy, len(texts))
	if accuracy < .68 {
		t.Errorf("accuracy %.4f, want at least .68", accuracy)
	}
}

func BenchmarkEmbed(b *testing.B) {
	texts, _ := read(b, data+"train.tsv")
	texts = texts[:1024]
	e, _ := fitted(b, texts...)
	for b.Loop() {
		embed(b, e, texts...)
	}
	b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
}
