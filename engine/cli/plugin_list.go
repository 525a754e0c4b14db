package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/catalog"
	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/terminal"
)

func newPluginList() *cobra.Command {
	flags := fileFlags{state: stateDir}
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [FILE]",
		Short: "List the plugins that a pipeline file requires, or those on this machine",
		Long: `List the plugins that a pipeline file requires: which program stands for each, by
whose word it would be started, and whether it may be. Without a file, list those
that are being developed and those that are installed.

By whose word: locked is .racflow.lock.hcl beside the file, given a folder of
--plugins or RACFLOW_PLUGINS, linked racflow plugin install --dev. No program is
started: what a plugin is follows from its files alone. The exit code is 1 where
one may not be started.`,
		Example: `  racflow plugin list
  racflow plugin list pipeline.hcl
  racflow plugin list --json pipeline.hcl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := flags.open(c, nil)
			if err != nil {
				return err
			}
			defer a.close()
			var listed []plugged
			if len(args) == 0 {
				listed, err = onMachine(a.Catalog())
			} else {
				var required []catalog.Plugin
				required, err = ofFile(c.Context(), a.Catalog(), args[0])
				listed = pluggedIn(required)
			}
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(c.OutOrStdout(), map[string]any{"plugins": listed})
			} else {
				err = writePlugins(c.OutOrStdout(), listed)
			}
			if err == nil && slices.ContainsFunc(listed, func(p plugged) bool { return p.Error != "" }) {
				err = &exitError{code: exitFailed}
			}
			return err
		},
	}
	flags.registerPlugins(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return c
}

// plugged is a plugin as it is listed.
type plugged struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	By      string `json:"by"` // whose word: "locked", "given" or "linked"; "installed": no file was asked about; "": nobody's
	Source  string `json:"source,omitempty"`
	Signer  string `json:"signer,omitempty"`
	Program string `json:"program,omitempty"`
	Hash    string `json:"hash,omitempty"`
	Error   string `json:"error,omitempty"` // why it may not be started
}

// ofFile lists the plugins that a file requires and those in development.
func ofFile(ctx context.Context, known *catalog.Catalog, path string) ([]catalog.Plugin, error) {
	src, err := bounded.Read(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	required, diags := plugin.Requirements(path, src)
	if diags.HasErrors() {
		return nil, &engine.DiagnosticsError{Diagnostics: diags, Sources: map[string]*hcl.File{path: {Bytes: src}}}
	}
	return known.For(filepath.Dir(path), required).Plugins(), nil
}

// onMachine lists the plugins in development and the installed ones.
func onMachine(known *catalog.Catalog) ([]plugged, error) {
	installed, err := known.Installed()
	listed := pluggedIn(installed)
	for i := range listed {
		listed[i].By = "installed"
	}
	return slices.Concat(pluggedIn(known.Plugins()), listed), err
}

func pluggedIn(all []catalog.Plugin) []plugged {
	listed := []plugged{}
	for _, p := range all {
		one := plugged{Name: p.Name, Version: p.Version, By: string(p.Origin), Source: p.Source, Signer: p.Signer, Program: p.Path, Hash: p.Hash}
		if p.Err != nil {
			one.Error = message(p.Err)
		}
		listed = append(listed, one)
	}
	return listed
}

// writePlugins writes a table, and below it why some may not be started.
func writePlugins(out io.Writer, listed []plugged) error {
	tw, why := terminal.NewTable(out), ""
	fmt.Fprintln(tw, "PLUGIN\tVERSION\tBY\tSOURCE\tSIGNED BY\tSTATE\tPROGRAM")
	for _, p := range listed {
		state := "ready"
		if p.Error != "" {
			state = "not usable"
			why += fmt.Sprintf("\n%s: %s\n", terminal.Line(p.Name), p.Error)
		}
		row := []string{p.Name, p.Version, p.By, p.Source, p.Signer, state, p.Program}
		for i, cell := range row {
			row[i] = cmp.Or(terminal.Line(cell), "-")
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, why)
	return err
}
