package eval

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) < 5e-7 }

// TestWilson: the first three are the examples of Newcombe, "Two-sided confidence intervals for the
// single proportion", Statistics in Medicine 17:857-872, 1998; the others were computed with SciPy.
func TestWilson(t *testing.T) {
	tests := []struct {
		right, n  int
		low, high float64
	}{
		{81, 263, .255289, .366210}, {15, 148, .062386, .160487}, {0, 20, 0, .161125},
		{20, 20, .838875, 1}, {1, 10, .017876, .404150}, {1960, 2000, .972881, .985278}, {0, 0, 0, 1},
	}
	for _, test := range tests {
		if got := Wilson(test.right, test.n); !near(got.Low, test.low) || !near(got.High, test.high) {
			t.Errorf("%d of %d: %v, want %v to %v", test.right, test.n, got, test.low, test.high)
		}
	}
}

// TestExact compares one-sided bounds with SciPy's quantiles of the beta distribution.
func TestExact(t *testing.T) {
	tests := []struct {
		right, n        int
		atLeast, atMost float64
	}{
		{0, 20, 0, .13910834}, {20, 20, .86089166, 1}, {1, 10, .00511620, .39416330},
		{81, 263, .26105575, .35817850}, {1960, 2000, .97404409, .98486867}, {0, 0, 0, 1},
	}
	for _, test := range tests {
		if got := AtLeast(test.right, test.n, .95); !near(got, test.atLeast) {
			t.Errorf("%d of %d are at least %v, want %v", test.right, test.n, got, test.atLeast)
		}
		if got := AtMost(test.right, test.n, .95); !near(got, test.atMost) {
			t.Errorf("%d of %d are at most %v, want %v", test.right, test.n, got, test.atMost)
		}
	}
}

// TestPaired: computed with SciPy by maximising the likelihood numerically, not by the closed form.
// The first is the example of Newcombe, "Improved confidence intervals for the difference between
// binomial proportions based on paired data", Statistics in Medicine 17:2635-2650, 1998.
func TestPaired(t *testing.T) {
	tests := []struct {
		Paired
		low, high, loss, chance float64
	}{
		{Paired{50, 2, 12}, .061112, .344709, -.085474, .012939453},
		{Paired{50, 12, 2}, -.344709, -.061112, .320413, .012939453},
		{Paired{200, 5, 15}, .006785, .098789, -.014158, .041389465},
		{Paired{2320, 60, 109}, .010256, .032353, -.012004, .00020239774},
		{Paired{30, 0, 0}, -.113513, .113513, .082724, 1},
		{Paired{30, 0, 4}, .004685, .296813, -.039579, .125},
		{Paired{100, 0, 1}, -.027363, .054486, .016606, 1},
		{Paired{1000, 5, 0}, -.011651, -.001154, .010235, .0625},
		{Paired{10, 3, 3}, -.444218, .444218, .381972, 1},
		{Paired{10, 0, 10}, .444934, 1, -.574116, .001953125},
		{Paired{}, -1, 1, 1, 1},
	}
	for _, test := range tests {
		i := test.Interval()
		if !near(i.Low, test.low) || !near(i.High, test.high) {
			t.Errorf("%+v: %v, want %v to %v", test.Paired, i, test.low, test.high)
		}
		if got := test.LossAtMost(.95); !near(got, test.loss) {
			t.Errorf("%+v loses at most %v, want %v", test.Paired, got, test.loss)
		}
		if got := test.Chance(); !near(got, test.chance) {
			t.Errorf("%+v: chance %v, want %v", test.Paired, got, test.chance)
		}
	}
	var p Paired
	for _, pair := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, true}, {false, false}} {
		p.Add(pair[0], pair[1])
	}
	if p != (Paired{5, 1, 2}) || !near(p.Difference(), .2) {
		t.Errorf("%+v, difference %v", p, p.Difference())
	}
}

// TestPairedHolds: the interval has its nominal level when the truth is known.
func TestPairedHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, truth := range []struct{ lost, gained float64 }{{.05, .05}, {.02, .04}, {.3, .1}} {
		const draws = 2000
		held := 0
		for range draws {
			var p Paired
			for range 300 {
				u := random.Float64()
				p.Add(u < truth.lost, u >= truth.lost && u < truth.lost+truth.gained)
			}
			if i, d := p.Interval(), truth.gained-truth.lost; i.Low <= d && d <= i.High {
				held++
			}
		}
		if share := float64(held) / draws; share < .93 || share > .97 {
			t.Errorf("%v: the interval holds the truth in %.3f of the draws", truth, share)
		}
	}
}

// TestJSON: figures derived from the counts are written with them, and the counts are read back.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(map[string]any{"adds": &Paired{200, 5, 15}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"adds":{"items":200,"lost":5,"gained":15,"difference":0.05,"interval":{"low":0.0067`
	if !strings.HasPrefix(string(text), want) || !strings.Contains(string(text), `"chance":0.0413`) {
		t.Errorf("got %s, want %s...", text, want)
	}
	var back struct{ Adds Paired }
	if err := json.Unmarshal(text, &back); err != nil || back.Adds != (Paired{200, 5, 15}) {
		t.Errorf("read back %+v, error %v", back, err)
	}
}
