package rule

import "github.com/expr-lang/expr/builtin"

// figure is a name or a function of an Expectation.
type figure struct {
	name   string
	form   string // of a function, as recall("label"); empty: it is a name
	doc    string
	writer writer
	typ    any                      // a value of the type that it has
	takes  []any                    // of a function: its signatures, as new(func(string) float64)
	share  bool                     // it has bounds: low and high
	check  func(args []any) problem // of a function; nil: every value will do
}

// problem is what is wrong with an argument; the zero value: nothing.
type problem struct {
	argument int
	text     string
}

// figures are in the order of the documentation.
var figures = []figure{
	{name: "accuracy", doc: "The share of the items with a label that got it. Where the knowledge does not have the label, no answer is the right one. An item that failed is wrong.", writer: elects, typ: 0.0, share: true},
	{name: "f1", doc: "The mean F1 of all labels that were expected or answered.", writer: elects, typ: 0.0, share: true},
	{name: "recall", form: `recall("LABEL")`, doc: "The share of the items with this label that got it.", writer: elects, typ: 0.0, share: true, takes: []any{new(func(string) float64)}, check: named("label")},
	{name: "precision", form: `precision("LABEL")`, doc: "The share of the items that got this label and should have it.", writer: elects, typ: 0.0, share: true, takes: []any{new(func(string) float64)}, check: named("label")},
	{name: "answered", form: "answered(ACCURACY)", doc: "The share of the items that are answered where so many of the answers are promised to be right, with 95 % confidence, and the others are flagged: as racflow tune --accuracy finds it.", writer: elects, typ: 0.0, share: true, takes: []any{new(func(float64) float64)}, check: between},
	{name: "flagged", doc: "The share of the items that are flagged.", writer: elects, typ: 0.0, share: true},
	{name: "failed", doc: "The share of the items that failed.", typ: 0.0, share: true},
	{name: "answer", form: `answer("TEXT")`, doc: "What the pipeline answers to a text; empty: it has no answer.", writer: elects, typ: "", takes: []any{new(func(string) string)}, check: named("text")},
	{name: "found", form: `found("QUESTION", "PASSAGE", K)`, doc: "Whether a passage is among the first K (without it 20) that are found for a question: an entry's id, the path or the end of the path of its document, words that it holds, or the path with a quote, as guide.md\"the port is 8080\".", writer: retrieves, typ: false, takes: []any{new(func(string, string) bool), new(func(string, string, int) bool)}, check: searched},
	{name: "recall_at", form: "recall_at(K)", doc: "The mean share of an item's gold passages that are among the first K of the last search or reranking.", writer: retrieves, typ: 0.0, share: true, takes: []any{new(func(int) float64)}, check: positive},
	{name: "ndcg", doc: "nDCG@10 of the last search or reranking.", writer: retrieves, typ: 0.0, share: true},
	{name: "mrr", doc: "The mean of 1 / rank of the first gold passage in the last search or reranking.", writer: retrieves, typ: 0.0, share: true},
	{name: "cost_per_1000", doc: "What the answers to a thousand items cost, by the prices: also those that came from the response cache, at what they cost when they were made.", typ: 0.0},
	{name: "leaked", doc: "How many rows of the input with a label have a text that the knowledge has, case and spaces aside.", writer: retrieves, typ: 0.0},
	{name: lowName, form: "low(FIGURE)", doc: "The lower end of a figure's interval of 95 %, as in low(accuracy).", typ: 0.0, takes: []any{new(func(float64) float64)}},
	{name: highName, form: "high(FIGURE)", doc: "The upper end of a figure's interval of 95 %, as in high(flagged).", typ: 0.0, takes: []any{new(func(float64) float64)}},
}

// The functions that take a figure, and not a value.
const lowName, highName = "low", "high"

// figureNames are the names among the figures.
func figureNames(kind Kind) (all []name) {
	for _, f := range figures {
		if kind == Expectation && f.form == "" {
			all = append(all, name{f.name, f.writer, f.typ, nil})
		}
	}
	return all
}

// docOf says what a name is, where it is a figure.
func docOf(name string, kind Kind) string {
	for _, f := range figures {
		if kind == Expectation && f.name == name {
			return f.doc
		}
	}
	return ""
}

// functionsOf are the functions that rules of a kind may call beside builtins.
func functionsOf(kind Kind) map[string]*figure {
	all := map[string]*figure{}
	for i, f := range figures {
		if kind == Expectation && f.form != "" {
			all[f.name] = &figures[i]
		}
	}
	return all
}

// declared is the function as expressions are checked against it. It is never called: what
// calls it is replaced by its value.
func (f *figure) declared() *builtin.Function {
	return guard(f.name, nil, f.takes...)
}

func named(what string) func([]any) problem {
	return func(args []any) problem {
		if args[0] == "" {
			return problem{0, "Name the " + what + ": the text is empty."}
		}
		return problem{}
	}
}

func between(args []any) problem {
	if a := number(args[0]); !(a > 0 && a < 1) {
		return problem{0, "An accuracy that is promised is above 0 and below 1, such as 0.98."}
	}
	return problem{}
}

func positive(args []any) problem {
	if number(args[len(args)-1]) < 1 {
		return problem{len(args) - 1, "K is a whole number of at least 1."}
	}
	return problem{}
}

func searched(args []any) problem {
	for i, a := range args {
		if a == "" {
			return problem{i, "Name the " + []string{"question", "passage", "number"}[min(i, 2)] + ": the text is empty."}
		}
	}
	if len(args) > 2 {
		return positive(args)
	}
	return problem{}
}

func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}
