package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	weight := func(w float64) error {
		return CheckSamples([]sdk.Sample{{}, {Answers: []sdk.Answer{{Label: "a", Weight: 1}, {Label: "b", Weight: w}}}})
	}
	candidate := func(score, dense, lexical float64) error {
		return CheckCandidates([]sdk.Candidate{{ID: "x", Score: float32(score), Dense: float32(dense), Lexical: float32(lexical)}})
	}
	ranked := func(score float64) error {
		return CheckRanking([]sdk.Ranked{{Candidate: 3, Score: float32(score)}})
	}
	agreement := func(a float64) error { return CheckVerdict(sdk.Verdict{Answer: "a", Agreement: a}) }
	confidence := func(c float64) error { return CheckVerdict(sdk.Verdict{Answer: "a", Confidence: c}) }
	for _, c := range []struct {
		err  error
		want string // part of the message; empty: no error
	}{
		{weight(0), ""},
		{weight(MaxWeight), ""},
		{weight(nan), `weight NaN for answer 2;`},
		{weight(inf), `weight +Inf for answer 2;`},
		{weight(-inf), `weight -Inf for answer 2;`},
		{weight(1e308), `weight 1e+308 for answer 2;`},
		{weight(-.1), `weight -0.1 for answer 2;`},
		{CheckSamples([]sdk.Sample{{Usage: sdk.Usage{OutputTokens: sdk.MaxTokens}}}), ""},
		{CheckSamples([]sdk.Sample{{Usage: sdk.Usage{OutputTokens: math.MaxInt64}}}), "a count of 9223372036854775807 tokens"},
		{CheckSamples([]sdk.Sample{{Usage: sdk.Usage{InputTokens: math.MaxUint64}}}), "a count of 18446744073709551615 tokens"},
		{CheckSamples([]sdk.Sample{{Usage: sdk.Usage{CachedTokens: sdk.MaxTokens + 1}}}), "a count of 4294967297 tokens"},
		{agreement(0), ""},
		{agreement(1 + 1e-12), ""},
		{agreement(1.001), "agreement 1.001;"},
		{agreement(-1), "agreement -1"},
		{agreement(nan), "agreement NaN"},
		{agreement(inf), "agreement +Inf"},
		{confidence(1), ""},
		{confidence(1.01), "confidence 1.01;"},
		{confidence(nan), "confidence NaN"},
		{CheckVerdict(sdk.Verdict{Unknown: 1}), ""},
		{CheckVerdict(sdk.Verdict{Unknown: 1.01}), "unknown 1.01;"},
		{CheckVerdict(sdk.Verdict{Unknown: nan}), "unknown NaN"},
		{CheckSamples([]sdk.Sample{{Distance: 1}}), ""},
		{CheckSamples([]sdk.Sample{{Distance: 1.01}}), "distance 1.01;"},
		{CheckSamples([]sdk.Sample{{Distance: nan}}), "distance NaN"},
		{candidate(1, nan, nan), ""},
		{candidate(-1, -1, 1e9), ""},
		{candidate(nan, 1, 1), `score NaN for candidate 1;`},
		{candidate(1, inf, 1), `dense score +Inf for candidate 1;`},
		{candidate(1, 1, -inf), `lexical score -Inf for candidate 1;`},
		{candidate(3e38, 1, 1), `score 3e+38 for candidate 1;`},
		{ranked(-40), ""},
		{ranked(nan), "score NaN for candidate 4;"},
		{ranked(-inf), "score -Inf for candidate 4;"},
		{ranked(2e30), "score 2e+30 for candidate 4;"},
		{CheckVector([]float32{.6, .8}), ""},
		{CheckVector([]float32{.6, .8005}), ""},
		{CheckVector(make([]float32, 3)), ""},
		{CheckVector([]float32{0, float32(nan)}), "a vector with NaN at position 2;"},
		{CheckVector([]float32{float32(inf), 0}), "a vector with +Inf at position 1;"},
		{CheckVector([]float32{3, 4}), "a vector of norm 5"},
		{CheckVector([]float32{.6, .81}), "a vector of norm 1.008"},
		{CheckVector([]float32{math.MaxFloat32, math.MaxFloat32}), "a vector of norm 4.8"},
		{CheckDirection([]float32{3, 4, math.MaxFloat32}), ""},
		{CheckDirection([]float32{1, float32(-inf)}), "a vector with -Inf at position 2;"},
	} {
		if got := c.err; c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("got %v, want %q", got, c.want)
		}
	}
}

// Sums of the largest allowed numbers are finite.
func TestBoundsAddUp(t *testing.T) {
	if sum := float64(MaxWeight) * MaxWeight * (1 << 50); math.IsInf(sum, 0) {
		t.Error("weights do not add up")
	}
	sum := float32(MaxScore)
	if sum *= 1e8; math.IsInf(float64(sum), 0) {
		t.Error("scores do not add up")
	}
	if most := uint64(sdk.MaxTokens) * 2 * (1 << 30); most > math.MaxInt64+1 {
		t.Errorf("%d tokens are more than an int64 holds", most)
	}
}
