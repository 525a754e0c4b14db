package eval

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
)

// Options say what is measured: the pipeline as it is, or variants of it by Sweep or
// by Ablate.
type Options struct {
	Cuts   []int    // lengths that recall is measured at; nil: Cuts
	Sweep  []Target // every combination of their values
	Ablate []string // whole, and without each of these Parts
	Errors int      // mistakes that Report.Errors has at most
	// Results is given the results, in the order of the input; nil: nobody wants them. It
	// goes with one pipeline, without Sweep and Ablate.
	Results func([]outcome.Result) error
}

// Target is an argument with the values that it is given in turn.
type Target struct {
	Name   string // STAGE.ARGUMENT, BLOCK.STAGE.ARGUMENT or var.NAME
	Values []string
}

// Variant is a pipeline with some of its arguments set.
type Variant struct {
	Values []string // that tell it from the others
	Name   string   // for people; empty: the pipeline as it is
	Set    []pipeline.Override
}

// Comparison is what variants are worth.
type Comparison struct {
	Targets []string `json:"targets"`
	Rows    []Row    `json:"rows"`
}

// Row is what a variant reached.
type Row struct {
	Set    []string `json:"set"` // values, in the order of the targets
	Report Report   `json:"report"`
}

// Targets name the values of the variants; nil: there is one, without values.
func (o Options) Targets() []string {
	if len(o.Ablate) > 0 {
		return []string{"WITHOUT"}
	}
	var names []string
	for _, t := range o.Sweep {
		names = append(names, t.Name)
	}
	return names
}

// First sets the first value of every target, so that a file can be opened whose
// variables Sweep alone gives values.
func (o Options) First() []pipeline.Override {
	var set []pipeline.Override
	for _, t := range o.Sweep {
		set = append(set, pipeline.Override{Target: t.Name, Value: t.Values[0]})
	}
	return set
}

// Variants are those of a pipeline that are measured. The values of the last target
// change fastest. An error is a *PartError.
func (o Options) Variants(p *pipeline.Pipeline) ([]Variant, error) {
	if len(o.Ablate) > 0 {
		return without(p, o.Ablate)
	}
	all := []Variant{{}}
	for _, t := range o.Sweep {
		var longer []Variant
		for _, v := range all {
			for _, value := range t.Values {
				set := pipeline.Override{Target: t.Name, Value: value}
				longer = append(longer, Variant{
					Values: append(slices.Clip(v.Values), value), Set: append(slices.Clip(v.Set), set),
					Name: strings.TrimSpace(v.Name + " " + set.String()),
				})
			}
		}
		all = longer
	}
	return all, nil
}
