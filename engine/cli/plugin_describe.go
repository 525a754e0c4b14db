package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/plugin/install"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/schema"
	"github.com/racflow/racflow/engine/terminal"
)

func newPluginDescribe() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "describe SOURCE[@VERSION] | NAME",
		Short: "Show what a plugin offers, without downloading or starting it",
		Long: `Show a plugin's stages with their arguments, its platforms and who signed it.

A SOURCE is as in a pipeline file, a registry's repository or a folder with an OCI layout; the
VERSION is one, or a constraint such as '~> 1.2'. Only the description is read. A NAME is that of an
installed plugin. In neither case is its program started.`,
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

// describedJSON is a plugin as it is described; its JSON form only ever gets more fields.
type describedJSON struct {
	Name      string         `json:"name"`
	Version   string         `json:"version"`
	Protocol  int            `json:"protocol"`
	Source    string         `json:"source,omitempty"`
	Digest    string         `json:"digest,omitempty"`
	Hash      string         `json:"hash,omitempty"` // of an installed program
	Signers   []string       `json:"signers,omitempty"`
	Unsigned  string         `json:"unsigned,omitempty"` // why no signature holds
	Platforms []platformJSON `json:"platforms,omitempty"`
	Stages    []schema.Stage `json:"stages"`
}

type platformJSON struct {
	Platform string `json:"platform"`
	Hash     string `json:"hash"`
	Size     int64  `json:"size"` // of the download, in bytes
}

func describeSource(ctx context.Context, text string) ([]describedJSON, error) {
	source, version := cutVersion(text)
	d, err := install.Describe(ctx, source, version, ".")
	if err != nil {
		return nil, err
	}
	out := describedJSON{Name: d.Plugin.Name, Version: d.Version, Protocol: d.Protocol, Source: source, Digest: d.Digest, Signers: d.Signers, Stages: []schema.Stage{}}
	if d.Unsigned != nil {
		out.Unsigned = d.Unsigned.Error()
	}
	for _, b := range d.Builds {
		out.Platforms = append(out.Platforms, platformJSON{b.Platform, b.Hash, b.Size})
	}
	for _, s := range d.Plugin.Stages {
		out.Stages = append(out.Stages, schema.Of(d.Plugin.Name+"/"+s.Name, s))
	}
	return []describedJSON{out}, nil
}

// describeInstalled describes all installed versions of a plugin.
func describeInstalled(name string) (all []describedJSON, err error) {
	s, err := store.Open("")
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
		d := describedJSON{Name: i.Name, Version: p.Version, Protocol: protocol, Hash: i.Hash, Stages: []schema.Stage{}}
		for _, stage := range p.Stages {
			d.Stages = append(d.Stages, schema.Of(name+"/"+stage.Name, stage))
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no plugin %q is installed; racflow plugin list shows those that are, and a source is written as in ghcr.io/acme/racflow-plugin-%s or ./folder", name, name)
	}
	return all, nil
}

// write writes it for people. All texts are a stranger's.
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
		errs = append(errs, schema.Text(&b, s))
	}
	for line := range strings.Lines(b.String()) {
		_, err := fmt.Fprintln(out, terminal.Line(line))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
