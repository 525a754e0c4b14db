package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/scaffold"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/pipelines"
)

// completions gives every verb below c what a shell offers for its arguments and flags. What
// an argument is, the verb's usage says: FILE, RUN, ID, KIND or NAME.
func completions(c *cobra.Command) {
	if c.ValidArgsFunction == nil && c.ValidArgs == nil {
		c.ValidArgsFunction = arguments(c)
	}
	for name, complete := range map[string]cobra.CompletionFunc{
		"var": completeVariable, "pipeline": completePipeline, "column": completeColumn, "knowledge-column": completeColumn, "format": completeFormat,
		"var-file": cobra.FixedCompletions([]string{"hcl", "tfvars"}, cobra.ShellCompDirectiveFilterFileExt),
		"state":    cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"plugins":  cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"baseline": completeRun, "again": completeRun,
		"from":    cobra.FixedCompletions([]string{model.FromHub, model.FromPackage}, cobra.ShellCompDirectiveDefault),
		"example": cobra.FixedCompletions(scaffold.Examples(pipelines.Files), cobra.ShellCompDirectiveNoFileComp),
	} {
		if c.Flags().Lookup(name) != nil {
			if err := c.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // the flag is there, and has none yet
			}
		}
	}
	for _, verb := range c.Commands() {
		completions(verb)
	}
}

// arguments is what completes the arguments of a verb; nil: files.
func arguments(c *cobra.Command) cobra.CompletionFunc {
	_, usage, _ := strings.Cut(c.Use, " ")
	word, _, _ := strings.Cut(usage, " ")
	switch strings.Trim(word, "[].") {
	case "FILE":
		return cobra.FixedCompletions([]string{"hcl"}, cobra.ShellCompDirectiveFilterFileExt)
	case "RUN", "ID", "A":
		return completeRun
	case "KIND", "KIND[/NAME":
		var kinds []string
		for _, k := range catalog.Kinds {
			kinds = append(kinds, string(k))
		}
		return cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp)
	}
	switch c.CommandPath() {
	case "racflow model pull":
		var names []string
		for _, m := range model.Known() {
			names = append(names, cobra.CompletionWithDesc(m.Name, m.Title))
		}
		return cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault) // or a folder
	case "racflow model verify", "racflow model remove":
		return func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			names, _ := model.Installed() // a shell has no use for the error
			return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(given, n) }), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if usage == "" {
		return cobra.NoFileCompletions
	}
	return nil
}

// named are the blocks of a type in the pipeline file on the command line, by their names. It reads syntax alone, so a
// shell can ask it at every key; what cannot be read has none.
func named(args []string, typ string) (blocks []*hclsyntax.Block) {
	var path string
	if i := slices.IndexFunc(args, func(a string) bool { return filepath.Ext(a) == ".hcl" }); i >= 0 {
		path = args[i]
	} else if path, _ = usualFile("."); path == "" {
		return nil
	}
	src, err := bounded.ReadAny(path, bounded.MaxSource)
	if err != nil {
		return nil
	}
	file, _ := bounded.Parse(src, path)
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	for _, b := range body.Blocks {
		if b.Type == typ && len(b.Labels) > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// completeVariable completes the NAME of NAME=VALUE, with what the file says of it; a VALUE may be a path.
func completeVariable(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(toComplete, "=") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var all []string
	for _, b := range named(args, "variable") {
		doc := ""
		if a := b.Body.Attributes["description"]; a != nil {
			if value, diags := a.Expr.Value(nil); !diags.HasErrors() && value.Type() == cty.String && value.IsKnown() && !value.IsNull() {
				doc = value.AsString()
			}
		}
		all = append(all, cobra.CompletionWithDesc(b.Labels[0]+"=", doc))
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func completePipeline(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, b := range named(args, "pipeline") {
		all = append(all, b.Labels[0])
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeRun completes the runs of the state folder, the newest first.
func completeRun(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	state := stateDir
	if f := c.Flags().Lookup("state"); f != nil {
		state = f.Value.String()
	}
	all := []string{engine.Newest}
	list := journal.RunsOf(state).List()
	for _, r := range slices.Backward(list) {
		if !slices.Contains(args, r.ID) {
			all = append(all, cobra.CompletionWithDesc(r.ID, string(r.State)+", "+filepath.Base(r.Manifest.File)))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func completeColumn(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"text=", "label=", "id="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeFormat completes --format, whose usage names the formats before anything in brackets.
func completeFormat(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	usage, _, _ := strings.Cut(c.Flags().Lookup("format").Usage, " (")
	var all []string
	for _, word := range strings.FieldsFunc(usage, func(r rune) bool { return r == ' ' || r == ',' }) {
		if slices.Contains([]string{"jsonl", "json", "tsv", "csv", "parquet", "table", "text"}, word) {
			all = append(all, word)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
