package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/racflow/racflow/sdk"
)

// This file documents stages from their descriptions, for people, programs and the reference: a stage's arguments with
// types, bounds and defaults, the columns that it reads, and an example of its block. It treats built-in and
// third-party stages alike.
//
// It checks nothing (package sdk does, by the same descriptions) and knows neither files nor
// processes.

// example returns a block that uses the stage: with the given lines of config or, without any, with
// the required arguments.
func example(s StageInfo, config string) string {
	label := map[sdk.Kind]string{
		sdk.KindEnrich: ` "notes"`, sdk.KindRerank: ` "best"`, sdk.KindPrompt: ` "ask"`, sdk.KindSample: ` "voter"`, sdk.KindElect: ` "answer"`,
	}[s.Kind] // no label: a knowledge has such a block only once
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

// value returns a valid value of the argument, as a file writes it.
func (a ArgumentInfo) value() string {
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

// hcl returns a default as a file would write it.
func hcl(raw json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && len(object) == 0 {
		return "{}"
	}
	return string(raw)
}

// ListStages prints stages with their purpose, a line each.
func ListStages(w io.Writer, stages []StageInfo) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var kind sdk.Kind
	for _, s := range stages {
		shown := ""
		if s.Kind != kind {
			kind, shown = s.Kind, string(s.Kind)
		}
		name := s.Use
		if s.Alias != "" {
			name += " or " + s.Alias
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", shown, name, s.Doc)
	}
	return tw.Flush()
}

// StageText prints a stage with its arguments.
func StageText(w io.Writer, s StageInfo) error {
	fmt.Fprintf(w, "%s %s\n%s\n", s.Kind, s.Use, s.Doc)
	if about := s.about(); about != "" {
		fmt.Fprintf(w, "It %s.\n", about)
	}
	for _, a := range s.Arguments {
		fmt.Fprintf(w, "\n  %s (%s)\n", a.Name, strings.Join(append([]string{string(a.Type)}, a.facts()...), "; "))
		fmt.Fprintf(w, "      %s\n", a.Doc)
		for _, inner := range a.Arguments {
			fmt.Fprintf(w, "      %s (%s): %s\n", inner.Name, strings.Join(append([]string{string(inner.Type)}, inner.facts()...), "; "), inner.Doc)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s", s.Example)
	return err
}

// about lists the stage's other name, the columns that it reads, whether it uses the network, and what a store
// attaches.
func (s StageInfo) about() string {
	var all []string
	if s.Alias != "" {
		all = append(all, "may be called "+s.Alias+", too")
	}
	if len(s.Reads) > 0 {
		all = append(all, "reads "+strings.Join(s.Reads, ", "))
	}
	if s.Network {
		all = append(all, "talks to other machines")
	}
	if s.Attaches != "" {
		all = append(all, "serves a collection that you already have where "+s.Attaches+" is given")
	}
	return strings.Join(all, ", and ")
}

// KindMarkdown writes a page about the stages of a kind.
func KindMarkdown(w io.Writer, kind sdk.Kind, stages []StageInfo) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Written by racflow stages --markdown %s; run make generate after a change of a stage. -->\n", kind)
	fmt.Fprintf(&b, "# Stages of the kind `%s`\n", kind)
	for _, s := range stages {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s", s.Use, s.Doc)
		if about := s.about(); about != "" {
			fmt.Fprintf(&b, " It %s.", about)
		}
		fmt.Fprintf(&b, "\n\n```hcl\n%s```\n", s.Example)
		if len(s.Arguments) == 0 {
			b.WriteString("\nIt has no arguments.\n")
			continue
		}
		b.WriteString("\n| argument | type | value | what it is |\n|---|---|---|---|\n")
		for _, a := range s.Arguments {
			row(&b, a.Name, a)
			for _, inner := range a.Arguments {
				row(&b, a.Name+"."+inner.Name, inner)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func row(b *strings.Builder, name string, a ArgumentInfo) {
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`, "<", `\<`).Replace
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, cell(string(a.Type)), cell(strings.Join(a.facts(), "; ")), cell(a.Doc))
}

// StageInfo describes a stage for people and programs. Its JSON form is stable: new versions only
// add fields.
type StageInfo struct {
	Kind      sdk.Kind       `json:"kind"`
	Use       string         `json:"use"` // as a file names it
	Alias     string         `json:"alias,omitempty"`
	Doc       string         `json:"doc"`
	Network   bool           `json:"network"`            // uses the network
	Reads     []string       `json:"reads"`              // columns of an item
	Attaches  string         `json:"attaches,omitempty"` // for a store: the argument that names another program's collection
	Arguments []ArgumentInfo `json:"arguments"`
	Example   string         `json:"example"` // a block of a pipeline file
}

// ArgumentInfo is an argument of a stage's config block.
type ArgumentInfo struct {
	Name          string           `json:"name"`
	Type          sdk.ArgumentType `json:"type"`
	Doc           string           `json:"doc"`
	Required      bool             `json:"required,omitempty"`
	Secret        bool             `json:"secret,omitempty"`
	AffectsOutput bool             `json:"affects_output"`
	Default       json.RawMessage  `json:"default,omitempty"`
	OneOf         []string         `json:"one_of,omitempty"`
	Min           *float64         `json:"min,omitempty"` // for a duration in seconds
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
	Arguments     []ArgumentInfo   `json:"arguments,omitempty"` // of a block

	bounds string // the bounds in words
}

// Explain describes a stage under the name by which a file uses it.
func Explain(use string, s sdk.Stage) StageInfo {
	out := StageInfo{Kind: s.Kind, Use: use, Alias: aliasOf(use), Doc: s.Doc, Network: s.Network, Reads: []string{}, Attaches: s.Attaches, Arguments: argumentsOf(s.Arguments)}
	for c := sdk.ColumnText; c <= sdk.ColumnSamples; c++ {
		if s.Reads.Has(c) {
			out.Reads = append(out.Reads, c.String())
		}
	}
	out.Example = example(out, s.Example)
	return out
}

// argumentsOf describes arguments, required ones first.
func argumentsOf(all []sdk.Argument) []ArgumentInfo {
	out := make([]ArgumentInfo, len(all))
	for i, a := range all {
		out[i] = ArgumentInfo{
			Name: a.Name, Type: a.Type, Doc: a.Doc, Required: a.Required, Secret: a.Secret, AffectsOutput: !a.OutputUnaffected && !a.Secret,
			Default: a.Default, OneOf: a.OneOf, Min: a.Range.Min, Max: a.Range.Max, MinExcluded: a.Range.MinExcluded,
			MaxExcluded: a.Range.MaxExcluded, MinLength: a.Length.Min, MaxLength: a.Length.Max, Pattern: a.Pattern, Example: a.Example,
			Conflicts: a.Conflicts, Requires: a.Requires, Since: a.Since, Arguments: argumentsOf(a.Fields), bounds: a.Bounds(),
		}
		if len(a.Fields) == 0 {
			out[i].Arguments = nil
		}
	}
	slices.SortStableFunc(out, func(a, b ArgumentInfo) int {
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

// facts lists the limits of a value in words: bounds, choices, relations; empty: none.
func (a ArgumentInfo) facts() []string {
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

// FactsOf returns the facts of an argument that package sdk describes; see ArgumentInfo.Facts.
func FactsOf(a sdk.Argument) []string { return argumentsOf([]sdk.Argument{a})[0].facts() }
