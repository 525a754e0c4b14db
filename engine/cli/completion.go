package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
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

// fileOf reads the pipeline file that stands on the command line.
func fileOf(args []string) *File {
	i := slices.IndexFunc(args, func(a string) bool { return filepath.Ext(a) == ".hcl" })
	if i < 0 {
		path, err := usualFile(".")
		if err != nil {
			return &File{}
		}
		i, args = 0, []string{path}
	}
	known, err := catalog.New(context.Background(), nil, builtin.Stages(), nil) // without a host it starts nothing
	if err != nil {
		return &File{}
	}
	return Read(args[i], known)
}

// completeVariable completes NAME=VALUE.
func completeVariable(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var all []string
	file, stop := fileOf(args), cobra.ShellCompDirectiveNoFileComp
	name, _, named := strings.Cut(toComplete, "=")
	if !named {
		for _, v := range file.Variables {
			all = append(all, cobra.CompletionWithDesc(v.Name+"=", v.Doc))
		}
		return all, stop | cobra.ShellCompDirectiveNoSpace
	}
	v := file.Variable(name)
	switch {
	case v == nil:
	case v.Path && !v.Model:
		return nil, cobra.ShellCompDirectiveDefault
	default:
		if v.Model { // a folder, or one of these
			names, _ := model.Installed() // a shell has no use for the error
			v.Values, stop = append(v.Values, names...), cobra.ShellCompDirectiveDefault
		}
		for _, value := range v.Values {
			all = append(all, name+"="+value)
		}
	}
	return all, stop
}

func completePipeline(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return fileOf(args).Pipelines, cobra.ShellCompDirectiveNoFileComp
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
