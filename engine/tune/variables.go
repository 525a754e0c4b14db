package tune

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/pipeline"
)

// Found are values of the election's arguments, by their names: weights of voters and,
// where the election learns, what else it has resolved.
type Found map[string]any

// weights are those of the voters; nil: none were found.
func (f Found) weights(argument string) map[string]float64 {
	var all map[string]float64
	if raw, err := json.Marshal(f[argument]); err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// Weighed returns the election stage of a pipeline with what was found in place of what
// the file gives; nil: with neither. An argument for which the file has no variable keeps
// its value, because nobody could write what was found.
func (s *Subject) Weighed(elect *pipeline.Stage, found Found) (*pipeline.Stage, error) {
	config := map[string]json.RawMessage{}
	if len(elect.Config.Open) > 0 {
		if err := json.Unmarshal(elect.Config.Open, &config); err != nil {
			return nil, err
		}
	}
	for name := range s.arguments() {
		delete(config, name)
		if value, ok := found[name]; ok {
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			config[name] = raw
		}
	}
	weighed := *elect
	var err error
	weighed.Config.Open, err = json.Marshal(config)
	return &weighed, err
}

// arguments are those of the election for which values are found, with their variables.
func (s *Subject) arguments() map[string]string {
	all := map[string]string{s.Argument: s.Weights}
	maps.Copy(all, s.More)
	return all
}

// Assignment is a variable with a value, as HCL or bare text.
type Assignment struct{ Variable, Value string }

// Variables is a file of variables with what was found, as -var-file reads it: the values
// that are kept, and the outcome. input is the name of the file that all of it was found
// on, digest its SHA-256, and items how many of its rows were scored.
func (s *Subject) Variables(o Outcome, kept []Assignment, items int, input, digest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by racflow tune, for -var-file. Measure on other rows than these:\n%s%s, %d items of %q\n", mark, digest, items, input)
	for _, a := range kept {
		fmt.Fprintf(&b, "%s = %s\n", a.Variable, a.hcl())
	}
	if s.Variable != "" {
		fmt.Fprintf(&b, "%s = %s\n", s.Variable, format(o.Threshold))
	}
	if o.Found != nil {
		s.writeFound(&b, o.Found)
	}
	return string(bounded.Format([]byte(b.String())))
}

// writeFound writes values of the election's arguments that are variables.
func (s *Subject) writeFound(b *strings.Builder, found Found) {
	weights := found.weights(s.Argument)
	fmt.Fprintf(b, "%s = {\n", s.Weights)
	for _, v := range slices.Sorted(slices.Values(s.Voters)) {
		if weight, ok := weights[v]; ok {
			fmt.Fprintf(b, "%s = %s\n", v, format(weight))
		}
	}
	fmt.Fprintf(b, "}\n")
	for _, name := range slices.Sorted(maps.Keys(s.More)) {
		if value, ok := found[name]; ok {
			fmt.Fprintf(b, "%s = %s\n", s.More[name], hclOf(value))
		}
	}
}

// hcl is the value as an expression: what is none is a text.
func (a Assignment) hcl() string {
	e, diags := bounded.ParseExpression([]byte(a.Value), a.Variable)
	if diags.HasErrors() || len(e.Variables()) > 0 {
		return hclOf(a.Value)
	}
	return a.Value
}

func format(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// hclOf is a text, number or bool as HCL; what else an argument may be, as JSON, which is
// HCL but for templates.
func hclOf(value any) string {
	if text, ok := value.(string); ok {
		return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(raw)
}
