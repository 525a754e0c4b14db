package rule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// evaluation is what one run of a rule needs; rules keep idle ones.
type evaluation struct {
	vm     vm.VM
	clock  clock
	values map[string]any
}

// Eval evaluates the rule on an item. The error of a rule that fails names the
// rule.
func (r *Rule) Eval(ctx context.Context, env *Env) (bool, error) {
	e := r.begin(ctx, env)
	defer r.idle.Put(e)
	v, err := e.vm.Run(r.code, e.values)
	if err != nil {
		return false, r.failed(err)
	}
	holds, ok := v.(bool)
	if !ok {
		return false, r.failed(fmt.Errorf("it gave a %T; a rule is true or false", v))
	}
	return holds, nil
}

// begin prepares to run code on an item until the clock has to be checked again.
func (p *program) begin(ctx context.Context, env *Env) *evaluation {
	e, _ := p.idle.Get().(*evaluation)
	if e == nil {
		e = &evaluation{values: map[string]any{}}
		e.vm.MemoryBudget = maxMemory
		e.values[clockName] = &e.clock
	}
	e.clock = clock{ctx: ctx}
	e.values[labelsName], e.values[measuredName] = env.Labels, env.Measured
	for _, n := range p.uses {
		e.values[n.name] = n.value(env)
	}
	return e
}

// failed adds the rule to an error.
func (p *program) failed(err error) error {
	var f *file.Error
	if errors.As(err, &f) {
		if f.Prev != nil {
			err = f.Prev
		} else {
			err = errors.New(describe(f.Message))
		}
	}
	text := p.text
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return fmt.Errorf("rule %q: %w", text, err)
}
