package entries

import (
	"math"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
)

func TestScores(t *testing.T) {
	for _, test := range []struct {
		metric      string
		score, want float32
	}{{table.MetricCosine, 0.5, 0.5}, {table.MetricIP, 1.0000001, 1}, {table.MetricL2, 0, 1}, {table.MetricL2, 4.0000005, -1}, {table.MetricL2, 2, 0}, {table.MetricCosine, float32(math.NaN()), 0}} {
		if got := (scores{metric: test.metric}).toCosine(test.score); got != test.want {
			t.Errorf("%s of %v is %v, want %v", test.metric, test.score, got, test.want)
		}
	}
	for _, test := range []struct {
		scores scores
		want   []float32
	}{{scores{exact: true, norm: 5}, []float32{0.6, 0.8}}, {scores{}, []float32{0.6, 0.8}}, {scores{norm: 5}, []float32{3, 4}}} {
		if got := test.scores.query([]float32{6, 8}); !slices.Equal(got, test.want) {
			t.Errorf("%+v asks for %v, want %v", test.scores, got, test.want)
		}
	}
	if cosine([]float32{3, 0}, []float32{0, 0}) != 0 || cosine([]float32{3, 4}, []float32{6, 8}) != 1 {
		t.Error("cosines of a vector without direction, and of one direction")
	}
}
