package bounded

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Evaluator evaluates the expressions of one file. Where its budget is spent or its context
// has ended, its methods panic with Stopped, which Stop recovers.
type Evaluator struct {
	// Functions can be called by expressions.
	Functions map[string]function.Function

	ctx  context.Context
	left int                     // of maxWork
	at   atomic.Pointer[Located] // what it is busy with
}

// New returns an Evaluator with a budget of its own. Functions that may be expensive are
// bounded by that budget.
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

// Convert converts a value that is given at a place.
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

// SpendValue takes the weight of a value, times a factor, from the budget.
func (e *Evaluator) SpendValue(on Located, v cty.Value, factor int) {
	e.Spend(on, times(factor, weigh(v, e.left)))
}
