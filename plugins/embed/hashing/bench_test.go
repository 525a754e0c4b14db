package hashing

import (
	"os"
	"strings"
	"testing"
)

func BenchmarkEmbed(b *testing.B) {
	file, err := os.ReadFile("../../../../shared/data/rage/train.tsv")
	if err != nil {
		b.Skipf("without the data: %v", err)
	}
	var texts []string
	for _, line := range strings.Split(string(file), "\n")[1:1025] {
		texts = append(texts, strings.Split(line, "\t")[1])
	}
	e, _ := fitted(b, texts...)
	for b.Loop() {
		embed(b, e, texts...)
	}
	b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
}
