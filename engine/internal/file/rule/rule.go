package rule

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/sdk"
)

// Bind returns the filter for an item; nil: the filter selects every entry. If the filter does not
// read the item, every item gets the same pointer.
//
// A comparison with metadata that the item lacks selects nothing, and neither does its negation. If
// a value cannot be computed or compared, the error names the filter.
func (f *Filter) Bind(ctx context.Context, env *Env) (*sdk.Filter, error) {
	switch {
	case f == nil:
		return nil, nil
	case !f.reads["item"]:
		return f.bound, nil
	}
	e := f.begin(ctx, env)
	defer f.idle.Put(e)
	bound, err := f.bind(e)
	if err != nil {
		return nil, f.failed(err)
	}
	return bound, nil
}

func (f *Filter) bind(e *evaluation) (*sdk.Filter, error) {
	bound, err := e.part(&f.root, false)
	if err != nil || bound.Op == sdk.FilterAnd && len(bound.Parts) == 0 {
		return nil, err
	}
	return &bound, nil
}

// part binds a part, and simplifies what does not depend on the entry. As in any rule, it does not
// evaluate operands after an operand that decides the result. negated: the part is under an odd
// number of nots.
func (e *evaluation) part(p *part, negated bool) (sdk.Filter, error) {
	switch p.op {
	case sdk.FilterNot:
		inner, err := e.part(&p.parts[0], !negated)
		switch {
		case err != nil:
			return sdk.Filter{}, err
		case decided(inner):
			return truth(inner.Op == sdk.FilterOr), nil
		case inner.Op == sdk.FilterNot:
			return inner.Parts[0], nil
		}
		return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{inner}}, nil
	case sdk.FilterAnd, sdk.FilterOr:
		joined := sdk.Filter{Op: p.op}
		for i := range p.parts {
			inner, err := e.part(&p.parts[i], negated)
			switch {
			case err != nil:
				return sdk.Filter{}, err
			case inner.Op == p.op: // also a neutral operand: true in and, false in or
				joined.Parts = append(joined.Parts, inner.Parts...)
			case decided(inner):
				return inner, nil
			default:
				joined.Parts = append(joined.Parts, inner)
			}
		}
		if len(joined.Parts) == 1 {
			return joined.Parts[0], nil
		}
		return joined, nil
	}
	v := p.operand.value
	if p.operand.code != nil {
		var err error
		if v, err = e.vm.Run(p.operand.code, e.values); err != nil {
			return sdk.Filter{}, err
		}
	}
	return p.leaf(v, negated)
}

// leaf binds a comparison, or a value that decides alone. A missing value selects nothing, even
// under nots.
func (p *part) leaf(v any, negated bool) (sdk.Filter, error) {
	if v == nil {
		return truth(negated), nil
	}
	if p.op == 0 {
		holds, ok := v.(bool)
		if !ok {
			return sdk.Filter{}, fmt.Errorf("it gives a %T where true or false is needed", v)
		}
		return truth(holds), nil
	}
	given := []any{v}
	if p.list {
		var ok bool
		if given, ok = elements(v); !ok {
			return sdk.Filter{}, fmt.Errorf("the right side of in is a list, not %#v", v)
		}
	}
	f := sdk.Filter{Op: p.op, Field: p.field, Key: p.key}
	for _, g := range given {
		value, err := scalar(g)
		switch {
		case err != nil:
			return sdk.Filter{}, err
		case value != nil:
			f.Values = append(f.Values, value)
		case negated:
			return truth(true), nil
		}
	}
	if len(f.Values) == 0 {
		return truth(false), nil
	}
	return f, f.Check()
}

// scalar converts a value to a type that filters use.
func scalar(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, float64:
		return v, nil
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return float64(r.Int()), nil
	case r.CanFloat():
		return r.Float(), nil
	case r.Kind() == reflect.Slice:
		return nil, errors.New("a field is one value, this is a list; for one of several, write in")
	}
	return nil, fmt.Errorf("a field is a text, a number or a bool; this is a %T", v)
}

func elements(v any) ([]any, bool) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return nil, false
	}
	list := make([]any, r.Len())
	for i := range list {
		list[i] = r.Index(i).Interface()
	}
	return list, true
}

func truth(holds bool) sdk.Filter {
	if holds {
		return sdk.Filter{Op: sdk.FilterAnd}
	}
	return sdk.Filter{Op: sdk.FilterOr}
}

// decided reports whether a filter does not depend on the entry.
func decided(f sdk.Filter) bool {
	return (f.Op == sdk.FilterAnd || f.Op == sdk.FilterOr) && len(f.Parts) == 0
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// evaluation is the state of one run of a rule. Rules store idle evaluations for reuse.
type evaluation struct {
	vm     vm.VM
	clock  clock
	values map[string]any
}

// Eval evaluates the rule on an item. Errors name the rule.
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

// begin prepares an evaluation on an item, with a new clock.
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

// failed adds the rule's text to an error.
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

// Kind identifies the argument that contains a rule. It decides which names the rule sees.
type Kind uint8

// The kinds of rules.
const (
	When        Kind = iota + 1 // of a stage: does it work on this item?
	Keep                        // of retrieve: does this candidate stay?
	Accept                      // of sample and elect: may this answer count?
	Flag                        // of elect: should a person look at this verdict?
	Fallback                    // of a fallback block: does it take over this item?
	Filtering                   // filter of retrieve: is this entry searched? See CompileFilter
	Whole                       // whole of retrieve: does all of the knowledge replace a search?
	Expectation                 // rule of expect: are the measured figures good enough?
)

// Scope describes the blocks above a rule in the file: a rule may not read a name that nothing
// above writes.
type Scope struct {
	Candidates bool                 // a retrieve stage stands above (or this is its own rule)
	Voters     bool                 // a sample stage stands above (or this is an elect's rule)
	Election   bool                 // Expectation: the pipeline has an elect stage
	Vars       map[string]cty.Value // var.x, already evaluated
	Texts      bool                 // Filtering: all metadata of the entries are texts
}

// Env holds what a rule sees of one item. The engine fills the fields that the rule Reads and may
// leave the others empty. Only one goroutine may use an Env at a time. Item.Candidates must not
// change once a rule has seen them; Candidate, Rank and Answer may change.
type Env struct {
	Item            sdk.Item // id, text, meta as item.id ...; Candidates as candidates
	Labels          *LabelSet
	CandidateLabels []string
	Margin          float64 // of the mean ballot of the voters so far: best minus second
	Agreement       float64 // best share in that ballot
	Votes           []Vote
	Candidate       *sdk.Candidate // Keep: id, text, label, meta, score, dense, lexical
	Rank            int            // Keep: 1 is the best
	Answer          string         // Accept: the answer in question; Flag: the verdict's
	Confidence      float64        // Flag: the verdict's; its agreement if the election estimates no confidence
	Unknown         float64        // Flag: the verdict's; 0 if the election does not estimate it
	Failed          bool           // Fallback: the stage failed on this item
	Error           string         // Fallback: why it failed
	Knowledge       Extent         // Whole: the size of the knowledge
	Measured        Measured       // Expectation: the values of its figures

	views  []*candidate   // views of Item.Candidates, made when a rule first reads them
	viewed *sdk.Candidate // the first candidate from which views was made
}

// Extent is the size of a knowledge.
type Extent struct {
	Tokens  int `expr:"tokens"` // rough count, of all texts and their contexts
	Entries int `expr:"entries"`
}

// Vote is one answer of one voter, as rules see it.
type Vote struct {
	Voter    string  `expr:"voter"`
	Answer   string  `expr:"answer"`
	Weight   float64 `expr:"weight"`
	Accepted bool    `expr:"accepted"`
}
