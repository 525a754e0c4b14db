package soft_test

import (
	"errors"
	"math"
	"testing"

	"github.com/racflow/racflow/plugins/elect/soft"
	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

func answer(label string, weight float64) sdk.Answer {
	return sdk.Answer{Label: label, Weight: weight, Accepted: true}
}

func TestElect(t *testing.T) {
	samples := []sdk.Sample{
		{Voter: "knn", Answers: []sdk.Answer{answer("a", .6), answer("b", .4)}},
		{Voter: "prototype", Answers: []sdk.Answer{{Label: "x", Weight: .5}, answer("b", .4), answer("a", .1)}},
		{Voter: "llm", Answers: []sdk.Answer{answer("a", 1)}},
		{Voter: "llm", Answers: []sdk.Answer{answer("c", 1)}},
	}
	tests := []struct {
		name      string
		config    string
		samples   []sdk.Sample
		want      string
		agreement float64
	}{
		{name: "no voters"},
		{name: "nothing accepted", samples: []sdk.Sample{{Voter: "knn", Answers: []sdk.Answer{{Label: "a", Weight: 1}}}}},
		{name: "two ballots", samples: samples[:2], want: "b", agreement: .6},
		{name: "a model is one ballot", samples: samples, want: "a", agreement: 1.3 / 3},
		{name: "weights", config: `{"weights": {"prototype": 2}}`, samples: samples, want: "b", agreement: 2. / 4},
		{name: "none of the labels", samples: append(samples[:1:1], sdk.Sample{Voter: "other", Answers: []sdk.Answer{answer("", .7), answer("a", .1)}}), agreement: .4375},
		{name: "the first voter wins a tie", samples: samples[2:], want: "a", agreement: .5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := soft.Stage().Open(t.Context(), sdk.Setup{}, []byte(test.config))
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: test.samples}}})
			if err != nil || len(verdicts) != 1 {
				t.Fatalf("verdicts %v, error %v", verdicts, err)
			}
			v := verdicts[0]
			if v.Answer != test.want || math.Abs(v.Agreement-test.agreement) > 1e-9 || (v.Reason == "") != (test.want != "") {
				t.Errorf("got %+v, want %q with agreement %v", v, test.want, test.agreement)
			}
		})
	}
}

func TestNoWeight(t *testing.T) {
	stage, err := soft.Stage().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": 0}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: []sdk.Sample{{Voter: "knn", Answers: []sdk.Answer{answer("a", 1)}}}}, {}}})
	if err != nil || got[0].Reason != "every voter that gave an acceptable answer has weight 0" || got[1].Reason != "no voter gave an acceptable answer" {
		t.Errorf("verdicts %+v, error %v", got, err)
	}
}

func TestConformance(t *testing.T) {
	sdktest.Stage(t, soft.Stage(), `{"weights": {"neighbours": 2}}`)
}

func TestArguments(t *testing.T) {
	_, err := soft.Stage().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": -1}}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "weights" {
		t.Errorf("error %v, want one about weights", err)
	}
}

func TestGolden(t *testing.T) { golden.Check(t, soft.Stage(), `{}`, "1 b89839a4841a7ace") }
