package ballot_test

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

var close9 = cmpopts.EquateApprox(0, 1e-9)

// sample makes a sample of accepted answers; a label that starts with "!" is not accepted.
func sample(voter string, labelsAndWeights ...any) sdk.Sample {
	s := sdk.Sample{Voter: voter}
	for i := 0; i < len(labelsAndWeights); i += 2 {
		label, weight := labelsAndWeights[i].(string), labelsAndWeights[i+1].(float64)
		a := sdk.Answer{Label: label, Weight: weight, Accepted: true}
		if label != "" && label[0] == '!' {
			a.Label, a.Accepted = label[1:], false
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

func shares(labelsAndWeights ...any) []sdk.Answer {
	all := sample("", labelsAndWeights...).Answers
	for i := range all {
		all[i].Accepted = false
	}
	return all
}

func TestMean(t *testing.T) {
	tests := []struct {
		name              string
		samples           []sdk.Sample
		weights           ballot.Weights
		want              []sdk.Answer
		margin, agreement float64
	}{
		{name: "nobody voted"},
		{name: "nothing accepted", samples: []sdk.Sample{sample("knn", "!a", 1.0), sample("llm")}},
		{
			name:    "one voter, not normalised",
			samples: []sdk.Sample{sample("knn", "a", 3.0, "b", 1.0)},
			want:    shares("a", .75, "b", .25), margin: .5, agreement: .75,
		},
		{
			name:    "what is left of a sample is normalised",
			samples: []sdk.Sample{sample("knn", "!a", .5, "b", .3, "c", .2)},
			want:    shares("b", .6, "c", .4), margin: .2, agreement: .6,
		},
		{
			name: "six samples of a model are one ballot",
			samples: []sdk.Sample{
				sample("knn", "a", 1.0),
				sample("llm", "b", 1.0), sample("llm", "b", 1.0), sample("llm", "a", 1.0), sample("llm", "b", 1.0),
			},
			want: shares("a", .625, "b", .375), margin: .25, agreement: .625,
		},
		{
			name: "rejected samples do not thin a voter's ballot",
			samples: []sdk.Sample{
				sample("llm", "!x", 1.0), sample("llm", "a", 1.0), sample("llm"), sample("knn", "b", .8, "a", .2),
			},
			want: shares("a", .6, "b", .4), margin: .2, agreement: .6,
		},
		{
			name:    "weights",
			samples: []sdk.Sample{sample("knn", "a", 1.0), sample("llm", "b", 1.0), sample("off", "c", 1.0)},
			weights: ballot.Weights{"llm": 3, "off": 0},
			want:    shares("b", .75, "a", .25), margin: .5, agreement: .75,
		},
		{
			name:    "ties stand in the order of the voters",
			samples: []sdk.Sample{sample("knn", "z", .5, "y", .5), sample("llm", "a", 1.0)},
			want:    shares("a", .5, "z", .25, "y", .25), margin: .25, agreement: .5,
		},
		{
			name: "rounding does not break a tie",
			samples: []sdk.Sample{
				sample("1", "z", .1, "a", .9), sample("2", "z", .2, "a", .8), sample("3", "z", .3, "a", .7),
				sample("4", "a", .1, "z", .9), sample("5", "a", .2, "z", .8), sample("6", "a", .3, "z", .7),
			},
			want: shares("z", .5, "a", .5), agreement: .5,
		},
		{
			name:    "odd answers count for nothing",
			samples: []sdk.Sample{sample("knn", "", math.NaN(), "a", -1.0, "b", math.NaN(), "d", math.Inf(1), "c", .5)},
			want:    shares("c", 1.0), margin: 1, agreement: 1,
		},
		{
			name:    "none of the labels is a vote",
			samples: []sdk.Sample{sample("knn", "a", .6, "b", .4), sample("llm", "", 1.0), sample("llm", "", 1.0), sample("llm", "b", 1.0)},
			want:    shares("b", (.4+1./3)/2, "", 1./3, "a", .3), margin: .4/2 - 1./6, agreement: (.4 + 1./3) / 2,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ballot.Mean(test.samples, test.weights)
			if diff := cmp.Diff(test.want, got, close9, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("mean ballot (-want +got):\n%s", diff)
			}
			if m := ballot.Margin(got); math.Abs(m-test.margin) > 1e-9 {
				t.Errorf("margin %v, want %v", m, test.margin)
			}
			if a := ballot.Agreement(got); math.Abs(a-test.agreement) > 1e-9 {
				t.Errorf("agreement %v, want %v", a, test.agreement)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	if got := ballot.Verdict(shares("a", .6, "b", .4)); got.Answer != "a" || got.Agreement != .6 || got.Labels != nil {
		t.Errorf("got %+v", got)
	}
	if got := ballot.Verdict(nil); got.Answer != "" || got.Agreement != 0 || got.Reason == "" {
		t.Errorf("an empty ballot gives %+v", got)
	}
	none := ballot.Verdict(shares("", .6, "b", .4))
	if none.Answer != "" || none.Agreement != .6 || none.Reason == "" || none.Reason == ballot.Verdict(nil).Reason {
		t.Errorf("a ballot for none of the labels gives %+v", none)
	}
}

func TestBest(t *testing.T) {
	tests := []struct {
		sample sdk.Sample
		want   string
		ok     bool
	}{
		{sample("llm"), "", false},
		{sample("llm", "!a", .6), "", false},
		{sample("knn", "!a", .6, "b", .4), "b", true},
		{sample("llm", "", 1.0), "", true},
	}
	for _, test := range tests {
		if got, ok := ballot.Best(test.sample); got != test.want || ok != test.ok {
			t.Errorf("%+v: got %q, %v", test.sample, got, ok)
		}
	}
}

func TestWorth(t *testing.T) {
	tests := []struct {
		p      float64
		labels int
		want   float64
	}{
		{.5, 2, 0},
		{.75, 2, math.Log(3)},
		{.75, 5, math.Log(12)},
		{.2, 5, 0},
		{.1, 5, 0}, // worse than chance: not turned into its opposite
		{0, 5, 0},
		{1, 2, math.Log(999)},
		{.75, 0, math.Log(3)}, // no knowledge
	}
	for _, test := range tests {
		if got := ballot.Worth(test.p, test.labels); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("Worth(%v, %d) = %v, want %v", test.p, test.labels, got, test.want)
		}
	}
	if got := ballot.Unmeasured(4); got != .625 {
		t.Errorf("Unmeasured(4) = %v", got)
	}
}

// Votes weighted by their worth elect the label with the greatest likelihood under the model of the
// formula.
func TestWorthElectsTheLikeliest(t *testing.T) {
	const labels = 3
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var votes ballot.Tally
		likelihood := [labels]float64{1, 1, 1}
		for range 1 + rng.IntN(6) {
			p, vote := .4+.55*rng.Float64(), rng.IntN(labels)
			votes.Add(fmt.Sprint(vote), ballot.Worth(p, labels))
			for label := range likelihood {
				if label == vote {
					likelihood[label] *= p
				} else {
					likelihood[label] *= (1 - p) / (labels - 1)
				}
			}
		}
		elected, _ := strconv.Atoi(ballot.Verdict(votes.Shares()).Answer)
		if best := slices.Max(likelihood[:]); likelihood[elected] < best*(1-1e-6) {
			t.Fatalf("%d is elected; likelihoods %v", elected, likelihood)
		}
	}
}

func TestRoll(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	given := slices.Values([]string{"knn", "lmm"})
	var roll ballot.Roll
	if roll.Report(log, "weights", given); out.Len() > 0 {
		t.Errorf("before anybody has voted: %s", &out)
	}
	roll.Note(sdk.Batch{Items: []sdk.Item{{}, {Samples: []sdk.Sample{sample("knn", "a", 1.0), sample("llm", "b", 1.0)}}}})
	roll.Report(nil, "weights", given)
	roll.Report(log, "weights", given)
	if got := out.String(); !strings.Contains(got, "absent=lmm ") || !strings.Contains(got, `unnamed=llm`) {
		t.Errorf("warned %q", got)
	}
	out.Reset()
	if roll.Report(log, "weights", slices.Values([]string{"llm"})); out.Len() > 0 {
		t.Errorf("although all have voted: %s", &out)
	}
	if roll.Report(log, "weights", slices.Values([]string{"knn", "llm", "dear"})); out.Len() > 0 {
		t.Errorf("although only one that was not asked has not voted: %s", &out)
	}
}

func TestSoftmax(t *testing.T) {
	tests := []struct {
		name      string
		scores    []float32
		sharpness float64
		want      []float64
	}{
		{"none", nil, 15, nil},
		{"flat", []float32{.9, .1}, 0, []float64{.5, .5}},
		{"ln 3 apart", []float32{0, 1}, math.Log(3), []float64{.25, .75}},
		{"no overflow", []float32{1000, 0}, 1000, []float64{1, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ballot.Softmax(test.scores, test.sharpness), close9); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
