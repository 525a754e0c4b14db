package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/sdk"
)

// example is a config that a stage should accept, by its own description.
func example(s sdk.Stage) ([]byte, error) {
	values := map[string]json.RawMessage{}
	if err := fromHCL(s.Example, values); err != nil {
		return nil, fmt.Errorf("the example of the description: %w; write a config into %s: {%q: {...}}", err, FileName, nameOf(s))
	}
	for _, a := range s.Arguments {
		if a.Required && values[a.Name] == nil {
			raw, err := json.Marshal(plain(a))
			if err != nil {
				return nil, err
			}
			values[a.Name] = raw
		}
	}
	return json.Marshal(values)
}

// fromHCL adds the values of lines of a config block. A value that is no literal, such as a
// secret, is left out.
func fromHCL(lines string, to map[string]json.RawMessage) error {
	file, diagnostics := hclsyntax.ParseConfig([]byte(lines), "example", hcl.InitialPos)
	if diagnostics.HasErrors() {
		return diagnostics
	}
	for name, a := range file.Body.(*hclsyntax.Body).Attributes {
		value, diagnostics := a.Expr.Value(nil)
		if diagnostics.HasErrors() {
			continue
		}
		raw, err := ctyjson.Marshal(value, value.Type())
		if err != nil {
			return err
		}
		to[name] = raw
	}
	return nil
}

// plain is a value that an argument takes: its example, its first choice, its least, or a word.
func plain(a sdk.Argument) any {
	word, number := "example", 1.0
	switch {
	case a.Example != "":
		word = a.Example
	case len(a.OneOf) > 0:
		word = a.OneOf[0]
	case a.Length.Max > 0 && a.Length.Max < len(word):
		word = word[:a.Length.Max]
	case a.Length.Min > len(word) && a.Type == sdk.TypeString:
		word = strings.Repeat("e", a.Length.Min)
	}
	switch low, high := a.Range.Min, a.Range.Max; {
	case low != nil && high != nil:
		number = (*low + *high) / 2
	case low != nil && *low >= number:
		number = *low + 1
	case high != nil && *high <= number:
		number = *high - 1
	}
	var given any
	if json.Unmarshal([]byte(a.Example), &given) == nil {
		if _, isText := given.(string); !isText && a.Type != sdk.TypeString && a.Type != sdk.TypePath {
			return given
		}
	}
	switch a.Type {
	case sdk.TypeInt:
		return int(number)
	case sdk.TypeFloat:
		return number
	case sdk.TypeBool:
		return true
	case sdk.TypeDuration:
		if a.Example != "" {
			return a.Example
		}
		return fmt.Sprint(number, "s")
	case sdk.TypeStringList:
		return []string{word}
	case sdk.TypeNumberList:
		return []float64{number}
	case sdk.TypeStringMap:
		return map[string]string{"example": word}
	case sdk.TypeNumberMap:
		return map[string]float64{"example": number}
	case sdk.TypeListMap:
		return map[string][]string{"example": {word}}
	case sdk.TypeBlock:
		inner := map[string]any{}
		for _, f := range a.Fields {
			if f.Required {
				inner[f.Name] = plain(f)
			}
		}
		return inner
	}
	return word
}
