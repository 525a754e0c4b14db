package elect_test

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
	"github.com/racflow/racflow/sdk/sdktest"
)

// sampled makes a sample of accepted answers, best first; "!a" is not accepted, "-" means that no
// label fits.
func sampled(voter string, labels ...string) sdk.Sample {
	s := sdk.Sample{Voter: voter}
	for i, label := range labels {
		a := sdk.Answer{Label: strings.Trim(label, "!-"), Weight: 1 / float64(i+1), Accepted: label[0] != '!'}
		s.Answers = append(s.Answers, a)
	}
	return s
}

func TestFirstElect(t *testing.T) {
	tests := []struct {
		name      string
		samples   []sdk.Sample
		want      string
		agreement float64
		reason    string
	}{
		{name: "no voters", reason: "no voter gave an acceptable answer"},
		{name: "never acceptable", samples: []sdk.Sample{sampled("llm", "!x"), sampled("llm", "!y"), sampled("llm")}, reason: "no voter gave an acceptable answer"},
		{name: "at once", samples: []sdk.Sample{sampled("llm", "b", "a")}, want: "b", agreement: 1},
		{name: "at the third try", samples: []sdk.Sample{sampled("llm", "!x"), sampled("llm"), sampled("llm", "a")}, want: "a", agreement: 1},
		{
			name:    "not the most votes",
			samples: []sdk.Sample{sampled("llm", "!x", "a"), sampled("other", "b"), sampled("other", "b"), sampled("other", "a")},
			want:    "a", agreement: .5,
		},
		{
			name: "none of the labels", samples: []sdk.Sample{sampled("llm", "!x"), sampled("llm", "-"), sampled("knn", "a")},
			agreement: .5, reason: "the voters say that none of the labels fits",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := elect.First().Open(t.Context(), sdk.Setup{}, nil)
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

func TestFirstConformance(t *testing.T) { sdktest.Stage(t, elect.First(), `{}`) }

func TestFirstGolden(t *testing.T) { apitest.CheckReply(t, elect.First(), `{}`, "1 26394ef32fe53802") }

func TestMajorityElect(t *testing.T) {
	tests := []struct {
		name      string
		config    string
		samples   []sdk.Sample
		want      string
		agreement float64
	}{
		{name: "no voters"},
		{name: "nothing accepted", samples: []sdk.Sample{sampled("knn", "!a"), sampled("llm")}},
		{
			name:    "most votes win",
			samples: []sdk.Sample{sampled("knn", "a", "b"), sampled("llm", "b"), sampled("llm", "b"), sampled("llm", "c")},
			want:    "b", agreement: .5,
		},
		{
			name:    "rejected answers are skipped",
			samples: []sdk.Sample{sampled("knn", "!a", "b", "c"), sampled("llm", "!x"), sampled("llm", "c"), sampled("llm", "b")},
			want:    "b", agreement: 2. / 3,
		},
		{
			name:    "the first voter wins a tie",
			samples: []sdk.Sample{sampled("knn", "z"), sampled("llm", "a"), sampled("llm", "a"), sampled("llm", "z")},
			want:    "z", agreement: .5,
		},
		{
			name:    "a tie without the first voter",
			samples: []sdk.Sample{sampled("knn", "z"), sampled("llm", "b"), sampled("llm", "a"), sampled("other", "a"), sampled("other", "b")},
			want:    "b", agreement: .4,
		},
		{
			name: "weights", config: `{"weights": {"knn": 2.5, "off": 0}}`,
			samples: []sdk.Sample{sampled("off", "c"), sampled("llm", "a"), sampled("llm", "a"), sampled("knn", "b")},
			want:    "b", agreement: 2.5 / 4.5,
		},
		{
			name:      "none of the labels wins",
			samples:   []sdk.Sample{sampled("knn", "a"), sampled("llm", "-"), sampled("llm", "-"), sampled("llm", "b")},
			agreement: .5,
		},
		{
			name:    "none of the labels loses",
			samples: []sdk.Sample{sampled("knn", "a"), sampled("llm", "-"), sampled("llm", "a")},
			want:    "a", agreement: 2. / 3,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := elect.Majority().Open(t.Context(), sdk.Setup{}, []byte(test.config))
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

func TestMajorityNoWeight(t *testing.T) {
	stage, err := elect.Majority().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": 0}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: []sdk.Sample{sampled("knn", "a")}}, {}}})
	if err != nil || got[0].Reason != "every voter that gave an acceptable answer has weight 0" || got[1].Reason != "no voter gave an acceptable answer" {
		t.Errorf("verdicts %+v, error %v", got, err)
	}
}

func TestMajorityConformance(t *testing.T) {
	sdktest.Stage(t, elect.Majority(), `{"weights": {"neighbours": 2}}`)
}

func TestMajorityArguments(t *testing.T) {
	_, err := elect.Majority().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": "heavy"}}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "weights" {
		t.Errorf("error %v, want one about weights", err)
	}
}

func TestMajorityGolden(t *testing.T) {
	apitest.CheckReply(t, elect.Majority(), `{}`, "1 935be682abe68aa1")
}

func answer(label string, weight float64) sdk.Answer {
	return sdk.Answer{Label: label, Weight: weight, Accepted: true}
}

func TestSoftElect(t *testing.T) {
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
			stage, err := elect.Soft().Open(t.Context(), sdk.Setup{}, []byte(test.config))
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

func TestSoftNoWeight(t *testing.T) {
	stage, err := elect.Soft().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": 0}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: []sdk.Sample{{Voter: "knn", Answers: []sdk.Answer{answer("a", 1)}}}}, {}}})
	if err != nil || got[0].Reason != "every voter that gave an acceptable answer has weight 0" || got[1].Reason != "no voter gave an acceptable answer" {
		t.Errorf("verdicts %+v, error %v", got, err)
	}
}

func TestSoftConformance(t *testing.T) {
	sdktest.Stage(t, elect.Soft(), `{"weights": {"neighbours": 2}}`)
}

func TestSoftArguments(t *testing.T) {
	_, err := elect.Soft().Open(t.Context(), sdk.Setup{}, []byte(`{"weights": {"knn": -1}}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "weights" {
		t.Errorf("error %v, want one about weights", err)
	}
}

func TestSoftGolden(t *testing.T) { apitest.CheckReply(t, elect.Soft(), `{}`, "1 c318fdb00dfe6309") }

func TestWeightedElect(t *testing.T) {
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
		{name: "nothing accepted", samples: []sdk.Sample{sampled("knn", "!a")}, reason: "no voter gave an acceptable answer"},
		{
			name: "a good voter outvotes two poor ones", config: `{"accuracy": {"good": 0.95, "poor": 0.4, "bad": 0.3}}`,
			samples: []sdk.Sample{sampled("poor", "a"), sampled("bad", "a"), sampled("good", "b", "a")},
			want:    "b", agreement: worth(.95) / (worth(.95) + worth(.4) + worth(.3)),
		},
		{
			name: "but not three that are nearly as good", config: `{"accuracy": {"good": 0.95, "1": 0.8, "2": 0.8, "3": 0.8}}`,
			samples: []sdk.Sample{sampled("good", "b"), sampled("1", "a"), sampled("2", "a"), sampled("3", "a")},
			want:    "a", agreement: 3 * worth(.8) / (worth(.95) + 3*worth(.8)),
		},
		{
			name: "a model's samples share one vote", config: `{"accuracy": {"knn": 0.8, "llm": 0.8}}`,
			samples: []sdk.Sample{sampled("knn", "a"), sampled("llm", "b"), sampled("llm", "b"), sampled("llm", "!x"), sampled("llm", "c")},
			want:    "a", agreement: .5,
		},
		{
			name: "unmeasured voters count alike, the first wins a tie", samples: []sdk.Sample{sampled("knn", "z"), sampled("llm", "a")},
			want: "z", agreement: .5,
		},
		{
			name: "unmeasured is half way between chance and certainty", config: `{"accuracy": {"better": 0.61}}`,
			samples: []sdk.Sample{sampled("knn", "a"), sampled("better", "b")},
			want:    "b", agreement: worth(.61) / (worth(.61) + worth(.6)),
		},
		{
			name: "chance has no say", config: `{"accuracy": {"chance": 0.2, "worse": 0}}`,
			samples: []sdk.Sample{sampled("chance", "a"), sampled("worse", "a"), sampled("knn", "b")},
			want:    "b", agreement: 1,
		},
		{
			name: "only chance", config: `{"accuracy": {"chance": 0.2}}`, samples: []sdk.Sample{sampled("chance", "a")},
			reason: "no voter that gave an acceptable answer is better than chance",
		},
		{
			name: "none of the labels", samples: []sdk.Sample{sampled("llm", "-"), sampled("other", "-"), sampled("knn", "a")},
			agreement: 2. / 3, reason: "the voters say that none of the labels fits",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stage, err := elect.Weighted().Open(t.Context(), sdk.Setup{}, []byte(test.config))
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

func TestWeightedConformance(t *testing.T) {
	sdktest.Stage(t, elect.Weighted(), `{"accuracy": {"neighbours": 0.8}}`)
}

func TestWeightedArguments(t *testing.T) {
	_, err := elect.Weighted().Open(t.Context(), sdk.Setup{}, []byte(`{"accuracy": {"knn": 87}}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "accuracy" {
		t.Errorf("error %v, want one about accuracy", err)
	}
}

func TestAnUnknownVoterIsTold(t *testing.T) {
	var out strings.Builder
	setup := sdk.Setup{Log: slog.New(slog.NewTextHandler(&out, nil))}
	stage, err := elect.Weighted().Open(t.Context(), setup, []byte(`{"accuracy": {"nkn": 0.8}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stage.(sdk.Elector).Elect(t.Context(), sdk.Batch{Items: []sdk.Item{{Samples: []sdk.Sample{sampled("knn", "a")}}}}); err != nil {
		t.Fatal(err)
	}
	if err := stage.(interface{ Close() error }).Close(); err != nil || !strings.Contains(out.String(), "absent=nkn") {
		t.Errorf("error %v, warned %q", err, &out)
	}
}

func TestWeightedGolden(t *testing.T) {
	apitest.CheckReply(t, elect.Weighted(), `{"accuracy": {"llm": 0.9}}`, "1 bdac20e103f3397d")
}
