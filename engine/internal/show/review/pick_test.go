package review

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// angle returns a vector of length 1 in a plane; cosines follow from the angles.
func angle(degrees float64) []float32 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(cos), float32(sin)}
}

func positions(t *testing.T, all []lesson, n int) (at []int) {
	t.Helper()
	picks, err := pick(t.Context(), all, 0, n)
	must.Do(t, err)
	for _, p := range picks {
		at = append(at, p.at)
	}
	return at
}

func TestPick(t *testing.T) {
	crowd := func(doubt float64, covered float32, degrees ...float64) (all []lesson) {
		for _, d := range degrees {
			all = append(all, lesson{vector: angle(d), doubt: doubt, covered: covered})
		}
		return all
	}
	join := func(crowds ...[]lesson) (all []lesson) {
		for _, c := range crowds {
			all = append(all, c...)
		}
		return all
	}
	for name, test := range map[string]struct {
		all  []lesson
		n    int
		want []int
	}{
		"the middle of a crowd, then that of another":        {join(crowd(1, 0, 0, 10, 20), crowd(.5, 0, 180, 190, 200)), 2, []int{1, 4}},
		"doubtful texts before sure ones":                    {join(crowd(0, 0, 0, 3, 6), crowd(1, 0, 90, 92)), 1, []int{3}},
		"what nothing labelled is like before what has that": {join(crowd(1, .9, 0, 3, 6), crowd(1, 0, 90, 92)), 1, []int{3}},
		"sure texts too, where there are no others":          {crowd(0, 0, 0, 90), 9, []int{0, 1}},
		"none that a labelled text stands for":               {crowd(1, 1, 0, 90), 9, nil},
		"of texts at one place the first alone":              {crowd(1, 0, 0, 0, 90), 9, []int{0, 2}},
		"none without a vector":                              {[]lesson{{doubt: 1}, {vector: angle(0), doubt: 1}}, 9, []int{1}},
		"none of another length":                             {[]lesson{{vector: []float32{1}, doubt: 1}, {vector: angle(0)}}, 1, []int{0}},
	} {
		if d := cmp.Diff(test.want, positions(t, test.all, test.n)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Labelled texts, and near copies of a pick, are closed. A pick has the number of open texts that
// it represents.
func TestPickLeavesOut(t *testing.T) {
	all := make([]lesson, 6)
	for i := range all {
		all[i] = lesson{vector: angle(10 * float64(i)), doubt: 1}
	}
	all[2].near, all[3].near = []int{3}, []int{2}
	picks, err := pick(t.Context(), all, 1, 9)
	must.Do(t, err)
	taken := map[int]bool{}
	for _, p := range picks {
		taken[p.at] = true
	}
	must.Equal(t, "number picked", 4, len(picks))
	if taken[5] || taken[2] == taken[3] || picks[0].covers == 0 || picks[3].covers != 0 {
		t.Errorf("picked: %v", picks)
	}
}

// Recomputing only the next text gives the same picks as recomputing all texts each time.
func TestPickIsGreedy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := func() []lesson {
		all := make([]lesson, 200)
		random := rand.New(rand.NewPCG(random.Uint64(), 3))
		for i := range all {
			v := make([]float32, 7)
			for j := range v {
				v[j] = float32(random.NormFloat64())
			}
			all[i] = lesson{vector: unit(v), doubt: random.Float64(), covered: random.Float32() / 2}
		}
		return all
	}
	for range 5 {
		all := texts()
		want := []int{}
		p, err := compare(t.Context(), append([]lesson{}, all...))
		must.Do(t, err)
		for len(want) < 30 {
			best, most := 0, -1.
			for i := range all {
				if sum := p.adds(i); sum > most {
					best, most = i, sum
				}
			}
			want = append(want, best)
			p.cover(best)
		}
		if d := cmp.Diff(want, positions(t, append([]lesson{}, all...), 30)); d != "" {
			t.Errorf("picks (-all evaluated +lazy):\n%s", d)
		}
	}
}

func TestDot(t *testing.T) {
	a := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if got := dot(a, a); got != 385 {
		t.Errorf("dot is %v", got)
	}
	if got := dot(a, a[:4]); got != 0 {
		t.Errorf("of different lengths: %v", got)
	}
	if got := unit([]float32{0, 3, 0, 4, 0}); !cmp.Equal(got, []float32{0, .6, 0, .8, 0}) || unit(make([]float32, 3)) != nil {
		t.Errorf("unit is %v", got)
	}
}
