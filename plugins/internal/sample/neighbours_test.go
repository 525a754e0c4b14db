package sample_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/sample"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

func candidates(labelsAndScores ...any) []sdk.Candidate {
	var all []sdk.Candidate
	for i := 0; i < len(labelsAndScores); i += 2 {
		all = append(all, sdk.Candidate{Label: labelsAndScores[i].(string), Score: float32(labelsAndScores[i+1].(float64)), Dense: sdk.Unscored})
	}
	return all
}

func TestNeighboursVote(t *testing.T) {
	e := math.E
	tests := []struct {
		name       string
		config     string
		candidates []sdk.Candidate
		want       []sdk.Answer
	}{
		{name: "no candidates"},
		{name: "none with a label", candidates: candidates("", .9)},
		{
			name: "closer counts more", config: `{"sharpness": 1}`,
			candidates: candidates("near", 1.0, "far", 0.0, "far", 0.0),
			want:       []sdk.Answer{{Label: "near", Weight: e / (e + 2)}, {Label: "far", Weight: 2 / (e + 2)}},
		},
		{
			name: "plain kNN", config: `{"sharpness": 0}`,
			candidates: candidates("near", 1.0, "far", 0.0, "far", 0.0),
			want:       []sdk.Answer{{Label: "far", Weight: 2. / 3}, {Label: "near", Weight: 1. / 3}},
		},
		{
			name: "only k vote, and those without a label are not among them", config: `{"k": 2, "sharpness": 0}`,
			candidates: candidates("", 1.0, "z", .9, "a", .8, "a", .7),
			want:       []sdk.Answer{{Label: "z", Weight: .5}, {Label: "a", Weight: .5}},
		},
		{
			name:       "the defaults",
			candidates: candidates("a", .9, "b", .8),
			want:       []sdk.Answer{{Label: "a", Weight: 1 / (1 + math.Exp(-1.5))}, {Label: "b", Weight: 1 - 1/(1+math.Exp(-1.5))}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			samples, err := openNeighbours(t, test.config).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{}, {Candidates: test.candidates}}})
			if err != nil {
				t.Fatal(err)
			}
			if len(samples) != 2 || samples[0] != nil {
				t.Fatalf("samples %v: want two rows, the first of them empty", samples)
			}
			var want []sdk.Sample
			if test.want != nil {
				want = []sdk.Sample{{Answers: test.want}}
			}
			if diff := cmp.Diff(want, samples[1], cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDistance: the distance is that of the fifth nearest by cosine, whatever the order and the labels.
func TestDistance(t *testing.T) {
	of := func(cosines ...float32) (all []sdk.Candidate) {
		for _, c := range cosines {
			all = append(all, sdk.Candidate{Label: "a", Dense: c})
		}
		return all
	}
	unscored, unlabelled := of(sdk.Unscored, .25), of(.5, .5, .5, .75, .75, 0)
	unlabelled[3].Label = ""
	for name, test := range map[string]struct {
		candidates []sdk.Candidate
		want       float64
	}{
		"the fifth":                      {of(.25, .5, .875, .75, .625, .5, 0), .5},
		"the last of fewer":              {of(.75, .5), .5},
		"one without a label counts":     {unlabelled, .5},
		"one without a cosine does not":  {unscored, .75},
		"opposite":                       {of(-.5), 1},
		"a copy is not nothing":          {of(1), 1e-3},
		"no cosine: it is not estimated": {of(sdk.Unscored), 0},
	} {
		samples, err := openNeighbours(t, "").Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Candidates: test.candidates}}})
		if err != nil || samples[0][0].Distance != test.want {
			t.Errorf("%s: samples %v, error %v, want distance %v", name, samples, err, test.want)
		}
	}
}

func TestDefaultK(t *testing.T) {
	var many []sdk.Candidate
	for i := range 40 {
		many = append(many, sdk.Candidate{Label: fmt.Sprint(i)})
	}
	samples, err := openNeighbours(t, "").Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Candidates: many}}})
	if err != nil || len(samples[0][0].Answers) != 30 {
		t.Errorf("%d of 40 candidates voted, want 30 (error %v)", len(samples[0][0].Answers), err)
	}
}

func TestNeighboursConformance(t *testing.T) { sdktest.Stage(t, sample.Neighbours(), `{}`) }

func TestNeighboursArguments(t *testing.T) {
	for argument, config := range map[string]string{"k": `{"k": 0}`, "sharpness": `{"sharpness": -1}`} {
		_, err := sample.Neighbours().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != argument {
			t.Errorf("%s: error %v, want one about %s", config, err, argument)
		}
	}
}

func openNeighbours(t *testing.T, config string) sdk.Sampler {
	t.Helper()
	stage, err := sample.Neighbours().Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return stage.(sdk.Sampler)
}

func TestNeighboursGolden(t *testing.T) {
	apitest.CheckReply(t, sample.Neighbours(), `{}`, "2 dc5cf12e09badd92")
}
