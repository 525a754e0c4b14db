package generation

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk"
)

func TestNearest(t *testing.T) {
	sums := LabelSums{}
	sums.Add("", []float32{9, 9})
	sums.Add("b", []float32{1, 0})
	sums.Add("b", []float32{0, 1})
	sums.Add("a", []float32{3, 0})
	sums.Add("none", []float32{1, 0})
	sums.Add("none", []float32{-1, 0})
	half := float32(math.Sqrt(0.5))
	centroids := sums.Entries()
	want := []sdk.Entry{
		{ID: "a", Label: "a", Vector: []float32{1, 0}},
		{ID: "b", Label: "b", Vector: []float32{half, half}},
		{ID: "none", Label: "none", Vector: []float32{0, 0}},
	}
	if d := cmp.Diff(want, centroids); d != "" {
		t.Errorf("centroids (-want +got):\n%s", d)
	}
	one := func(label string, cosine float32) sdk.Candidate {
		return sdk.Candidate{ID: label, Label: label, Score: cosine, Dense: cosine, Lexical: sdk.Unscored}
	}
	for name, c := range map[string]struct {
		vector []float32
		n      int
		want   []sdk.Candidate
	}{
		"another length":   {[]float32{0, 2}, 9, []sdk.Candidate{one("b", half), one("a", 0), one("none", 0)}},
		"equals, by label": {[]float32{0, -1}, 2, []sdk.Candidate{one("a", 0), one("none", 0)}},
		"the nearest":      {[]float32{1, 0}, 1, []sdk.Candidate{one("a", 1)}},
		"no direction":     {[]float32{0, 0}, 2, nil},
	} {
		if d := cmp.Diff(c.want, NearestCentroids(centroids, c.vector, c.n), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
