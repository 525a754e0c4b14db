package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

const pluginLong = `To write one:

    racflow plugin new rerank mine
    cd mine
    racflow plugin verify .
    racflow plugin install . --dev
    racflow run pipeline.hcl

A pipeline file says where plugins come from and what they may reach, and uses their stages as "mine/STAGE":

    required_plugins {
      mine = {
        source  = "ghcr.io/acme/racflow-plugin-mine"
        version = "~> 1.2"
        network = ["api.example.com:443"]   # without it none
      }
    }

The lock beside it, .racflow.lock.hcl, holds the hash of every program: commit it. Only what was hashed is
started. A plugin in development (installed with --dev, or in a folder of --plugins or RACFLOW_PLUGINS) goes before
the lock, and every run says so.`

func newPlugin() *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Write, check, install and list plugins of third parties",
		Long:  pluginLong,
	}
	c.AddCommand(
		newPluginNew(), newPluginVerify(), newPluginInstall(),
		newPluginInit(), newPluginList(), newPluginDescribe(), newPluginRemove(),
		newPluginPublish(),
	)
	return c
}

const pluginDescribeLong = `Show a plugin's stages with their arguments, its platforms and who signed it.

A SOURCE is as in a pipeline file, a registry's repository or a folder with an OCI layout; the
VERSION is one, or a constraint such as '~> 1.2'. Only the description is read. A NAME is that of an
installed plugin. In neither case is its program started.`

func newPluginDescribe() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "describe SOURCE[@VERSION] | NAME",
		Short: "Show what a plugin offers, without downloading or starting it",
		Long:  pluginDescribeLong,
		Example: `  racflow plugin describe ghcr.io/acme/racflow-plugin-mine
  racflow plugin describe 'ghcr.io/acme/racflow-plugin-mine@~> 1.2'
  racflow plugin describe mine`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var all []describedJSON
			var err error
			if pluginName.MatchString(args[0]) {
				all, err = describeInstalled(args[0])
			} else {
				all, err = describeSource(c.Context(), args[0])
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), map[string]any{"plugins": all})
			}
			for i, d := range all {
				if i > 0 {
					fmt.Fprintln(c.OutOrStdout())
				}
				if err := d.write(c.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print descriptions as JSON")
	return c
}

var (
	pluginName    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	sourceVersion = regexp.MustCompile(`^(.+)@\s*([~<>=!]*\s*\d.*)$`)
)

// cutVersion splits SOURCE@VERSION.
func cutVersion(text string) (source, version string) {
	if m := sourceVersion.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return text, ""
}

// describedJSON is the description of a plugin; new fields may be added to its JSON form, but none is
// removed.
type describedJSON struct {
	Name      string              `json:"name"`
	Version   string              `json:"version"`
	Protocol  int                 `json:"protocol"`
	Source    string              `json:"source,omitempty"`
	Digest    string              `json:"digest,omitempty"`
	Hash      string              `json:"hash,omitempty"` // of an installed program
	Signers   []string            `json:"signers,omitempty"`
	Unsigned  string              `json:"unsigned,omitempty"` // why no signature holds
	Platforms []platformJSON      `json:"platforms,omitempty"`
	Stages    []catalog.StageInfo `json:"stages"`
}

type platformJSON struct {
	Platform string `json:"platform"`
	Hash     string `json:"hash"`
	Size     int64  `json:"size"` // of the download, in bytes
}

func describeSource(ctx context.Context, text string) ([]describedJSON, error) {
	source, version := cutVersion(text)
	d, err := registry.Describe(ctx, source, version, ".")
	if err != nil {
		return nil, err
	}
	out := describedJSON{Name: d.Plugin.Name, Version: d.Version, Protocol: d.Protocol, Source: source, Digest: d.Digest, Signers: d.Signers, Stages: []catalog.StageInfo{}}
	if d.Unsigned != nil {
		out.Unsigned = d.Unsigned.Error()
	}
	for _, b := range d.Builds {
		out.Platforms = append(out.Platforms, platformJSON{b.Platform, b.Hash, b.Size})
	}
	for _, s := range d.Plugin.Stages {
		out.Stages = append(out.Stages, catalog.Explain(d.Plugin.Name+"/"+s.Name, s))
	}
	return []describedJSON{out}, nil
}

// describeInstalled describes all installed versions of a plugin.
func describeInstalled(name string) (all []describedJSON, err error) {
	s, err := registry.OpenStore("")
	if err != nil {
		return nil, err
	}
	installed, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range installed {
		if i.Name != name {
			continue
		}
		p, protocol, err := s.Description(i.Hash)
		if err != nil {
			return nil, err
		}
		d := describedJSON{Name: i.Name, Version: p.Version, Protocol: protocol, Hash: i.Hash, Stages: []catalog.StageInfo{}}
		for _, stage := range p.Stages {
			d.Stages = append(d.Stages, catalog.Explain(name+"/"+stage.Name, stage))
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no plugin %q is installed; racflow plugin list shows those that are, and a source is written as in ghcr.io/acme/racflow-plugin-%s or ./folder", name, name)
	}
	return all, nil
}

// write writes the description for people. All its texts come from a stranger.
func (d describedJSON) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s %s\n", d.Name, d.Version)
	for _, line := range [][2]string{{"source", d.Source}, {"digest", d.Digest}, {"program", d.Hash}} {
		if line[1] != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", line[0], line[1])
		}
	}
	switch {
	case len(d.Signers) > 0:
		fmt.Fprintf(&b, "  signed by %s\n", strings.Join(d.Signers, ", "))
	case d.Unsigned != "":
		fmt.Fprintf(&b, "  signature not valid: %s\n", strings.ReplaceAll(d.Unsigned, "\n", "; "))
	case d.Source != "":
		fmt.Fprintln(&b, "  not signed")
	}
	for _, p := range d.Platforms {
		fmt.Fprintf(&b, "  %-12s %6.1f MB  %s\n", p.Platform, float64(p.Size)/1e6, p.Hash)
	}
	var errs []error
	for _, s := range d.Stages {
		b.WriteString("\n")
		errs = append(errs, catalog.StageText(&b, s))
	}
	for line := range strings.Lines(b.String()) {
		_, err := fmt.Fprintln(out, terminal.Line(line))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

const pluginListLong = `List the plugins that a pipeline file requires: which program stands for each, by
whose word it would be started, and whether it may be. Without a file, list those
that are being developed and those that are installed.

By whose word: locked is .racflow.lock.hcl beside the file, given a folder of
--plugins or RACFLOW_PLUGINS, linked racflow plugin install --dev. No program is
started: what a plugin is follows from its files alone. The exit code is 1 where
one may not be started.`

func newPluginList() *cobra.Command {
	flags := fileFlags{state: stateDir}
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [FILE]",
		Short: "List the plugins that a pipeline file requires, or those on this machine",
		Long:  pluginListLong,
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

// plugged is a plugin in a list.
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
	required, diags := require.All(path, src)
	if diags.HasErrors() {
		return nil, &workspace.DiagnosticsError{Diagnostics: diags, Sources: map[string]*hcl.File{path: {Bytes: src}}}
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

// writePlugins writes a table, and below it the reasons why some plugins may not be started.
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

const pluginRemoveLong = `Remove installed plugins from this machine, all versions or one, and forget one that was
installed with --dev, whose project stays. Pipeline files and locks stay as they are:
racflow plugin init installs again what they require.`

func newPluginRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME[@VERSION]...",
		Short: "Remove plugins from this machine",
		Long:  pluginRemoveLong,
		Example: `  racflow plugin remove mine
  racflow plugin remove mine@1.2.0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := registry.OpenStore("")
			if err != nil {
				return err
			}
			for _, arg := range args {
				name, version, _ := strings.Cut(arg, "@")
				removed, err := removePlugin(s, name, version)
				for _, what := range removed {
					fmt.Fprintln(c.OutOrStdout(), what)
				}
				if err == nil && len(removed) == 0 {
					err = fmt.Errorf("no plugin %s is installed; racflow plugin list shows those that are", arg)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// removePlugin returns what it removed, even if it could not remove everything.
func removePlugin(s *registry.Store, name, version string) (removed []string, err error) {
	installed, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range installed {
		if i.Name != name || version != "" && i.Version != version {
			continue
		}
		if err := s.Remove(i.Hash); err != nil {
			return removed, err
		}
		removed = append(removed, fmt.Sprintf("removed %s %s (%s)", i.Name, i.Version, i.Hash))
	}
	if version != "" {
		return removed, nil
	}
	switch err := program.Unlink(name); {
	case err == nil:
		return append(removed, fmt.Sprintf("forgot %s, which was installed for development", name)), nil
	case !errors.Is(err, fs.ErrNotExist):
		return removed, err
	}
	return removed, nil
}
