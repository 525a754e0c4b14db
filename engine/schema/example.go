package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/racflow/racflow/sdk"
)

// example is a block that uses the stage: with the lines of config that it gives or,
// where it gives none, with the arguments that it cannot do without.
func example(s Stage, config string) string {
	label := map[sdk.Kind]string{
		sdk.KindEnrich: ` "notes"`, sdk.KindRerank: ` "best"`, sdk.KindPrompt: ` "ask"`, sdk.KindSample: ` "voter"`, sdk.KindElect: ` "answer"`,
	}[s.Kind] // blocks of a knowledge that stand there once have none
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s {\nuse = %q\n", s.Kind, label, s.Use)
	if config == "" {
		for _, a := range s.Arguments {
			if a.Required {
				config += fmt.Sprintf("%s = %s\n", a.Name, a.value())
			}
		}
	}
	if config != "" {
		b.WriteString("config {\n" + strings.TrimSpace(config) + "\n}\n")
	}
	b.WriteString("}\n")
	return string(hclwrite.Format([]byte(b.String())))
}

// value is one that the argument takes, as a file writes it.
func (a Argument) value() string {
	switch {
	case a.Secret:
		return fmt.Sprintf("secret(%q)", strings.ToUpper(a.Name))
	case a.Example != "" && a.Type != sdk.TypeString && a.Type != sdk.TypePath && a.Type != sdk.TypeDuration:
		return a.Example
	case a.Example != "":
		return strconv.Quote(a.Example)
	case len(a.OneOf) > 0:
		return strconv.Quote(a.OneOf[0])
	case a.Default != nil:
		return hcl(a.Default)
	}
	return map[sdk.ArgumentType]string{
		sdk.TypeInt: "1", sdk.TypeFloat: "1", sdk.TypeBool: "true", sdk.TypeDuration: `"10s"`, sdk.TypeStringList: `["..."]`,
		sdk.TypeNumberList: "[1]", sdk.TypeStringMap: `{ name = "..." }`, sdk.TypeNumberMap: "{ name = 1 }",
		sdk.TypeListMap: `{ name = ["..."] }`, sdk.TypeString: `"..."`, sdk.TypePath: `"..."`, sdk.TypeBlock: "{}",
	}[a.Type]
}

// hcl writes a default as a file would.
func hcl(raw json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && len(object) == 0 {
		return "{}"
	}
	return string(raw)
}
