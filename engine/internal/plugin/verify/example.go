package verify

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/sdk"
)

// example returns a config that a stage should accept according to its description.
func example(s sdk.Stage) ([]byte, error) {
	values := map[string]json.RawMessage{}
	if err := fromHCL(s.Example, values); err != nil {
		return nil, fmt.Errorf("the example of the description: %w; write a config into %s: {%q: {...}}", err, FileName, nameOf(s))
	}
	for _, a := range s.Arguments {
		text := a.Example
		if text == "" && len(a.OneOf) > 0 {
			text = a.OneOf[0]
		}
		if text == "" && a.Type == sdk.TypeString {
			text = "example"
		}
		if !a.Required || values[a.Name] != nil || text == "" {
			continue
		}
		raw := json.RawMessage(text)
		if a.Type == sdk.TypeString || a.Type == sdk.TypePath || !json.Valid(raw) {
			raw, _ = json.Marshal(text) // a string always encodes
		}
		values[a.Name] = raw
	}
	return json.Marshal(values)
}

// fromHCL adds the values in lines of a config block. It omits non-literal values, such as secrets.
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
