package bounded

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/racflow/racflow/engine/internal/file/rule"
)

// Evaluator evaluates the expressions of one file. When its budget is spent or its context has
// ended, its methods panic with Stopped, which Stop recovers.
type Evaluator struct {
	// Functions are the functions that expressions can call.
	Functions map[string]function.Function

	ctx  context.Context
	left int // the rest of the budget, initially maxWork
}

// New returns an Evaluator with its own budget, which also limits the expensive functions among
// functions.
func New(ctx context.Context, functions map[string]function.Function) *Evaluator {
	e := &Evaluator{Functions: functions, ctx: ctx, left: maxWork}
	for name, cost := range costs {
		if f, ok := functions[name]; ok {
			functions[name] = e.bounded(f, cost)
		}
	}
	return e
}

// Value evaluates an expression.
func (e *Evaluator) Value(x hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	metered := x
	if native, ok := x.(hclsyntax.Expression); ok {
		metered = e.meter(native)
	}
	v, diags := metered.Value(ctx)
	for _, d := range diags {
		e.Spend(x, len(d.Detail)+Overhead)
	}
	return v, diags
}

// Convert converts a value that stands at a place in the file.
func (e *Evaluator) Convert(v cty.Value, t cty.Type, at hcl.Range) (cty.Value, error) {
	if t.IsCollectionType() {
		_, n := comparisons(v.Type())
		e.Spend(place(at), n)
	}
	converted, err := convert.Convert(v, t)
	if err == nil {
		e.SpendValue(place(at), converted, 1)
	}
	return converted, err
}

// SpendValue takes a value's weight, times a factor, from the budget.
func (e *Evaluator) SpendValue(on Located, v cty.Value, factor int) {
	e.Spend(on, times(factor, weigh(v, e.left)))
}

// costs estimates the cost of a call in bytes, for functions that may return much more than they
// get, or take more than linear time. Arguments may be unknown or null.
var costs = map[string]func(args []cty.Value) int{
	"format": costOfFormat,
	"indent": func(args []cty.Value) int { return times(numberOf(args[0]), 1+strings.Count(Text(args[1]), "\n")) },
	"join":   costOfJoin,
	"replace": func(args []cty.Value) int {
		return times(strings.Count(Text(args[0]), Text(args[1])), len(Text(args[2])))
	},
	"split":      func(args []cty.Value) int { return Overhead * (1 + strings.Count(Text(args[1]), Text(args[0]))) },
	"jsonencode": func(args []cty.Value) int { return times(6, weigh(args[0], maxWork)) },
	"jsondecode": costOfJSON,
	"parseint":   func(args []cty.Value) int { return len(Text(args[0])) * len(Text(args[0])) / 64 },
	"distinct":   func(args []cty.Value) int { return times(length(args[0]), weigh(args[0], maxWork)/32) },
	"regex":      costOfRegex,
	"trim":       func(args []cty.Value) int { return times(len(Text(args[0])), len(Text(args[1]))/64) },
	"coalesce":   costOfOneType,
	"concat":     costOfOneType,
}

// bounded wraps a function so that it computes only what the remaining budget allows.
func (e *Evaluator) bounded(f function.Function, cost func(args []cty.Value) int) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			n := cost(args)
			if n > e.left {
				return cty.NilType, fmt.Errorf("it would take too much: the expressions of a file make at most %d MiB of texts and lists; give it less, or a simpler pattern", maxWork>>20)
			}
			e.left -= n
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// costOfFormat adds up the widths and precisions, and counts the longest
// argument, as JSON, for each verb.
func costOfFormat(args []cty.Value) int {
	longest := 0
	for _, a := range args[1:] {
		longest = max(longest, weigh(a, maxWork))
		if a.Type() == cty.String { // a verb may read the text as a number, such as 1e1000000000
			longest = max(longest, weighNumber(Text(a)))
		}
	}
	longest = times(6, longest)
	n := 0
	_, rest, verb := strings.Cut(Text(args[0]), "%")
	for verb {
		flags := rest[:len(rest)-len(strings.TrimLeft(rest, " +-#.[]0123456789"))]
		for _, digits := range strings.FieldsFunc(flags, func(r rune) bool { return r < '0' || r > '9' }) {
			width, err := strconv.Atoi(digits)
			if err != nil || width > maxWork {
				return maxWork + 1
			}
			n += width
		}
		if n += longest; n > maxWork {
			return n
		}
		_, rest, verb = strings.Cut(rest[len(flags):], "%")
	}
	return n
}

// weighNumber returns the weight of a text as a number; 0 if it is not a number.
func weighNumber(text string) int {
	number, err := cty.ParseNumberVal(text)
	if err != nil {
		return 0
	}
	return weigh(number, maxWork)
}

func costOfJoin(args []cty.Value) int {
	elements := 0
	for _, list := range args[1:] {
		elements += length(list)
	}
	return times(elements, len(Text(args[0])))
}

// costOfJSON counts the values, and rejects nesting that is too deep for a recursive decoder.
func costOfJSON(args []cty.Value) int {
	values, depth := 1, 0
	for _, c := range []byte(Text(args[0])) {
		switch c {
		case '[', '{':
			values++
			depth++
		case ']', '}':
			depth--
		case ',', ':':
			values++
		}
		if depth > maxDepth {
			return maxWork + 1
		}
	}
	return times(values, 2*Overhead)
}

// costOfRegex multiplies the instructions of the compiled pattern by the bytes of the text: each
// instruction may look at every byte.
func costOfRegex(args []cty.Value) int {
	size, err := rule.PatternSize(Text(args[0]))
	if err != nil {
		return 0 // the function itself reports the error
	}
	return times(size, Overhead+len(Text(args[1])))
}

// costOfOneType counts the comparisons that find a type for all arguments.
func costOfOneType(args []cty.Value) int {
	all := 0
	for _, a := range args {
		types, _ := comparisons(a.Type())
		all += types
	}
	return times(all, len(args))
}

// times returns a product, capped above every budget.
func times(a, b int) int {
	if a > 0 && b > maxWork/a {
		return maxWork + 1
	}
	return a * b
}

// Text returns the text of a value; "" if it is unknown, null or no string.
func Text(v cty.Value) string {
	v, _ = v.Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

// numberOf returns the number of an argument; 0 if it is unknown, null or negative.
func numberOf(v cty.Value) int {
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return 0
	}
	n, _ := v.AsBigFloat().Int64()
	return int(min(max(0, n), maxWork+1))
}

// length returns the number of elements of an argument; 0 if it is unknown or null.
func length(v cty.Value) int {
	if v.IsKnown() && !v.IsNull() && v.CanIterateElements() {
		return v.LengthInt()
	}
	return 0
}
