package majority_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/elect/majority"
	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// sample makes a sample of accepted answers, best first; "!a" is not accepted,
// "-" is none of the labels.
func sample(voter string, labels ...string) sdk.Sample {
	s := sdk.Sample{Voter: voter}
	for i, label := range labels {
		a := sdk.Answer{Label: strings.Trim(label, "!-"), Weight: 1 / float64(i+1), Accepted: label[0] != '!'}
		s.Answers = append(s.Answers, a)
	}
	return s
}

func TestElect(t *testing.T) {
	tests := []struct {
		name      string
		config    string
		samples   []sdk.Sample
		want      string
		agreement float64
	}{
		{name: "no voters"},
		{name: "nothing accepted", samples: []sdk.Sample{sample("knn", "!a"), sample("llm")}},
		{
			name:    "most votes win",
			samples: []sdk.Sample{sample("knn", "a", "b"), sample("llm", "b"), sample("llm", "b"), sample("llm", "c")},
			want:    "b", agreement: .5,
		},
		{
			name:    "rejected answers are skipped",
			samples: []sdk.Sample{sample("knn", "!a", "b", "c"), sample("llm", "!x"), sample("llm", "c"), sample("llm", "b")},
			want:    "b", agreement: 2. / 3,
		},
		{
			name:    "the first voter wins a tie",
			samples: []sdk.Sample{sample("knn", "z"), sample("llm", "a"), sample("llm", "a"), sample("llm", "z")},
			want:    "z", agreement: .5,
		},
		{
			name:    "a tie without the first voter",
			samples: []sdk.Sample{sample("knn", "z"), sample("llm", "b"), sample("llm", "a"), sample("other", "a"), sample("other", "b")},
			want:    "b", agreement: .4,
		},
		{
			name: "weights", config: `{"weights": {"knn": 2.5, "off": 0}}`,
			samples: []sdk.Sample{sample("off", "c"), sample("llm", "a"), sample("llm", "a"), sample("knn", "b")},
			want:    "b", agreement: 2.5 / 4.5,
		},
		{
			name:      "none of the labels wins",
			samples:   []sdk.Sample{sample("knn", "a"), sample("llm", "-"), sample("llm", "-"), sample("llm", "b")},
			agreement: .5,
		},
		{
			name:    "none of the labels loses",
			samples: []sdk.Sample{sample("knn", "a"), sample("llm", "-"), sample("llm", "a")},
			want:    "a", agreement: 2. / 3,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := majority.Stage().Open(t.Context(), sdk.Setup{}, []byte(test.config))
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
	stage, err := majority.Stage().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": 0}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: []sdk.Sample{sample("knn", "a")}}, {}}})
	if err != nil || got[0].Reason != "every voter that gave an acceptable answer has weight 0" || got[1].Reason != "no voter gave an acceptable answer" {
		t.Errorf("verdicts %+v, error %v", got, err)
	}
}

func TestConformance(t *testing.T) {
	sdktest.Stage(t, majority.Stage(), `{"weights": {"neighbours": 2}}`)
}

func TestArguments(t *testing.T) {
	_, err := majority.Stage().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": "heavy"}}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "weights" {
		t.Errorf("error %v, want one about weights", err)
	}
}

func TestGolden(t *testing.T) { golden.Check(t, majority.Stage(), `{}`, "1 61f154eb9e958c0a") }
