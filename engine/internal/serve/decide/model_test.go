package decide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// shop answers every text with a refund, with a high confidence, and counts its calls.
func shop(asked *int) Model {
	return Model{
		Labels:    []string{"refund", "order_late", "greeting", "complaint"},
		Described: map[string]sdk.Described{"order_late": {Name: "A late order"}},
		Decide: func(_ context.Context, i workspace.Item) (result.Result, error) {
			*asked++
			if err := i.Row(1).Err; err != nil {
				return result.Result{}, err
			}
			return result.Result{Answer: "refund", Verdict: result.Verdict{Confidence: .7, Unknown: .1, Labels: []sdk.LabelConfidence{{Label: "refund", Confidence: .7}, {Label: "order_late", Confidence: .2}}},
				Usage: sdk.Usage{InputTokens: 3}}, nil
		},
		Embed: func(_ context.Context, texts []string) ([][]float32, error) {
			all := make([][]float32, len(texts))
			for i, text := range texts {
				all[i] = []float32{float32(strings.Count(text, "money")), float32(strings.Count(text, "ship")), 1}
			}
			return all, nil
		},
	}
}

func choiceOf(names ...string) Question {
	q := Question{Kind: Choice, At: []any{"questions", "q"}}
	for _, n := range names {
		q.Options = append(q.Options, Option{Name: n, Value: n})
	}
	return q
}

func about(text string) Question {
	return Question{Kind: Predicate, About: text, Options: make([]Option, 2)}
}

// near compares floating-point numbers approximately.
var near = cmpopts.EquateApprox(0, 1e-9)

// TestLabels: options that are labels get the election's probabilities. The probability outside the options goes to
// none or lowers the confidence. The labels have .7, .2, .05 and .05. If none is an option, no label has .1, and the
// labels after the first have two thirds of their probabilities.
func TestLabels(t *testing.T) {
	all := choiceOf("refund", "order_late", "greeting", "complaint")
	score := choiceOf("greeting", "complaint", "refund")
	score.Kind = Score
	third := .2 * 2 / 3
	for name, test := range map[string]struct {
		q    Question
		want Answer
	}{
		"predicate":                       {about("refund"), Answer{P: []float64{.7}}},
		"predicate by another spelling":   {about("Order-Late"), Answer{P: []float64{.2}}},
		"predicate by name":               {about("a late order"), Answer{P: []float64{.2}}},
		"predicate by a field":            {Question{Kind: Predicate, About: "is it one?", Label: "refund", Options: make([]Option, 2)}, Answer{P: []float64{.7}}},
		"predicate by what it is if true": {Question{Kind: Predicate, About: "is it one?", Options: []Option{{Text: "refund"}, {}}}, Answer{P: []float64{.7}}},
		"all labels":                      {all, Answer{P: []float64{.7, .2, .05, .05}, Confidence: (.7 - .25) / .75}},
		"with none":                       {choiceOf("order_late", "None"), Answer{P: []float64{third, 1 - third}, Best: 1, Confidence: (1 - third - .5) / .5}},
		"two labels":                      {choiceOf("order_late", "refund"), Answer{P: []float64{.2 / .9, .7 / .9}, Best: 1, Confidence: (.7 - .5) / .5}},
		"two unlikely labels":             {choiceOf("greeting", "complaint"), Answer{P: []float64{.5, .5}, Best: 1}},
		"score":                           {score, Answer{P: []float64{.05 / .8, .05 / .8, .7 / .8}, Best: 2, Confidence: (.7 - 1./3) / (2. / 3)}},
		"descriptions":                    {choiceOf("money", "ship"), Answer{P: []float64{1 / (1 + math.Exp(-10)), 1 / (1 + math.Exp(10))}, Confidence: 2/(1+math.Exp(-10)) - 1, Described: true}},
		"predicate by its words":          {about("money back"), Answer{P: []float64{1 / (1 + math.Exp(-20*(1-.3)))}, Described: true}},
	} {
		asked := 0
		answers, used, err := shop(&asked).Answer(t.Context(), Request{Model: "shop", Item: workspace.Item{Text: "my money"}, Questions: []Question{test.q}})
		must.Do(t, err)
		if d := cmp.Diff([]Answer{test.want}, answers, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if searches := 1; asked != searches && !test.want.Described || asked > 0 && used.InputTokens != 3 {
			t.Errorf("%s: asked %d times, used %+v", name, asked, used)
		}
	}
}

// TestOneSearch: all questions of a request share one pass through the pipeline. If all options have only descriptions,
// there is no pass.
func TestOneSearch(t *testing.T) {
	asked := 0
	r := Request{Model: "shop", Item: workspace.Item{Text: "x"}, Questions: []Question{about("refund"), about("greeting"), choiceOf("refund", "complaint"), choiceOf("red", "blue")}}
	answers, _, err := shop(&asked).Answer(t.Context(), r)
	must.Do(t, err)
	if len(answers) != 4 || asked != 1 || !answers[3].Described || answers[2].Described {
		t.Errorf("%+v, asked %d times", answers, asked)
	}
	r.Questions = r.Questions[3:]
	if _, _, err = shop(&asked).Answer(t.Context(), r); err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

// TestOrder: the order of options has no influence, to the last bit.
func TestOrder(t *testing.T) {
	labels, probabilities := []string{}, []sdk.LabelConfidence{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		labels = append(labels, fmt.Sprintf("l%02d", i))
		probabilities = append(probabilities, sdk.LabelConfidence{Label: labels[i], Confidence: float64(1+random.IntN(3)) / 300}) // with ties
	}
	m := Model{Labels: labels, Decide: func(context.Context, workspace.Item) (result.Result, error) {
		return result.Result{Answer: "l00", Verdict: result.Verdict{Confidence: probabilities[0].Confidence, Labels: probabilities}}, nil
	}}
	ask := func(order []int) map[string]any {
		var names []string
		for _, i := range order {
			names = append(names, labels[i])
		}
		q := choiceOf(append(names, "none")...)
		answers, _, err := m.Answer(t.Context(), Request{Questions: []Question{q}})
		must.Do(t, err)
		got := map[string]any{"choice": q.Options[answers[0].Best].Name, "confidence": answers[0].Confidence}
		for i, p := range answers[0].P {
			got[q.Options[i].Name] = p
		}
		return got
	}
	first := random.Perm(40)[:25]
	want := ask(first)
	for range 50 {
		random.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
		if d := cmp.Diff(want, ask(first)); d != "" {
			t.Fatalf("another order (-want +got):\n%s", d)
		}
	}
}

// TestBeliefs: beliefs from elections of each kind.
func TestBeliefs(t *testing.T) {
	vote := func(answer string, weight float64) result.Vote {
		return result.Vote{Voter: "v", Answer: answer, Weight: weight, Accepted: true}
	}
	tree := sdk.LabelForm{Levels: "/"}
	leaves := []string{"a/x", "a/y", "b/x", "b/y"}
	for name, test := range map[string]struct {
		r      result.Result
		labels []string
		form   sdk.LabelForm
		want   map[string]float64
	}{
		"an election that estimates nothing": {
			result.Result{Answer: "a", Verdict: result.Verdict{Agreement: .6}, Votes: []result.Vote{vote("a", 3), vote("b", 2)}}, []string{"a", "b", "c"}, sdk.LabelForm{},
			map[string]float64{"a": .6, "b": .4 * (.4 + .01/3) / (.4 + .02/3), "c": .4 * (.01 / 3) / (.4 + .02/3)},
		},
		"a person decided":       {result.Result{Answer: "b", Verdict: result.Verdict{Decided: &result.Decision{}}}, []string{"a", "b"}, sdk.LabelForm{}, map[string]float64{"a": 0, "b": 1}},
		"no label fits":          {result.Result{Votes: []result.Vote{vote("", 1)}}, []string{"a", "b"}, sdk.LabelForm{}, map[string]float64{"a": 0, "b": 0}},
		"nobody voted":           {result.Result{}, []string{"a", "b"}, sdk.LabelForm{}, map[string]float64{"a": .5, "b": .5}},
		"perhaps no label fits":  {result.Result{Answer: "a", Verdict: result.Verdict{Confidence: .5, Unknown: .3, Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .5}, {Label: "b", Confidence: .5}}}}, []string{"a", "b"}, sdk.LabelForm{}, map[string]float64{"a": .5, "b": .5}},
		"sets":                   {result.Result{Answer: "a; b", Verdict: result.Verdict{Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .9}, {Label: "b", Confidence: .8}}}}, []string{"a", "b", "c"}, sdk.LabelForm{Many: true}, map[string]float64{"a": .9, "b": .8, "c": 0}},
		"sets without estimates": {result.Result{Answer: "a; b", Verdict: result.Verdict{Agreement: .5}}, []string{"a", "b", "c"}, sdk.LabelForm{Many: true}, map[string]float64{"a": .5, "b": .5, "c": 0}},
		"a tree": {
			result.Result{Answer: "a/x", Verdict: result.Verdict{Confidence: .6, Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .9}, {Label: "a/x", Confidence: .6}}}, Votes: []result.Vote{vote("a/x", 1), vote("b/y", 1)}}, leaves, tree,
			map[string]float64{"a": .9, "a/x": .6, "a/y": .3, "b": .1, "b/y": .1 * .5025 / .505, "b/x": .1 * .0025 / .505},
		},
		"an inner node": {
			result.Result{Answer: "a", Verdict: result.Verdict{Confidence: .9, Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .9}, {Label: "a/x", Confidence: .4}}}}, leaves, tree,
			map[string]float64{"a": .9, "a/x": .4, "a/y": .5, "b": .1, "b/y": .05, "b/x": .05},
		},
	} {
		b := BeliefOf(test.r, test.labels, test.form)
		got := map[string]float64{}
		for node := range test.want {
			got[node] = b.Of(node)
		}
		if d := cmp.Diff(test.want, got, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	p, confidence := BeliefOf(result.Result{Verdict: result.Verdict{Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .9}, {Label: "b", Confidence: .8}}}}, []string{"a", "b"}, sdk.LabelForm{Many: true}).among([]string{"a", "b", ""}, 2)
	if d := cmp.Diff([]float64{.9 / 1.72, .8 / 1.72, .02 / 1.72, (.9/1.72 - 1./3) * 1.5}, append(p, confidence), near); d != "" {
		t.Errorf("a choice among labels of sets (-want +got):\n%s", d)
	}
	if p, confidence = BeliefOf(result.Result{Votes: []result.Vote{vote("", 1)}}, []string{"a", "b"}, sdk.LabelForm{}).among([]string{"a", "b"}, -1); p[0] != .5 || p[1] != .5 || confidence != 0 {
		t.Errorf("no label fits: %v, %v", p, confidence)
	}
}

func TestConfidence(t *testing.T) {
	for _, test := range []struct {
		p    float64
		n    int
		want float64
	}{{1, 2, 1}, {.5, 2, 0}, {.75, 2, .5}, {.25, 4, 0}, {.1, 4, 0}, {.625, 4, .5}} {
		if got := Confidence(test.p, test.n); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v of %d: %v", test.p, test.n, got)
		}
	}
}

// TestMistakes: an option that is no label is a mistake that lists the labels; other errors are
// passed on.
func TestMistakes(t *testing.T) {
	lost := errors.New("lost")
	none := func(context.Context, []string) ([][]float32, error) { return nil, nil }
	for name, test := range map[string]struct {
		q      Question
		change func(*Model)
		want   string
	}{
		"some labels":       {choiceOf("refund", "refnd", "late"), nil, "questions.q: no label of this pipeline: refnd, late; write none for what is outside of the options; the labels are refund, order_late, greeting, complaint"},
		"no such label":     {Question{Kind: Predicate, Label: "refnd", Options: make([]Option, 2)}, nil, "no label of this pipeline: refnd;"},
		"nothing is asked":  {about(""), nil, "it has no instructions and no criteria"},
		"no embedder":       {choiceOf("red", "blue"), func(m *Model) { m.Embed = none }, "has no embedder to compare descriptions with; its labels are refund, order_late"},
		"the embedder ends": {choiceOf("red", "blue"), func(m *Model) { m.Embed = func(context.Context, []string) ([][]float32, error) { return nil, lost } }, "lost"},
		"a text is too long": {choiceOf("red", "blue"), func(m *Model) {
			m.Embed = func(context.Context, []string) ([][]float32, error) {
				return make([][]float32, 3), sdk.RowErrors{1: lost}
			}
		}, "questions: the text or a description cannot be compared:"},
		"the search ends": {about("refund"), func(m *Model) {
			m.Decide = func(context.Context, workspace.Item) (result.Result, error) { return result.Result{}, lost }
		}, "lost"},
	} {
		asked := 0
		m := shop(&asked)
		if test.change != nil {
			test.change(&m)
		}
		_, _, err := m.Answer(t.Context(), Request{Item: workspace.Item{Text: "x"}, Questions: []Question{test.q}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many []string
	for i := range MaxTexts {
		many = append(many, fmt.Sprint("option ", i))
	}
	asked := 0
	if _, _, err := shop(&asked).Answer(t.Context(), Request{Item: workspace.Item{Text: "x"}, Questions: []Question{choiceOf(many...)}}); err == nil || !strings.Contains(err.Error(), "1000 descriptions") {
		t.Errorf("%v", err)
	}
	if _, _, err := shop(&asked).Answer(t.Context(), Request{Questions: []Question{choiceOf("red", "blue")}}); err == nil || err.Error() != "the text is empty" {
		t.Errorf("%v", err)
	}
}

// TestStates: the text of a state.
func TestStates(t *testing.T) {
	for state, want := range map[string]workspace.Item{
		`"a text"`: {Text: "a text"},
		`{"text": "a", "id": "7", "n": 1.5, "more": {"x": [true]}}`:                   {Text: "a", ID: "7", Meta: sdk.Meta{"n": 1.5, "more": map[string]any{"x": []any{true}}}},
		`{"subject": "s", "body": {"b": ["x", 2, null, true, {"c": "z"}]}, "a": "y"}`: {Text: "s\nx\n2\nz\ny"},
		`["a", ["b"], {"k": "c"}]`: {Text: "a\nb\nc"},
		`[{"role": "user", "content": "first"}, {"role": "user", "content": "last"}, {"role": "assistant", "content": "x"}]`: {Text: "last"},
		`{"messages": [{"role": "user", "content": "q"}], "plan": "pro"}`:                                                    {Text: "q", Meta: sdk.Meta{"plan": "pro"}},
		`{"text": ""}`: {Text: ""},
	} {
		got, err := itemOf(json.RawMessage(state))
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", state, err, d)
		}
	}
	deep := strings.Repeat("[", 9000) + `"x"` + strings.Repeat("]", 9000)
	if got := flat(json.RawMessage(deep)); got != "x" {
		t.Errorf("%.40q", got)
	}
}
