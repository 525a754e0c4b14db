package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestSplit: the same text is always in the same fold, and every item is held out once.
func TestSplit(t *testing.T) {
	var texts []string
	for i := range 60 {
		texts = append(texts, fmt.Sprint("text ", i%20))
	}
	f, err := SplitFolds(texts, 4)
	if err != nil {
		t.Fatal(err)
	}
	var held []int
	for fold := range 4 {
		train, test := f.Of(fold)
		for _, i := range test {
			if slices.ContainsFunc(train, func(j int) bool { return texts[i] == texts[j] }) {
				t.Errorf("%q is on both sides", texts[i])
			}
		}
		held = append(held, test...)
	}
	if slices.Sort(held); !slices.Equal(held, f.all()) {
		t.Errorf("held out: %v", held)
	}
	for folds, want := range map[int]string{1: "at least 2", 50: "60 items do not fill 50 folds"} {
		if _, err := SplitFolds(texts, folds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d folds: error %v, want %s", folds, err, want)
		}
	}
}

// TestCompare compares with figures from SciPy.
func TestCompare(t *testing.T) {
	pairs := func(items, lost, gained int) (before, after []float64) {
		for i := range items {
			b, a := 0., 0.
			if i < lost {
				b = 1
			} else if i < lost+gained {
				a = 1
			}
			before, after = append(before, b), append(after, a)
		}
		return before, after
	}
	tests := []struct {
		name          string
		before, after []float64
		want          string
		better        bool
	}{
		{name: "clearly better", want: "+10.0 points [3.6, 17.3]", better: true},
		{name: "not clearly", want: "+1.0 points [-4.0, 6.2]"},
		{name: "no difference", want: "+0.0 points [-3.9, 3.9]"},
		{"shares", []float64{.5, .4, .6, .2, .2, .1}, []float64{.6, .6, .55, .2, .2, .4}, "+9.2 points [-10.4, 28.7]", false},
		{"all shares better", []float64{.1, .2, .3, .4, .5, .6}, []float64{.3, .4, .6, .6, .8, .9}, "+25.0 points [18.2, 31.8]", true},
		{"one share", []float64{.5, .5}, []float64{.5, .6}, "+5.0 points [-100.0, 100.0]", false},
	}
	tests[0].before, tests[0].after = pairs(200, 5, 25)
	tests[1].before, tests[1].after = pairs(200, 5, 7)
	tests[2].before, tests[2].after = pairs(150, 0, 0)
	for _, test := range tests {
		if d := (Folds{Count: 5}).Compare(test.before, test.after); d.String() != test.want || d.Better() != test.better {
			t.Errorf("%s: %v, better: %v; want %s", test.name, d, d.Better(), test.want)
		}
	}
	for freedom, want := range map[int]float64{1: 6.31375151, 2: 2.91998558, 10: 1.81246112, 100: 1.66023433} {
		if got := student(freedom); math.Abs(got-want) > 1e-7 {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}
