package sample_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/sample"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// If labels are sets, the weight of a label does not depend on how many other labels are near.
func TestPrototypeSets(t *testing.T) {
	stage, err := sample.Prototype().Open(t.Context(), sdk.Setup{Labels: sdk.LabelForm{Many: true}}, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	vote := func(cosines ...float32) []sdk.Answer {
		var item sdk.Item
		for i, c := range cosines {
			item.Prototypes = append(item.Prototypes, sdk.Candidate{Label: string(rune('a' + i)), Dense: c})
		}
		samples, err := stage.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
		if err != nil {
			t.Fatal(err)
		}
		return samples[0][0].Answers
	}
	one, two := vote(.6, .2, .1, .1), vote(.6, .6, .1, .1)
	if one[0].Weight < .9 || two[0].Weight < .9 || two[1].Weight != two[0].Weight || one[1].Weight > .2 {
		t.Errorf("one near label: %+v, two: %+v", one, two)
	}
}

func TestPrototypeVote(t *testing.T) {
	third := 1 / (1 + math.Exp(-2))
	tests := []struct {
		name       string
		config     string
		prototypes []sdk.Candidate
		want       []sdk.Answer
	}{
		{name: "no prototypes"},
		{name: "none scored", prototypes: []sdk.Candidate{{Label: "a", Dense: sdk.Unscored}}},
		{
			name:       "softmax of 20 cosines",
			prototypes: []sdk.Candidate{{Label: "a", Dense: .5}, {Label: "b", Dense: .6}, {Label: "c", Dense: sdk.Unscored}},
			want:       []sdk.Answer{{Label: "b", Weight: third}, {Label: "a", Weight: 1 - third}},
		},
		{
			name:       "dust is dropped and the rest sums to 1",
			prototypes: []sdk.Candidate{{Label: "a", Dense: 1}, {Label: "b", Dense: .2}},
			want:       []sdk.Answer{{Label: "a", Weight: 1}},
		},
		{
			name: "less sharp", config: `{"sharpness": 1e-9}`,
			prototypes: []sdk.Candidate{{Label: "z", Dense: 1}, {Label: "b", Dense: .2}},
			want:       []sdk.Answer{{Label: "z", Weight: .5}, {Label: "b", Weight: .5}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := sample.Prototype().Open(t.Context(), sdk.Setup{}, []byte(test.config))
			if err != nil {
				t.Fatal(err)
			}
			samples, err := stage.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Prototypes: test.prototypes}}})
			if err != nil || len(samples) != 1 {
				t.Fatalf("samples %v, error %v", samples, err)
			}
			var want []sdk.Sample
			if test.want != nil {
				want = []sdk.Sample{{Answers: test.want}}
			}
			if diff := cmp.Diff(want, samples[0], cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrototypeConformance(t *testing.T) { sdktest.Stage(t, sample.Prototype(), `{}`) }

func TestPrototypeArguments(t *testing.T) {
	_, err := sample.Prototype().Open(t.Context(), sdk.Setup{}, []byte(`{"sharpness": 0}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "sharpness" {
		t.Errorf("error %v, want one about sharpness", err)
	}
}

func TestPrototypeGolden(t *testing.T) {
	apitest.CheckReply(t, sample.Prototype(), `{}`, "1 5066d8a30dc7888c")
}
