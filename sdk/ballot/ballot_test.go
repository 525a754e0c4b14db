package ballot_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

var close9 = cmpopts.EquateApprox(0, 1e-9)

// sample makes one of accepted answers; a label that starts with "!" is not accepted.
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
			samples: []sdk.Sample{sample("knn", "", 5.0, "a", -1.0, "b", math.NaN(), "d", math.Inf(1), "c", .5)},
			want:    shares("c", 1.0), margin: 1, agreement: 1,
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
	if got := ballot.Verdict(shares("a", .6, "b", .4)); got != (sdk.Verdict{Answer: "a", Agreement: .6}) {
		t.Errorf("got %+v", got)
	}
	if got := ballot.Verdict(nil); got.Answer != "" || got.Agreement != 0 || got.Reason == "" {
		t.Errorf("an empty ballot gives %+v", got)
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

func TestParseWeights(t *testing.T) {
	got, err := ballot.ParseWeights("weights", map[string]string{"knn": "2", "llm": "0.5"})
	if err != nil || got.Of("knn") != 2 || got.Of("llm") != .5 || got.Of("other") != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "two", "-1", "NaN", "Inf"} {
		_, err := ballot.ParseWeights("weights", map[string]string{"knn": bad})
		if arg := new(sdk.ArgumentError); !errors.As(err, &arg) || arg.Argument != "weights" {
			t.Errorf("weight %q: error %v", bad, err)
		}
	}
}

func BenchmarkMean(b *testing.B) {
	samples := []sdk.Sample{sample("knn"), sample("prototype")}
	for i := range 30 {
		a := sdk.Answer{Label: string(rune('a' + i)), Weight: 1 / float64(i+1), Accepted: true}
		samples[0].Answers = append(samples[0].Answers, a)
		samples[1].Answers = append(samples[1].Answers, a)
	}
	for b.Loop() {
		ballot.Mean(samples, nil)
	}
}

// BenchmarkVote counts the votes of 50 neighbours with 10 labels, and of 150
// centroids with a label each.
func BenchmarkVote(b *testing.B) {
	for _, c := range []struct{ votes, labels int }{{50, 10}, {150, 150}} {
		b.Run(fmt.Sprintf("votes=%d/labels=%d", c.votes, c.labels), func(b *testing.B) {
			labels := make([]string, c.votes)
			for i := range labels {
				labels[i] = fmt.Sprint("label-", i*7%c.labels)
			}
			b.ReportAllocs()
			for b.Loop() {
				var votes ballot.Tally
				if c.labels == c.votes {
					votes.Grow(c.labels)
				}
				for i, label := range labels {
					votes.Add(label, 1/float64(i+1))
				}
				votes.Shares()
			}
		})
	}
}
