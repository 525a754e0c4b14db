package weighted_test

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/elect/weighted"
	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
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
	labels := []string{"a", "b", "c", "d", "e"}
	worth := func(p float64) float64 { return ballot.Worth(p, 5) }
	tests := []struct {
		name      string
		config    string
		samples   []sdk.Sample
		want      string
		agreement float64
		reason    string
	}{
		{name: "no voters", reason: "no voter gave an acceptable answer"},
		{name: "nothing accepted", samples: []sdk.Sample{sample("knn", "!a")}, reason: "no voter gave an acceptable answer"},
		{
			name: "a good voter outvotes two poor ones", config: `{"accuracy": {"good": 0.95, "poor": 0.4, "bad": 0.3}}`,
			samples: []sdk.Sample{sample("poor", "a"), sample("bad", "a"), sample("good", "b", "a")},
			want:    "b", agreement: worth(.95) / (worth(.95) + worth(.4) + worth(.3)),
		},
		{
			name: "but not three that are nearly as good", config: `{"accuracy": {"good": 0.95, "1": 0.8, "2": 0.8, "3": 0.8}}`,
			samples: []sdk.Sample{sample("good", "b"), sample("1", "a"), sample("2", "a"), sample("3", "a")},
			want:    "a", agreement: 3 * worth(.8) / (worth(.95) + 3*worth(.8)),
		},
		{
			name: "a model's samples share one vote", config: `{"accuracy": {"knn": 0.8, "llm": 0.8}}`,
			samples: []sdk.Sample{sample("knn", "a"), sample("llm", "b"), sample("llm", "b"), sample("llm", "!x"), sample("llm", "c")},
			want:    "a", agreement: .5,
		},
		{
			name: "unmeasured voters count alike, the first wins a tie", samples: []sdk.Sample{sample("knn", "z"), sample("llm", "a")},
			want: "z", agreement: .5,
		},
		{
			name: "unmeasured is half way between chance and certainty", config: `{"accuracy": {"better": 0.61}}`,
			samples: []sdk.Sample{sample("knn", "a"), sample("better", "b")},
			want:    "b", agreement: worth(.61) / (worth(.61) + worth(.6)),
		},
		{
			name: "chance has no say", config: `{"accuracy": {"chance": 0.2, "worse": 0}}`,
			samples: []sdk.Sample{sample("chance", "a"), sample("worse", "a"), sample("knn", "b")},
			want:    "b", agreement: 1,
		},
		{
			name: "only chance", config: `{"accuracy": {"chance": 0.2}}`, samples: []sdk.Sample{sample("chance", "a")},
			reason: "no voter that gave an acceptable answer is better than chance",
		},
		{
			name: "none of the labels", samples: []sdk.Sample{sample("llm", "-"), sample("other", "-"), sample("knn", "a")},
			agreement: 2. / 3, reason: "the voters say that none of the labels fits",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := weighted.Stage().Open(t.Context(), sdk.Setup{}, []byte(test.config))
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Labels: labels, Items: []sdk.Item{{Samples: test.samples}}})
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

func TestConformance(t *testing.T) {
	sdktest.Stage(t, weighted.Stage(), `{"accuracy": {"neighbours": 0.8}}`)
}

func TestArguments(t *testing.T) {
	_, err := weighted.Stage().Open(t.Context(), sdk.Setup{}, []byte(`{"accuracy": {"knn": 87}}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "accuracy" {
		t.Errorf("error %v, want one about accuracy", err)
	}
}

func TestAnUnknownVoterIsTold(t *testing.T) {
	var out strings.Builder
	setup := sdk.Setup{Log: slog.New(slog.NewTextHandler(&out, nil))}
	stage, err := weighted.Stage().Open(t.Context(), setup, []byte(`{"accuracy": {"nkn": 0.8}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: []sdk.Sample{sample("knn", "a")}}}}); err != nil {
		t.Fatal(err)
	}
	if err := stage.(interface{ Close() error }).Close(); err != nil || !strings.Contains(out.String(), "absent=nkn") {
		t.Errorf("error %v, warned %q", err, &out)
	}
}

func TestGolden(t *testing.T) {
	golden.Check(t, weighted.Stage(), `{"accuracy": {"llm": 0.9}}`, "1 03b6c54aa2ba47ad")
}
