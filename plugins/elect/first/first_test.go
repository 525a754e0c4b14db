package first_test

import (
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/elect/first"
	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// sample makes a sample of accepted answers, best first; "!a" is not accepted,
// "-" is none of the labels.
func sample(voter string, labels ...string) sdk.Sample {
	s := sdk.Sample{Voter: voter}
	for _, label := range labels {
		s.Answers = append(s.Answers, sdk.Answer{Label: strings.Trim(label, "!-"), Weight: 1, Accepted: label[0] != '!'})
	}
	return s
}

func TestElect(t *testing.T) {
	tests := []struct {
		name      string
		samples   []sdk.Sample
		want      string
		agreement float64
		reason    string
	}{
		{name: "no voters", reason: "no voter gave an acceptable answer"},
		{name: "never acceptable", samples: []sdk.Sample{sample("llm", "!x"), sample("llm", "!y"), sample("llm")}, reason: "no voter gave an acceptable answer"},
		{name: "at once", samples: []sdk.Sample{sample("llm", "b", "a")}, want: "b", agreement: 1},
		{name: "at the third try", samples: []sdk.Sample{sample("llm", "!x"), sample("llm"), sample("llm", "a")}, want: "a", agreement: 1},
		{
			name:    "not the most votes",
			samples: []sdk.Sample{sample("llm", "!x", "a"), sample("other", "b"), sample("other", "b"), sample("other", "a")},
			want:    "a", agreement: .5,
		},
		{
			name: "none of the labels", samples: []sdk.Sample{sample("llm", "!x"), sample("llm", "-"), sample("knn", "a")},
			agreement: .5, reason: "the voters say that none of the labels fits",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := first.Stage().Open(t.Context(), sdk.Setup{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: test.samples}}})
			if err != nil || len(verdicts) != 1 {
				t.Fatalf("verdicts %v, error %v", verdicts, err)
			}
			v := verdicts[0]
			if v.Answer != test.want || math.Abs(v.Agreement-test.agreement) > 1e-9 || v.Reason != test.reason {
				t.Errorf("got %+v, want %q with agreement %v, %q", v, test.want, test.agreement, test.reason)
			}
		})
	}
}

func TestConformance(t *testing.T) { sdktest.Stage(t, first.Stage(), `{}`) }

func TestGolden(t *testing.T) { golden.Check(t, first.Stage(), `{}`, "1 22012f2431d39b33") }
