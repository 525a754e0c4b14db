package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/scaffold"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/pipelines"
)

// completions gives every verb below c the shell completions of its arguments and flags. The verb's
// usage says what an argument is: FILE, RUN, ID, KIND or NAME.
func completions(c *cobra.Command) {
	if c.ValidArgsFunction == nil && c.ValidArgs == nil {
		c.ValidArgsFunction = arguments(c)
	}
	for name, complete := range map[string]cobra.CompletionFunc{
		"var-file": cobra.FixedCompletions([]string{"hcl", "tfvars"}, cobra.ShellCompDirectiveFilterFileExt),
		"state":    cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"plugins":  cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"baseline": completeRun, "again": completeRun,
		"from":    cobra.FixedCompletions([]string{model.FromHub, model.FromPackage}, cobra.ShellCompDirectiveDefault),
		"example": cobra.FixedCompletions(scaffold.Examples(pipelines.Files), cobra.ShellCompDirectiveNoFileComp),
	} {
		if c.Flags().Lookup(name) != nil {
			if err := c.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // the flag exists, and has no completion yet
			}
		}
	}
	for _, verb := range c.Commands() {
		completions(verb)
	}
}

// arguments returns the completion function of a verb's arguments; nil: files.
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
			names, _ := model.Installed() // a shell cannot show the error
			return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(given, n) }), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if usage == "" {
		return cobra.NoFileCompletions
	}
	return nil
}

// completeRun completes the IDs of runs in the state folder, the newest first.
func completeRun(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	state := stateDir
	if f := c.Flags().Lookup("state"); f != nil {
		state = f.Value.String()
	}
	all := []string{workspace.Newest}
	list := journal.RunsOf(state).List()
	for _, r := range slices.Backward(list) {
		if !slices.Contains(args, r.ID) {
			all = append(all, cobra.CompletionWithDesc(r.ID, string(r.State)+", "+filepath.Base(r.Manifest.File)))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
