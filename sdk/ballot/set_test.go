package ballot_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []sdk.Sample
		weights ballot.Weights
		want    []sdk.Answer
		margin  float64
		answer  string
	}{
		{name: "nobody voted"},
		{"shares are no parts of a whole", []sdk.Sample{sample("linear", "a", .9, "b", .8, "c", .1)}, nil, shares("a", .9, "b", .8, "c", .1), .6, "a; b"},
		{"a model's samples", []sdk.Sample{sample("llm", "a", 1.0, "b", 1.0), sample("llm", "a", 1.0), sample("llm", "!x", 1.0)}, nil, shares("a", 1.0, "b", .5), 0, "a; b"},
		{"the mean of the voters", []sdk.Sample{sample("linear", "a", .4, "b", .2), sample("llm", "c", 1.0)}, nil, shares("c", .5, "a", .2, "b", .1), 0, "c"},
		{"weights", []sdk.Sample{sample("linear", "a", 1.0), sample("llm", "c", 1.0)}, ballot.Weights{"llm": 3}, shares("c", .75, "a", .25), .5, "c"},
		{"at least one label", []sdk.Sample{sample("linear", "b", .2, "a", .1)}, nil, shares("b", .2, "a", .1), .6, "b"},
		{"in order", []sdk.Sample{sample("linear", "z", .6, "a", .6)}, nil, shares("z", .6, "a", .6), .2, "a; z"},
		{"none of the labels", []sdk.Sample{sample("llm", "", 1.0)}, nil, shares("", 1.0), 1, "[]"},
		{"most of a ballot is for none", []sdk.Sample{sample("near", "", .6, "a", .4)}, nil, shares("", .6, "a", .4), .2, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ballot.MeanSet(c.samples, c.weights)
			if diff := cmp.Diff(c.want, got, close9, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if margin := ballot.MarginSet(got); math.Abs(margin-c.margin) > 1e-9 {
				t.Errorf("margin %v, want %v", margin, c.margin)
			}
			v := ballot.VerdictSet(got, .5)
			if v.Answer != c.answer || (v.Reason == "") != (c.answer != "") {
				t.Errorf("verdict %+v, want %q", v, c.answer)
			}
		})
	}
	if v := ballot.VerdictSet(shares("a", .9, "b", .7, "c", .1), .5); math.Abs(v.Agreement-.8) > 1e-9 {
		t.Errorf("the agreement is %v, not the mean share of the labels", v.Agreement)
	}
}
