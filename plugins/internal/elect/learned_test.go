package elect_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/plugins/internal/embed"
	"github.com/racflow/racflow/plugins/internal/sample"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// learnedSample makes a sample from labels and weights in turn. "!a" is not accepted, "-" means that
// no label fits.
func learnedSample(voter string, answers ...any) sdk.Sample {
	s := sdk.Sample{Voter: voter}
	for i := 0; i < len(answers); i += 2 {
		label := answers[i].(string)
		s.Answers = append(s.Answers, sdk.Answer{Label: strings.Trim(label, "!-"), Weight: answers[i+1].(float64), Accepted: label[0] != '!'})
	}
	return s
}

// odds returns what a share of a distribution adds, times the weight.
func odds(share float64) float64 { return math.Log(1+1000*share) / math.Log(1001) }

// squared returns the probability with twice the log-odds.
func squared(p float64) float64 { return p * p / (p*p + (1-p)*(1-p)) }

// among returns the probability of the first of some scores, beside a number of labels without votes.
func among(others int, scores ...float64) float64 {
	sum := float64(others)
	for _, s := range scores {
		sum += math.Exp(s)
	}
	return math.Exp(scores[0]) / sum
}

func TestLearnedElect(t *testing.T) {
	const noVotes, noWeight = "no voter gave an acceptable answer", "every voter that gave an acceptable answer has weight 0"
	tests := []struct {
		name                  string
		config                string
		samples               []sdk.Sample
		want                  string
		confidence, agreement float64
		reason                string
	}{
		{name: "no voters", reason: noVotes},
		{name: "nothing accepted", samples: []sdk.Sample{learnedSample("knn", "!a", 1.), learnedSample("llm")}, reason: noVotes},
		{
			name: "one vote", config: `{"weights": {"llm": 2}}`, samples: []sdk.Sample{learnedSample("llm", "a", 1.)},
			want: "a", confidence: among(4, 2), agreement: 1,
		},
		{
			name: "a distribution counts by the logarithm", config: `{"weights": {"knn": 2}}`,
			samples: []sdk.Sample{learnedSample("knn", "a", 6., "b", 3., "c", 1.)},
			want:    "a", confidence: among(2, 2*odds(.6), 2*odds(.3), 2*odds(.1)), agreement: .6,
		},
		{
			name: "samples with single answers count by their share", config: `{"weights": {"llm": 2}}`,
			samples: []sdk.Sample{learnedSample("llm", "b", 1.), learnedSample("llm", "a", 7.), learnedSample("llm", "!x", 1.), learnedSample("llm", "a", 1.)},
			want:    "a", confidence: among(3, 2*2./3, 2*1./3), agreement: 2. / 3,
		},
		{
			name: "a weight is worth more than numbers", config: `{"weights": {"good": 3, "poor": 1, "bad": 1}}`,
			samples: []sdk.Sample{learnedSample("poor", "a", 1.), learnedSample("bad", "a", 1.), learnedSample("good", "b", 1.)},
			want:    "b", confidence: among(3, 3, 2), agreement: 1. / 3,
		},
		{
			name: "a voter without a weight has log(labels)", config: `{"weights": {"other": 3}}`, samples: []sdk.Sample{learnedSample("llm", "a", 1.)},
			want: "a", confidence: among(4, math.Log(5)), agreement: 1,
		},
		{
			name: "two have less each, in units of calibrated log-odds", config: `{"weights": {"other": 1}, "calibration": {"slope": 2}}`,
			samples: []sdk.Sample{learnedSample("llm", "a", 1.), learnedSample("more", "a", 1.), learnedSample("other", "b", 1.)},
			want:    "a", confidence: squared(among(3, math.Log(5)/2*math.Sqrt2, 1)), agreement: 2. / 3,
		},
		{
			name: "before it has learnt, three have less each", samples: []sdk.Sample{learnedSample("x", "b", 1.), learnedSample("y", "a", 1.), learnedSample("z", "a", 1.)},
			want: "a", confidence: among(3, 7*math.Pow(3, -.25), 3.5*math.Pow(3, -.25)), agreement: 2. / 3,
		},
		{
			name: "weight 0 is no vote", config: `{"weights": {"knn": 0, "llm": 1, "other": 1}}`,
			samples: []sdk.Sample{learnedSample("knn", "b", .8, "a", .2), learnedSample("llm", "a", 1.), learnedSample("other", "b", 1.)},
			want:    "a", confidence: among(3, 1, 1), agreement: .5,
		},
		{name: "none has a weight", config: `{"weights": {"knn": 0}}`, samples: []sdk.Sample{learnedSample("knn", "a", 1.)}, reason: noWeight},
		{
			name: "the first voter wins a tie", config: `{"weights": {"one": 1, "two": 1}}`,
			samples: []sdk.Sample{learnedSample("two", "z", 1.), learnedSample("one", "a", 1.)},
			want:    "z", confidence: among(3, 1, 1), agreement: .5,
		},
		{
			name: "rounding does not break it", config: `{"weights": {"one": 0.1, "two": 0.2, "three": 0.3}}`,
			samples: []sdk.Sample{learnedSample("three", "z", 1.), learnedSample("one", "a", 1.), learnedSample("two", "a", 1.)},
			want:    "z", confidence: among(3, .3, .3), agreement: 1. / 3,
		},
		{
			name: "none of the labels fits", config: `{"weights": {"llm": 2, "knn": 1}}`,
			samples:    []sdk.Sample{learnedSample("knn", "a", 1.), learnedSample("llm", "-", 1.)},
			confidence: among(4, 2, 1), agreement: .5, reason: "the voters say that none of the labels fits",
		},
		{
			name: "off the list of labels", config: `{"weights": {"llm": 2}}`,
			samples: []sdk.Sample{learnedSample("llm", "a", 1., "b", 1., "c", 1., "d", 1., "e", 1., "f", 1.)},
			want:    "a", confidence: 1. / 6, agreement: 1. / 6,
		},
		{
			name: "odd weights", config: `{"weights": {"llm": 2}}`,
			samples: []sdk.Sample{learnedSample("llm", "b", math.NaN()), learnedSample("llm", "c", math.Inf(1)), learnedSample("llm", "d", -1.), learnedSample("llm", "a", 1e-300)},
			want:    "a", confidence: among(4, 2), agreement: 1,
		},
		{
			name: "a great weight", config: `{"weights": {"llm": 1e6}}`, samples: []sdk.Sample{learnedSample("llm", "a", 1.)},
			want: "a", confidence: 1 / (1 + math.Exp(-12)), agreement: 1,
		},
		{
			name: "calibrated", config: `{"weights": {"llm": 2}, "calibration": {"slope": 0.5, "offset": -0.25}}`,
			samples: []sdk.Sample{learnedSample("llm", "a", 1.)},
			want:    "a", confidence: 1 / (1 + math.Exp(.25-.5*(2-math.Log(4)))), agreement: 1,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := learnedElect(t, open(t, elect.Learned(), test.config), []string{"a", "b", "c", "d", "e"}, []sdk.TrainingRow{{Samples: test.samples}})[0]
			if v.Answer != test.want || math.Abs(v.Agreement-test.agreement) > 1e-9 || math.Abs(v.Confidence-test.confidence) > 1e-9 || v.Reason != test.reason {
				t.Errorf("got %+v, want %q with confidence %v, agreement %v, %q", v, test.want, test.confidence, test.agreement, test.reason)
			}
		})
	}
}

// TestLikelyLabels: the probabilities of all labels add up to 1, in the order of the votes. The answer's probability
// is its confidence.
func TestLikelyLabels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	labels := []string{"a", "b", "c", "d", "e", "f"}
	for round := range 200 {
		slope := 0.2 + 2*random.Float64()
		config := fmt.Sprintf(`{"weights": {"knn": 2, "linear": %d}, "calibration": {"slope": %g, "offset": %g}, "labels": %%d}`, 1+round%4, slope, random.Float64()-.5)
		var samples []sdk.Sample
		for _, voter := range []string{"knn", "linear"} {
			samples = append(samples, learnedSample(voter, labels[random.IntN(3)], 0.5+random.Float64(), labels[3], random.Float64(), "-", 0.1*random.Float64()))
		}
		with := func(shown int) sdk.Verdict {
			return learnedElect(t, open(t, elect.Learned(), fmt.Sprintf(config, shown)), labels, []sdk.TrainingRow{{Samples: samples}})[0]
		}
		plain, got, few := with(0), with(6), with(1)
		if plain.Labels != nil || got.Answer != plain.Answer || got.Confidence != plain.Confidence {
			t.Fatalf("%+v without the argument, %+v with it", plain, got)
		}
		if got.Answer == "" {
			continue
		}
		want := max(got.Confidence, 1/float64(len(labels)))
		if got.Labels[0].Label != got.Answer || math.Abs(got.Labels[0].Confidence-want) > 1e-6 {
			t.Errorf("round %d: %+v", round, got)
		}
		sum := 0.0
		for i, l := range got.Labels {
			if sum += l.Confidence; i > 0 && l.Confidence > got.Labels[i-1].Confidence {
				t.Errorf("round %d: %v is not sorted", round, got.Labels)
			}
		}
		if sum > 1+1e-9 || got.Labels[len(got.Labels)-1].Confidence < (1-sum)/float64(len(labels)-len(got.Labels)) {
			t.Errorf("round %d: %v leaves more to labels without a vote", round, got.Labels)
		}
		if !slices.Equal(few.Labels, got.Labels[:1]) {
			t.Errorf("round %d: the likeliest of %v is %v", round, got.Labels, few.Labels)
		}
	}
	// A label that ties with the answer follows it, however the numbers are rounded.
	tied := learnedElect(t, open(t, elect.Learned(), `{"weights": {"knn": 2, "linear": 2.0000000001}, "labels": 2}`), labels,
		[]sdk.TrainingRow{{Samples: []sdk.Sample{learnedSample("knn", "a", 1.), learnedSample("linear", "b", 1.)}}})[0]
	if tied.Answer != "a" || tied.Labels[0].Label != "a" || tied.Labels[1].Label != "b" {
		t.Errorf("%+v", tied)
	}
}

// Free texts are no labels.
func TestNoLabels(t *testing.T) {
	e := open(t, elect.Learned(), `{"weights": {"llm": 1}}`)
	_, err := e.Elect(t.Context(), sdk.Batch{Items: make([]sdk.Item, 1)})
	if err == nil || !strings.Contains(err.Error(), `use = "first" or use = "majority"`) {
		t.Errorf("error %v", err)
	}
}

func state(t *testing.T, dir string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "weights.json"))
	must.Do(t, err)
	return raw
}

func openIn(t *testing.T, dir, config string) (sdk.Elector, error) {
	e, err := elect.Learned().Open(t.Context(), sdk.Setup{StateDir: dir}, []byte(config))
	if err != nil {
		return nil, err
	}
	return e.(sdk.Elector), nil
}

func resolved(t *testing.T, e sdk.Elector) []byte {
	t.Helper()
	raw, err := json.Marshal(e.(sdk.Resolver).Resolved())
	must.Do(t, err)
	return raw
}

// learn fits an election in a folder, and returns its state.
func learn(t *testing.T, rows []sdk.TrainingRow) []byte {
	t.Helper()
	dir := t.TempDir()
	e, err := openIn(t, dir, "")
	if err == nil {
		err = fit(t.Context(), e, rows)
	}
	must.Do(t, err)
	return state(t, dir)
}

func TestState(t *testing.T) {
	rows := []sdk.TrainingRow{
		{ID: "2", Label: "b", Samples: []sdk.Sample{learnedSample("llm", "b", 1.), learnedSample("bad", "a", 1.)}},
		{ID: "1", Label: "a", Samples: []sdk.Sample{learnedSample("llm", "a", 1.), learnedSample("bad", "b", 1.)}},
		{ID: "3", Samples: []sdk.Sample{learnedSample("odd", "c", 1.)}}, // without a label
	}
	const want = `{
  "rows": 2,
  "labels": 2,
  "weights": {
    "bad": 0,
    "llm": 2.1538
  },
  "calibration": {
    "slope": 1,
    "offset": 0
  },
  "alone": {
    "bad": 0,
    "llm": 1
  }
}
`
	if got := string(learn(t, rows)); got != want {
		t.Errorf("state %s", got)
	}
	// The slope of the penalty equals that of the likelihood, and bad is no better than nothing.
	before := math.Log(2) / math.Sqrt2
	if w := 2.1538; math.Abs(.125*(w-before)-2/(1+math.Exp(w))) > 1e-4 || .125*before > 2/(1+math.Exp(-w)) {
		t.Error("the weight is not the best one")
	}
}

// Rows without labels or votes, and rows with the same single label, say nothing about a voter.
func TestLittleToLearn(t *testing.T) {
	for name, rows := range map[string][]sdk.TrainingRow{
		"no rows":   nil,
		"no labels": {{ID: "1", Samples: []sdk.Sample{learnedSample("llm", "a", 1.)}}},
		"no votes":  {{ID: "1", Label: "a"}, {ID: "2", Label: "b", Samples: []sdk.Sample{learnedSample("llm", "!b", 1.)}}},
		"one label": {{ID: "1", Label: "a", Samples: []sdk.Sample{learnedSample("llm", "a", 1.)}}},
	} {
		v := learnedElect(t, fitted(t, rows), []string{"a", "b"}, []sdk.TrainingRow{{Samples: []sdk.Sample{learnedSample("llm", "a", 1.)}}})[0]
		want := among(1, 3.5)
		if strings.HasPrefix(name, "one label") {
			want = among(1, math.Log(2)) // the weight before anything is known
		}
		if v.Answer != "a" || math.Abs(v.Confidence-want) > 1e-4 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A voter that abstains on most rows is judged by its other rows. A voter that copies another one shares its weight.
// Adversaries and useless voters get no weight.
func TestWeights(t *testing.T) {
	_, rows := generate(5, 3000)
	weights := func(rows []sdk.TrainingRow) map[string]float64 {
		return fitted(t, rows).(sdk.Resolver).Resolved()["weights"].(map[string]float64)
	}
	w := weights(rows)
	if w["adversary"] != 0 || w["weak"] <= 0 || w["weak"] > w["specialist"] || w["mute"] != 0 {
		t.Errorf("weights %v", w)
	}
	alone := weights(of(rows, slices.DeleteFunc(slices.Clone(generated), func(v string) bool { return v == "copy" })...))
	if math.Abs(w["copy"]-w["middling"]) > 1e-3 || math.Abs(w["copy"]+w["middling"]-alone["middling"]) > .05 {
		t.Errorf("middling alone %v, with a copy %v and %v", alone["middling"], w["middling"], w["copy"])
	}
}

// The order of rows makes no difference, nor does the order of the voters.
func TestSameBytes(t *testing.T) {
	_, rows := generate(6, 400)
	want := learn(t, rows)
	slices.Reverse(rows)
	if got := learn(t, rows); !bytes.Equal(got, want) {
		t.Errorf("other bytes in another order: %s, before it was %s", got, want)
	}
	rows[0].Label = rows[1].Label
	if bytes.Equal(learn(t, rows[:390]), want) {
		t.Error("the same bytes from other rows")
	}
}

// Voters of other items do not count.
func TestOtherItemsChangeNothing(t *testing.T) {
	e := open(t, elect.Learned(), `{"weights": {"knn": 1}}`)
	one := []sdk.TrainingRow{{Samples: []sdk.Sample{learnedSample("llm", "a", 1.)}}}
	want := learnedElect(t, e, []string{"a", "b"}, one)
	crowd := []sdk.TrainingRow{{Samples: []sdk.Sample{learnedSample("x", "a", 1.), learnedSample("y", "b", 1.), learnedSample("z", "b", 1.)}}}
	for range 20 { // for speed, an election remembers the names of voters
		learnedElect(t, e, []string{"a", "b"}, crowd)
		if got := learnedElect(t, e, []string{"a", "b"}, one); !reflect.DeepEqual(got, want) {
			t.Fatalf("after an item with other voters: %+v, before it %+v", got, want)
		}
	}
}

// A later process uses the learned state, including changes by a person. The resolved values have the same effect as
// the state.
func TestStateIsCarriedOver(t *testing.T) {
	labels, rows := generate(7, 600)
	dir := t.TempDir()
	e, err := openIn(t, dir, "")
	must.Do(t, err)
	if e.(sdk.Resolver).Resolved() != nil {
		t.Error("something is resolved before it has learnt")
	}
	must.Do(t, fit(t.Context(), e, rows[:300]))
	want := learnedElect(t, e, labels, rows[300:])
	later, err := openIn(t, dir, "")
	must.Do(t, err)
	if got := learnedElect(t, later, labels, rows[300:]); !reflect.DeepEqual(got, want) {
		t.Error("a later process elects others")
	}
	config, err := sdk.CompleteConfig(nil, resolved(t, later))
	must.Do(t, err)
	given := open(t, elect.Learned(), string(config))
	if got := learnedElect(t, given, labels, rows[300:]); !reflect.DeepEqual(got, want) {
		t.Error("the weights that were resolved elect others")
	}
	if _, fits := given.(sdk.Fitter); fits {
		t.Error("it wants to learn although it has weights")
	}
	edited := `{"weights": {"weak": 3, "good": 0}}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "weights.json"), []byte(edited), 0o600))
	later, err = openIn(t, dir, "")
	must.Do(t, err)
	if got, want := learnedElect(t, later, labels, rows), learnedElect(t, open(t, elect.Learned(), edited), labels, rows); !reflect.DeepEqual(got, want) {
		t.Error("what a person has written does not count")
	}
}

func TestDamagedState(t *testing.T) {
	dir := t.TempDir()
	for _, raw := range []string{"", "{", `{"weights": {"llm": -1}}`, `{"weights": {"llm": 1e7}}`, `{"weight": {}}`} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "weights.json"), []byte(raw), 0o600))
		if _, err := openIn(t, dir, ""); err == nil || !strings.Contains(err.Error(), "weights.json") {
			t.Errorf("%s: error %v", raw, err)
		}
		if _, err := openIn(t, dir, `{"weights": {"llm": 1}}`); err != nil {
			t.Errorf("%s: although the weights are given: %v", raw, err)
		}
	}
}

func TestFitFails(t *testing.T) {
	_, rows := generate(8, 100)
	dir := t.TempDir()
	e, err := openIn(t, dir, "")
	if err == nil {
		err = fit(t.Context(), e, rows)
	}
	must.Do(t, err)
	before := state(t, dir)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	torn := errors.New("torn")
	homeless, err := openIn(t, "", "")
	must.Do(t, err)
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"cancelled": {fit(cancelled, e, rows), context.Canceled.Error()},
		"rows":      {e.(sdk.Fitter).Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(nil, torn) }), "torn"},
		"folder":    {fit(t.Context(), homeless, rows), "no folder"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, test.err, test.want)
		}
	}
	if !bytes.Equal(before, state(t, dir)) {
		t.Error("a fit that failed has changed the state")
	}
}

func TestLearnedArguments(t *testing.T) {
	for config, argument := range map[string]string{
		`{"weights": {"knn": -1}}`: "weights", `{"calibration": {"slope": 1}}`: "calibration",
		`{"weights": {"knn": 1}, "calibration": {"slope": -1}}`: "calibration", `{"weights": {"knn": 1}, "calibration": {"scale": 1}}`: "calibration",
	} {
		_, err := elect.Learned().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != argument {
			t.Errorf("%s: error %v, want one about %s", config, err, argument)
		}
	}
}

func TestAnUnknownVoterIsReported(t *testing.T) {
	var out strings.Builder
	e, err := elect.Learned().Open(t.Context(), sdk.Setup{Log: slog.New(slog.NewTextHandler(&out, nil))}, []byte(`{"weights": {"nkn": 1}}`))
	must.Do(t, err)
	learnedElect(t, e.(sdk.Elector), []string{"a"}, []sdk.TrainingRow{{Samples: []sdk.Sample{learnedSample("knn", "a", 1.)}}})
	if err := e.(interface{ Close() error }).Close(); err != nil || !strings.Contains(out.String(), "absent=nkn") {
		t.Errorf("error %v, warned %q", err, &out)
	}
}

func TestLearnedConformance(t *testing.T) {
	sdktest.Stage(t, elect.Learned(), `{}`)
	sdktest.Stage(t, elect.Learned(), `{"weights": {"neighbours": 2}}`)
}

func TestLearnedGolden(t *testing.T) {
	apitest.CheckReply(t, elect.Learned(), `{"weights": {"llm": 3}}`, "6 fee8df7c416e1acc")
}

// The learned weights are tested like outputs.
func TestGoldenFit(t *testing.T) {
	labels, rows := generate(1, 300)
	apitest.Compare(t, elect.Learned(), learnedElect(t, fitted(t, rows[:280]), labels, rows[280:]), "6 511630cbc77a1daa")
}

const recorded = "../../../../shared/data/votes/"

// table reads a file of votes.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(recorded + name)
	if err != nil {
		t.Skip("the recorded votes are not here: ", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	all, err := r.ReadAll()
	must.Do(t, err)
	return all[1:]
}

// recordedVotes returns rows with the answers of nine language models, preceded by the votes of neighbours and
// prototype on hashed words.
func recordedVotes(t *testing.T) (labels []string, rows []sdk.TrainingRow, models []string) {
	train := table(t, "train.tsv")
	e, err := embed.Hashing().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, []byte(`{"dimension": 512}`))
	must.Do(t, err)
	embed := e.(sdk.Embedder)
	var known []sdk.TrainingRow
	named := map[string]bool{}
	for _, r := range train {
		known = append(known, sdk.TrainingRow{ID: r[0], Text: r[1], Label: r[2]})
		named[r[2]] = true
	}
	labels = slices.Sorted(maps.Keys(named))
	must.Do(t, e.(sdk.Fitter).Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(known, nil) }))
	vectors := func(role sdk.Role, texts []string) [][]float32 {
		v, err := embed.Embed(t.Context(), role, texts)
		must.Do(t, err)
		return v
	}
	var texts []string
	for _, r := range known {
		texts = append(texts, r.Text)
	}
	examples := vectors(sdk.RolePassage, texts)
	centres := map[string][]float32{}
	for i, r := range known {
		centre := centres[r.Label]
		if centre == nil {
			centre = make([]float32, len(examples[i]))
			centres[r.Label] = centre
		}
		for j, x := range examples[i] {
			centre[j] += x
		}
	}
	answers, place := map[string][]sdk.Sample{}, map[string]bool{}
	for _, v := range table(t, "votes.tsv") {
		answers[v[0]] = append(answers[v[0]], sdk.Sample{Voter: v[1], Answers: []sdk.Answer{{Label: v[2], Weight: 1, Accepted: named[v[2]]}}})
		place[v[1]] = true
	}
	models = slices.Sorted(maps.Keys(place))
	var items []sdk.Item
	for _, r := range table(t, "rows.tsv") {
		query := vectors(sdk.RoleQuery, []string{r[1]})[0]
		it := sdk.Item{ID: r[0]}
		for i, k := range known {
			it.Candidates = append(it.Candidates, sdk.Candidate{ID: k.ID, Label: k.Label, Score: float32(cosine(query, examples[i]))})
		}
		slices.SortStableFunc(it.Candidates, func(a, b sdk.Candidate) int { return -cmp.Compare(a.Score, b.Score) })
		for _, label := range labels {
			it.Prototypes = append(it.Prototypes, sdk.Candidate{Label: label, Dense: float32(cosine(query, centres[label]))})
		}
		slices.SortStableFunc(it.Prototypes, func(a, b sdk.Candidate) int { return -cmp.Compare(a.Dense, b.Dense) })
		items = append(items, it)
		rows = append(rows, sdk.TrainingRow{ID: r[0], Label: r[2]})
	}
	for _, s := range []sdk.Stage{sample.Neighbours(), sample.Prototype()} {
		voter, err := s.Open(t.Context(), sdk.Setup{}, nil)
		must.Do(t, err)
		samples, err := voter.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: items, Labels: labels})
		must.Do(t, err)
		for i, ballots := range samples {
			for _, b := range ballots {
				for j := range b.Answers {
					b.Answers[j].Accepted = true
				}
				b.Voter = s.Name
				rows[i].Samples = append(rows[i].Samples, b)
			}
		}
	}
	for i := range rows {
		rows[i].Samples = append(rows[i].Samples, answers[rows[i].ID]...)
	}
	return labels, rows, models
}

func cosine(a, b []float32) float64 {
	ab, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// halves divides rows into two halves.
func halves(rows []sdk.TrainingRow, seed uint64) (a, b []sdk.TrainingRow) {
	for i, at := range rand.New(rand.NewPCG(seed, 0)).Perm(len(rows)) {
		if i%2 == 0 {
			a = append(a, rows[at])
		} else {
			b = append(b, rows[at])
		}
	}
	return a, b
}

// For every subset of recorded voters, the voter that is best on one half of the rows is not better than the election
// on the other half.
func TestNeverWorseOnRecordedVotes(t *testing.T) {
	labels, rows, models := recordedVotes(t)
	voters := append([]string{"neighbours", "prototype"}, models...)
	sets := subsets(voters)
	if testing.Short() {
		sets = slices.DeleteFunc(sets, func(set []string) bool { return len(set) > 2 })
	}
	a, b := halves(rows, 1)
	c := newCompared(labels, a, b, voters)
	for _, set := range sets {
		c.add(t, set)
	}
	c.report(t)
}

// Compares the elections by cross-validation, each with its default or learned weights; weighted gets the voters'
// accuracies.
func TestAccuracyOnRecordedVotes(t *testing.T) {
	labels, rows, models := recordedVotes(t)
	pair := []string{"llama32_3b_fs", "qwen3_30b_fs5"} // one middling, one strong
	for name, set := range map[string][]string{
		"neighbours and prototype":         {"neighbours", "prototype"},
		"two models":                       append([]string{"neighbours", "prototype"}, pair...),
		"four models":                      append([]string{"neighbours", "prototype", "gemma3_4b_zs", "qwen3_8b_zs"}, pair...),
		"nine models":                      append([]string{"neighbours", "prototype"}, models...),
		"nine models, and nothing else":    models,
		"two models, and nothing else":     pair,
		"neighbours and eight weak models": append([]string{"neighbours"}, slices.DeleteFunc(slices.Clone(models), func(m string) bool { return m == "qwen3_30b_fs5" })...),
	} {
		if testing.Short() && len(set) > 4 {
			continue
		}
		rows := of(rows, set...)
		reached := map[string][]bool{}
		for fold := range 5 {
			var learnt, held []sdk.TrainingRow
			for i, r := range rows {
				if i%5 == fold {
					held = append(held, r)
				} else {
					learnt = append(learnt, r)
				}
			}
			accuracy := map[string]float64{}
			for _, v := range set {
				accuracy[v] = share(alone(learnt, v))
			}
			config, err := json.Marshal(map[string]any{"accuracy": accuracy})
			must.Do(t, err)
			for election, e := range map[string]sdk.Elector{
				"soft": open(t, elect.Soft(), ""), "majority": open(t, elect.Majority(), ""),
				"weighted": open(t, elect.Weighted(), string(config)), "learned": fitted(t, learnt),
			} {
				reached[election] = append(reached[election], right(held, learnedElect(t, e, labels, held))...)
			}
		}
		line := ""
		for _, election := range slices.Sorted(maps.Keys(reached)) {
			line += fmt.Sprintf("  %s %.1f", election, 100*share(reached[election]))
			if by, se := better(reached[election], reached["learned"]); by-1.645*se > 0 {
				t.Errorf("%s: %s is better by %.1f points", name, election, 100*by)
			}
		}
		t.Logf("%s:%s", name, line)
	}
}
