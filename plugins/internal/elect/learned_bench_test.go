package elect_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// polled makes rows with votes for 150 labels: the statistical voters have their usual number of answers, and a model
// was asked six times.
func polled(n int) (labels []string, rows []sdk.TrainingRow) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		labels = append(labels, fmt.Sprintf("label %03d", i))
	}
	for i := range n {
		r := sdk.TrainingRow{ID: fmt.Sprintf("row %05d", i), Label: labels[random.IntN(len(labels))]}
		for _, answers := range []int{10, 150, 50} { // neighbours, prototype, linear
			s := sdk.Sample{Voter: fmt.Sprint(answers)}
			for j, at := range random.Perm(len(labels))[:answers] {
				label := labels[at]
				if j == 0 && random.Float64() < .8 {
					label = r.Label
				}
				s.Answers = append(s.Answers, sdk.Answer{Label: label, Weight: math.Exp(-float64(j)), Accepted: true})
			}
			r.Samples = append(r.Samples, s)
		}
		for range 6 {
			r.Samples = append(r.Samples, learnedSample("llm", labels[random.IntN(3)], 1.))
		}
		rows = append(rows, r)
	}
	return labels, rows
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{600, 10_000} {
		b.Run(fmt.Sprint("rows=", n), func(b *testing.B) {
			_, rows := polled(n)
			for b.Loop() {
				fitted(b, rows)
			}
		})
	}
}
