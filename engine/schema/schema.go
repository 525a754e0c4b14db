package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Stage is what people and programs get to know of a stage. Its JSON form is kept
// from version to version; fields are only ever added.
type Stage struct {
	Kind      sdk.Kind   `json:"kind"`
	Use       string     `json:"use"` // as a file names it
	Doc       string     `json:"doc"`
	Network   bool       `json:"network"`            // it talks to other machines
	Reads     []string   `json:"reads"`              // columns of an item
	Attaches  string     `json:"attaches,omitempty"` // the argument of a store that names a collection which somebody else makes
	Arguments []Argument `json:"arguments"`
	Example   string     `json:"example"` // a block of a pipeline file
}

// Argument is an argument of a stage's config block.
type Argument struct {
	Name          string           `json:"name"`
	Type          sdk.ArgumentType `json:"type"`
	Doc           string           `json:"doc"`
	Required      bool             `json:"required,omitempty"`
	Secret        bool             `json:"secret,omitempty"`
	AffectsOutput bool             `json:"affects_output"`
	Default       json.RawMessage  `json:"default,omitempty"`
	OneOf         []string         `json:"one_of,omitempty"`
	Min           *float64         `json:"min,omitempty"` // of a duration in seconds
	Max           *float64         `json:"max,omitempty"`
	MinExcluded   bool             `json:"min_excluded,omitempty"`
	MaxExcluded   bool             `json:"max_excluded,omitempty"`
	MinLength     int              `json:"min_length,omitempty"` // characters of a string, elements of a list or map
	MaxLength     int              `json:"max_length,omitempty"`
	Pattern       string           `json:"pattern,omitempty"` // RE2
	Example       string           `json:"example,omitempty"`
	Conflicts     []string         `json:"conflicts,omitempty"`
	Requires      []string         `json:"requires,omitempty"`
	Since         string           `json:"since,omitempty"`
	Arguments     []Argument       `json:"arguments,omitempty"` // of a block

	bounds string // in words
}

// Of explains a stage that a file uses by a name.
func Of(use string, s sdk.Stage) Stage {
	out := Stage{Kind: s.Kind, Use: use, Doc: s.Doc, Network: s.Network, Reads: []string{}, Attaches: s.Attaches, Arguments: argumentsOf(s.Arguments)}
	for c := sdk.ColumnText; c <= sdk.ColumnSamples; c++ {
		if s.Reads.Has(c) {
			out.Reads = append(out.Reads, c.String())
		}
	}
	out.Example = example(out, s.Example)
	return out
}

// argumentsOf are the arguments, required ones first.
func argumentsOf(all []sdk.Argument) []Argument {
	out := make([]Argument, len(all))
	for i, a := range all {
		out[i] = Argument{
			Name: a.Name, Type: a.Type, Doc: a.Doc, Required: a.Required, Secret: a.Secret, AffectsOutput: !a.OutputUnaffected && !a.Secret,
			Default: a.Default, OneOf: a.OneOf, Min: a.Range.Min, Max: a.Range.Max, MinExcluded: a.Range.MinExcluded,
			MaxExcluded: a.Range.MaxExcluded, MinLength: a.Length.Min, MaxLength: a.Length.Max, Pattern: a.Pattern, Example: a.Example,
			Conflicts: a.Conflicts, Requires: a.Requires, Since: a.Since, Arguments: argumentsOf(a.Fields), bounds: a.Bounds(),
		}
		if len(a.Fields) == 0 {
			out[i].Arguments = nil
		}
	}
	slices.SortStableFunc(out, func(a, b Argument) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return out
}

// Facts are what limits a value, in words: bounds, choices, relations; empty: nothing.
func (a Argument) Facts() []string {
	var all []string
	if a.Required {
		all = append(all, "required")
	}
	if a.Default != nil {
		all = append(all, "default "+hcl(a.Default))
	} else if a.Type == sdk.TypeBool {
		all = append(all, "default false")
	}
	if len(a.OneOf) > 0 {
		all = append(all, "one of "+strings.Join(a.OneOf, ", "))
	}
	if a.bounds != "" {
		all = append(all, a.bounds)
	}
	if a.Example != "" {
		all = append(all, "such as "+a.Example)
	}
	if len(a.Conflicts) > 0 {
		all = append(all, "not beside "+strings.Join(a.Conflicts, ", "))
	}
	if len(a.Requires) > 0 {
		all = append(all, "only with "+strings.Join(a.Requires, ", "))
	}
	if a.Secret {
		all = append(all, `secret: write secret("...")`)
	}
	if !a.AffectsOutput && !a.Secret {
		all = append(all, "does not change results")
	}
	if a.Since != "" {
		all = append(all, "since "+a.Since)
	}
	return all
}

// Facts are those of an argument as package sdk describes it; see Argument.Facts.
func Facts(a sdk.Argument) []string { return argumentsOf([]sdk.Argument{a})[0].Facts() }
