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
