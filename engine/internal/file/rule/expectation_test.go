package rule

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func pipelineScope() Scope {
	s := everything()
	s.Election = true
	s.Vars["label"], s.Vars["promise"] = cty.StringVal("card_lost"), cty.NumberFloatVal(0.98)
	return s
}

// TestExpectations compiles expectations, and evaluates them with measured figures.
func TestExpectations(t *testing.T) {
	measured := Measured{
		"accuracy":              {Number: 0.93, Low: 0.90, High: 0.95},
		`recall("card_lost")`:   {Number: 0.8, Low: 0.5, High: 0.95},
		`precision("x")`:        {Number: 1},
		"answered(0.98)":        {Number: 0.76},
		`answer("hi \"you\"")`:  {Text: "greet"},
		`found("q", "g.md")`:    {Truth: true},
		`found("q", "g.md", 3)`: {},
		"recall_at(5)":          {Number: 0.7},
		"cost_per_1000":         {Number: 0.4},
		"leaked":                {},
	}
	tests := []struct {
		rule     string
		holds    bool
		figures  []string
		compared []Comparison
	}{
		{`accuracy >= 0.92`, true, []string{"accuracy"}, []Comparison{{Figure{Name: "accuracy"}, "", ">=", 0.92}}},
		{`0.92 <= low(accuracy)`, false, []string{"accuracy"}, []Comparison{{Figure{Name: "accuracy"}, "low", ">=", 0.92}}},
		{`high(accuracy) > 0.92 and accuracy < 1`, true, []string{"accuracy"}, []Comparison{{Figure{Name: "accuracy"}, "high", ">", 0.92}, {Figure{Name: "accuracy"}, "", "<", 1}}},
		{`recall("card_lost") >= 0.95 || precision("x") == 1`, true, []string{`recall("card_lost")`, `precision("x")`}, nil},
		{`recall(var.label) >= 0.95`, false, []string{`recall("card_lost")`}, []Comparison{{Figure{"recall", []any{"card_lost"}}, "", ">=", 0.95}}},
		{`answered(var.promise) >= 0.75 && leaked == 0`, true, []string{"answered(0.98)", "leaked"}, []Comparison{{Figure{"answered", []any{0.98}}, "", ">=", 0.75}, {Figure{Name: "leaked"}, "", "==", 0}}},
		{`answer('hi "you"') == "greet"`, true, []string{`answer("hi \"you\"")`}, nil},
		{`found("q", "g.md")`, true, []string{`found("q", "g.md")`}, nil},
		{`not found("q", "g.md", 3) and recall_at(5) > 0.5`, true, []string{`found("q", "g.md", 3)`, "recall_at(5)"}, []Comparison{{Figure{"recall_at", []any{5}}, "", ">", 0.5}}},
		{`min(accuracy, recall("card_lost")) == recall("card_lost")`, true, []string{"accuracy", `recall("card_lost")`}, nil},
	}
	for _, tt := range tests {
		r, diags := Compile(Expectation, pipelineScope(), plain(tt.rule))
		if diags.HasErrors() {
			t.Errorf("%s: %v", tt.rule, diags)
			continue
		}
		holds, err := r.Eval(context.Background(), &Env{Measured: measured})
		if err != nil || holds != tt.holds {
			t.Errorf("%s: %v, %v", tt.rule, holds, err)
		}
		var figures []string
		for _, f := range r.Figures() {
			figures = append(figures, f.String())
		}
		if d := cmp.Diff(tt.figures, figures); d != "" {
			t.Errorf("%s: figures (-want +got):\n%s", tt.rule, d)
		}
		if d := cmp.Diff(tt.compared, r.Comparisons()); d != "" {
			t.Errorf("%s: compared (-want +got):\n%s", tt.rule, d)
		}
	}
}

// TestWrongExpectations expects an error with its place.
func TestWrongExpectations(t *testing.T) {
	tests := []struct {
		scope    Scope
		rule, at string
		want     string
	}{
		{pipelineScope(), `accurracy >= 0.9`, "accurracy", `Did you mean "accuracy"?`},
		{pipelineScope(), `recal("x") > 1`, "recal", `Did you mean "recall"?`},
		{pipelineScope(), `recall(3) > 1`, "3", `Cannot use`},
		{pipelineScope(), `recall("x", "y") > 1`, "recall", `Too many arguments`},
		{pipelineScope(), `recall("") > 1`, `""`, "Name the label"},
		{pipelineScope(), `recall(answer("x")) > 1`, `answer`, "Write the argument of recall out"},
		{pipelineScope(), `answered(98) > 0.5`, `98`, "above 0 and below 1"},
		{pipelineScope(), `recall_at(0) > 0.5`, `0`, "at least 1"},
		{pipelineScope(), `found("q", "p", 0)`, `0)`, "at least 1"},
		{pipelineScope(), `found("", "p")`, `""`, "Name the question"},
		{pipelineScope(), `found("x")`, "found", "Not enough arguments"},
		{pipelineScope(), `recall() > 0`, "recall", "Not enough arguments"},
		{pipelineScope(), `accuracy`, "accuracy", "A rule is true or false"},
		{pipelineScope(), `1 > 0`, "1", "names nothing that is measured"},
		{pipelineScope(), `low(0.5) > 0`, "0.5", "is of a figure with an interval"},
		{pipelineScope(), `low(leaked) > 0`, "leaked", "is of a figure with an interval"},
		{pipelineScope(), `low(low(accuracy)) > 0`, "low(accuracy)", "is of a figure with an interval"},
		{pipelineScope(), `margin > 0 and accuracy > 0`, "margin", `There is no "margin" here`},
		{Scope{Candidates: true}, `accuracy > 0`, "accuracy", "the pipeline needs an elect stage"},
		{Scope{Candidates: true}, `recall("x") > 0`, "recall", "the pipeline needs an elect stage"},
		{Scope{Election: true}, `leaked == 0`, "leaked", "the pipeline needs a retrieve stage"},
		{Scope{Election: true}, `found("q", "p")`, "found", "the pipeline needs a retrieve stage"},
	}
	for _, tt := range tests {
		_, diags := Compile(Expectation, tt.scope, plain(tt.rule))
		if !diags.HasErrors() || !strings.Contains(diags.Error(), tt.want) {
			t.Errorf("%s: %v", tt.rule, diags)
			continue
		}
		if got := tt.rule[min(diags[0].Subject.Start.Byte, len(tt.rule)):]; !strings.HasPrefix(got, tt.at) {
			t.Errorf("%s: points at %q: %v", tt.rule, got, diags)
		}
	}
}

// Other kinds of rules do not know the figures.
func TestFiguresAreOfExpectationsAlone(t *testing.T) {
	for _, text := range []string{`accuracy > 0.5`, `recall("x") > 0.5`, `low(margin) > 0`} {
		if _, diags := Compile(Flag, pipelineScope(), plain(text)); !diags.HasErrors() {
			t.Errorf("%s is a rule of flag", text)
		}
	}
}
