package rule

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/sdk"
)

// plain is a rule outside of a file: its positions are its rune offsets.
func plain(text string) Source {
	return Source{text, func(from, to int) hcl.Range {
		return hcl.Range{Start: hcl.Pos{Byte: from}, End: hcl.Pos{Byte: to}}
	}}
}

func everything() Scope {
	return Scope{Candidates: true, Voters: true, Vars: map[string]cty.Value{
		"k": cty.NumberIntVal(3), "cut": cty.NumberFloatVal(0.4), "lang": cty.StringVal("de"), "on": cty.True,
		"names": cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")}),
		"key":   cty.StringVal("hush").Mark("secret"),
		"odd":   cty.EmptyObjectVal,
	}}
}

func sample() *Env {
	e := &Env{
		Item:            sdk.Item{ID: "7", Text: "wo ist mein Paket?", Meta: sdk.Meta{"lang": "de", "age": 3.0}},
		Labels:          NewLabelSet([]string{"track", "refund", "", "track"}),
		CandidateLabels: []string{"track", "cancel"},
		Margin:          0.05, Agreement: 0.6, Confidence: 0.75,
		Votes:  []Vote{{"knn", "track", 0.6, true}, {"llm", "other", 0.4, false}},
		Rank:   2,
		Answer: "track", Failed: true, Error: "deadline exceeded",
		Knowledge: Extent{Tokens: 1500, Entries: 12},
	}
	for i := range 60 {
		e.Item.Candidates = append(e.Item.Candidates, sdk.Candidate{
			ID: fmt.Sprint(i), Text: "text", Label: []string{"track", "cancel"}[i%2], Meta: sdk.Meta{"year": 2020.0 + float64(i)},
			Score: float32(60-i) / 60, Dense: float32(60-i) / 60, Lexical: sdk.Unscored,
		})
	}
	e.Candidate = &e.Item.Candidates[1]
	return e
}

func TestEval(t *testing.T) {
	tests := []struct {
		kind Kind
		rule string
		want bool
	}{
		{When, `margin < 0.12`, true},
		{When, `margin < var.cut and item.meta.lang == var.lang`, true},
		{When, `item.text contains "Paket" && item.id == "7"`, true},
		{When, `item.text matches "^wo .*\\?$"`, true},
		{When, `len(candidates) >= var.k and var.on`, true},
		{When, `"b" in var.names`, true},
		{When, `item.meta.missing == nil`, true},
		{When, `(item.meta.age ?? 0) + 1 > 3.5`, true},
		{When, `item.meta.lang + "!" == "de!"`, true},
		{When, `item.meta.missing matches "x"`, false},
		{When, `count(candidates, .score > 0.5) == 30`, true},
		{When, `any(candidates, .label == "cancel" and .rank == 2)`, true},
		{When, `first(candidates)?.label == "track"`, true},
		{When, `let best = filter(candidates, .score > 0.9); len(best) > 3 && all(best, .dense > 0.9)`, true},
		{When, `sum(candidates, .score) > 30 && max(map(candidates, .score)) == 1`, true},
		{When, `any(votes, .voter == "llm" and not .accepted)`, true},
		{When, `candidates | map(.meta.year) | any(# == 2025)`, true},
		{When, `len(labels) == 2 and labels[0] == "refund"`, true},
		{When, `len(candidate_labels) == 1`, false},
		{When, `true ? margin > 1 : agreement > 0`, false},
		{Keep, `dense > 0.2 && label == "cancel" && rank == 2 && id == "1"`, true},
		{Keep, `lexical > 0.1`, false},
		{Keep, `lexical < 0.1`, false},
		{Keep, `lexical == 0.1`, false},
		{Keep, `meta.year == 2021 and text == "text"`, true},
		{Keep, `score > 0.9 * candidates[0].score`, true},
		{Accept, `answer in labels`, true},
		{Accept, `answer not in labels`, false},
		{Accept, `not (answer in labels) or answer in candidate_labels`, true},
		{Accept, `upper(answer) in labels`, false},
		{Accept, `item.meta.lang in labels`, false},
		{Flag, `agreement < 0.5 or answer == ""`, false},
		{Flag, `confidence > 0.7 and confidence > agreement`, true},
		{Fallback, `failed and error contains "deadline"`, true},
		{Fallback, `failed or len(candidates) == 0`, true},
		{Whole, `knowledge.tokens < 2000 and var.on`, true},
		{Whole, `knowledge.tokens / knowledge.entries > var.k * 100`, false},
	}
	for _, tt := range tests {
		r, diags := Compile(tt.kind, everything(), plain(tt.rule))
		if diags.HasErrors() {
			t.Errorf("%s: %v", tt.rule, diags)
			continue
		}
		got, err := r.Eval(context.Background(), sample())
		if err != nil || got != tt.want {
			t.Errorf("%s: got %v, %v, want %v", tt.rule, got, err, tt.want)
		}
	}
}

func TestFaults(t *testing.T) {
	nothing := Scope{Vars: everything().Vars}
	tests := []struct {
		kind  Kind
		scope Scope
		rule  string
		at    string // position of the error
		want  string
	}{
		{When, nothing, `margin < 0.1`, `margin`, `"margin": it needs a sample stage above`},
		{When, nothing, `len(candidates) > 1`, `candidates`, `it needs a retrieve stage above`},
		{Accept, nothing, `answer in labels`, `labels`, `it needs a retrieve stage above`},
		{When, everything(), `marign < 0.1`, `marign`, `Did you mean "margin"?`},
		{When, everything(), `score > 1`, `score`, `a rule in this place sees var, item, labels`},
		{Whole, everything(), `len(labels) < 9`, `labels`, `a rule in this place sees var, knowledge`},
		{Keep, everything(), `answer == "x"`, `answer`, `There is no "answer" here`},
		{When, everything(), `agreement`, `agreement`, `A rule is true or false; this one gives a number`},
		{When, everything(), `item.txt == ""`, `txt`, `Did you mean "text"?`},
		{When, everything(), `any(candidates, .labl == "x")`, `labl`, `Did you mean "label"?`},
		{When, everything(), `margin > "x"`, `>`, `mismatched types`},
		{When, everything(), `5 in labels`, `in`, `Cannot use int`},
		{When, everything(), `margin <`, ``, `ends too early`},
		{When, everything(), `agreement = 1`, `=`, `write == instead of =`},
		{When, everything(), `  `, `  `, `The rule is empty`},
		{When, everything(), `item.text matches "(("`, `"(("`, `missing closing )`},
		{When, everything(), `item.text matches item.id`, `id`, `written out`},
		{When, everything(), `var.cuts > 1`, `cuts`, `Did you mean "cut"?`},
		{When, everything(), `var["cut"] > var[item.id]`, `[`, `Name the variable`},
		{When, everything(), `var == nil`, `var`, `Name the variable`},
		{When, everything(), `var.key == "hush"`, `key`, `is a secret`},
		{When, everything(), `var.odd == nil`, `odd`, `neither a text`},
		{When, everything(), `repeat("x", 3) == "xxx"`, `repeat`, `There is no function "repeat"`},
		{When, everything(), `reduce(candidates, #acc + .score) > 1`, `reduce`, `There is no function "reduce"`},
		{When, everything(), `frist(labels) == ""`, `frist`, `Did you mean "first"?`},
		{When, everything(), `item.text.Foo()`, ``, `Only functions can be called`},
		{When, everything(), `__tick(__clock)`, `__tick`, `There is no function`},
		{When, everything(), `__clock == nil`, `__clock`, `There is no "__clock"`},
		{When, everything(), `$env == nil`, `$env`, `There is no "$env"`},
		{When, everything(), `len([[1]]) == 1`, `[`, `Only a text, a number or a bool`},
		{When, everything(), `len(map(labels, [#])) == 1`, `[`, `Only a text, a number or a bool`},
		{When, everything(), `len(1..3) == 3`, `..`, `cannot make a range`},
		{When, everything(), `{"a": 1}.a == 1`, `{`, `cannot make a map`},
		{When, everything(), strings.Repeat("(", 5000), ``, `at most 4096 bytes`},
		{When, everything(), strings.Repeat("1+", 1500) + `1 > 0`, ``, `maximum allowed nodes`},
	}
	for _, tt := range tests {
		_, diags := Compile(tt.kind, tt.scope, plain(tt.rule))
		if !diags.HasErrors() {
			t.Errorf("%.60s: no fault", tt.rule)
			continue
		}
		if got := diags.Error(); !strings.Contains(got, tt.want) {
			t.Errorf("%.60s:\n got %s\nwant %s", tt.rule, got, tt.want)
		}
		from, to := diags[0].Subject.Start.Byte, min(diags[0].Subject.End.Byte, len(tt.rule))
		if got := tt.rule[min(from, to):to]; !strings.HasPrefix(got, tt.at) {
			t.Errorf("%.60s: points at %q, want %q", tt.rule, got, tt.at)
		}
	}
}

func TestAllNamesAtOnce(t *testing.T) {
	_, diags := Compile(When, everything(), plain(`marign < 1 and agrement < 1 and lables == nil`))
	if len(diags) != 3 {
		t.Errorf("got %v, want three faults", diags)
	}
}

func TestReads(t *testing.T) {
	r, diags := Compile(Flag, everything(), plain(`margin < 0.1 or any(candidates, .text == answer)`))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for name, want := range map[string]bool{
		"margin": true, "candidates": true, "candidate_texts": true, "answer": true,
		"agreement": false, "labels": false, "__clock": false,
	} {
		if r.Reads(name) != want {
			t.Errorf("Reads(%q) = %v", name, !want)
		}
	}
	r, _ = Compile(When, everything(), plain(`item.text == "" and any(candidates, .score > 1)`))
	if r.Reads("candidate_texts") {
		t.Error("item.text counts as the text of a candidate")
	}
	var none *Rule
	if none.Reads("margin") {
		t.Error("no rule reads something")
	}
}

func TestEvalErrorNamesTheRule(t *testing.T) {
	r, diags := Compile(When, everything(), plain(`item.meta.lang > 3`))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if _, err := r.Eval(context.Background(), sample()); err == nil || !strings.HasPrefix(err.Error(), `rule "item.meta.lang > 3": `) {
		t.Errorf("got %v", err)
	}
}

func TestEvalConcurrently(t *testing.T) {
	r, diags := Compile(Keep, everything(), plain(`score > 0.5 and any(candidates, .id == id) and label in labels`))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e := sample()
			for i := range e.Item.Candidates {
				e.Candidate = &e.Item.Candidates[i]
				got, err := r.Eval(context.Background(), e)
				if want := e.Candidate.Score > 0.5 && e.Candidate.Label == "track"; err != nil || got != want {
					t.Errorf("candidate %d: %v, %v", i, got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestUnscoredIsNotANumber(t *testing.T) {
	if !math.IsNaN(float64(sdk.Unscored)) {
		t.Error("the rules' tests rest on it")
	}
}

func TestNearest(t *testing.T) {
	for given, want := range map[string]string{"marign": "margin", "x": "", "votse": "votes", "nothing": ""} {
		if got := Nearest(given, []string{"margin", "votes"}); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
}

// A rule depends on the variables that it reads, not on other variables whose names it contains.
func TestVariables(t *testing.T) {
	scope := everything()
	scope.Vars["n"], scope.Vars["agreement"] = cty.NumberIntVal(6), cty.Zero
	tests := []struct {
		rule string
		want []string
	}{
		{`agreement < 0.4`, nil},
		{`margin < var.cut`, []string{"cut"}},
		{`item.text != "var.n" and agreement > var["cut"]`, []string{"cut"}},
		{`any(labels, # in var.names) and var.k > 2 or var.k < 1`, []string{"k", "names"}},
	}
	for _, test := range tests {
		r, diags := Compile(When, scope, plain(test.rule))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if got := slices.Sorted(maps.Keys(r.Variables())); !slices.Equal(got, test.want) {
			t.Errorf("%s reads %q, want %q", test.rule, got, test.want)
		}
		for name, v := range r.Variables() {
			if !v.RawEquals(scope.Vars[name]) {
				t.Errorf("%s: %s is %#v", test.rule, name, v)
			}
		}
	}
	f, diags := CompileFilter(scope, plain(`meta.lang == var.lang and label != "n"`))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := slices.Sorted(maps.Keys(f.Variables())); !slices.Equal(got, []string{"lang"}) {
		t.Errorf("the filter reads %q", got)
	}
}
