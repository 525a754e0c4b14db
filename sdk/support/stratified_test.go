package support

import (
	"fmt"
	"math"
	"testing"
)

func TestEach(t *testing.T) {
	for name, test := range map[string]struct {
		rows        []int
		bound, want int
	}{
		"all fit":                {[]int{3, 5}, 8, math.MaxInt},
		"as many of each":        {[]int{9, 9, 9}, 10, 3},
		"a small one stays":      {[]int{90, 2, 90}, 42, 20},
		"no rows":                {nil, 5, math.MaxInt},
		"more labels than bound": {[]int{1, 1, 1}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EachStratified(test.rows, test.bound); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}

// TestRank: ids that differ only in their last digits are spread. Ranks never change, since nothing
// else identifies the samples that were learnt from.
func TestRank(t *testing.T) {
	low := 0
	for i := range 10_000 {
		if StratifiedRank(fmt.Sprintf("row-%05d", i)) < 1<<63 {
			low++
		}
	}
	if low < 4800 || low > 5200 {
		t.Errorf("%d of 10000 ranks are in the lower half", low)
	}
	if got := StratifiedRank("a"); got != 0x60c5f143a1f1c63f {
		t.Errorf("%#x", got)
	}
}
