package sdk

import (
	"math"
	"testing"
)

func TestUsageSaturates(t *testing.T) {
	u := Usage{InputTokens: 1, CachedTokens: 2, OutputTokens: math.MaxInt64}
	u.Add(u)
	u.Add(Usage{OutputTokens: math.MaxInt64})
	if want := (Usage{InputTokens: 2, CachedTokens: 4, OutputTokens: math.MaxUint64}); u != want {
		t.Errorf("got %+v, want %+v", u, want)
	}
}

// TestBelieves: what a call cannot have taken is not believed, by what it takes at most and
// by what models can do.
func TestBelieves(t *testing.T) {
	short := Usage{InputTokens: 100, OutputTokens: 32}
	for _, test := range []struct {
		most, used Usage
		want       bool
	}{
		{Usage{}, Usage{}, true},
		{Usage{}, Usage{InputTokens: 10_000_000, OutputTokens: 1_000_000}, true},
		{Usage{}, Usage{InputTokens: 20_000_000}, false},
		{Usage{}, Usage{OutputTokens: 2_000_000}, false},
		{short, Usage{InputTokens: 300, OutputTokens: 64}, true},
		{short, Usage{InputTokens: 100, OutputTokens: 80_000}, true}, // it thinks
		{short, Usage{InputTokens: 100, OutputTokens: 600_000}, false},
		{Usage{OutputTokens: 4_000_000}, Usage{OutputTokens: 4_000_000}, true},
		{Usage{OutputTokens: 4_000_000}, Usage{OutputTokens: 4_000_001}, false},
		{short, Usage{CachedTokens: 1 << 62}, false},
		{Usage{InputTokens: math.MaxUint64, OutputTokens: math.MaxUint64}, Usage{OutputTokens: math.MaxInt64}, false},
	} {
		if got := (Call{Most: test.most}).Believes(test.used); got != test.want {
			t.Errorf("a call of at most %+v that took %+v: %v", test.most, test.used, got)
		}
	}
}
