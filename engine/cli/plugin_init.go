package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/plugin/install"
	"github.com/racflow/racflow/engine/plugin/signature"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

func newPluginInit() *cobra.Command {
	var keys, trust []string
	var upgrade, locked, asJSON bool
	c := &cobra.Command{
		Use:   "init [FILE...]",
		Short: "Install the plugins that pipeline files require, and lock them",
		Long: `Install the plugins that pipeline files require, and note in .racflow.lock.hcl beside
them which programs these are: version, digest, signer, and the hash of the program for
every platform. Without a FILE it is done for all .hcl files of this folder. Commit the
lock: whoever has it runs the same programs, and no others.

What is locked stays, also where somebody has moved a version's tag. A newer version is
taken where the locked one no longer meets the file, or with --upgrade. Where lock and
this machine have everything, no registry is asked.

A source is REGISTRY/REPOSITORY, a folder with an OCI layout ("./folder" or
"oci:folder", from the file's folder), or an archive: an https address or "file:PATH" of a
program or of the .tar.gz of its folder, which may hold {version}, {os} and {arch}, with its
hashes, sha256 = { "linux/amd64" = "..." }. Registries are asked with the credentials of
docker login. If RACFLOW_PLUGIN_MIRROR names a folder, the OCI layout there of the
same path, such as DIR/ghcr.io/acme/racflow-plugin-mine, is read in place of a registry.

A release may be signed by its author. The first time, whoever signed it is noted;
afterwards a release by somebody else, or by nobody, is refused. --key says from the
start who it has to be, and is necessary for keys of cosign, which its signatures do not
bring along. Signatures of cosign without a key are not checked.`,
		Example: `  racflow plugin init
  racflow plugin init --upgrade pipeline.hcl
  racflow plugin init --locked                 # in CI: fails where the lock would change
  racflow plugin init --key mine=minisign.pub`,
		RunE: func(c *cobra.Command, args []string) error {
			in, err := newInstaller(c, keys, trust)
			if err != nil {
				return err
			}
			in.Upgrade, in.Locked = upgrade, locked
			folders, files, err := grouped(args)
			if err != nil {
				return err
			}
			if err := known(c.Context(), files, slices.Concat(slices.Collect(maps.Keys(in.Keys)), in.Trust)); err != nil {
				return err
			}
			var all []install.Outcome
			for _, dir := range folders {
				out, diags := in.Init(c.Context(), files[dir].paths, files[dir].whole)
				if diags.HasErrors() {
					return &engine.DiagnosticsError{Diagnostics: diags, Sources: out.Sources}
				}
				all = append(all, out)
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), outcomesJSON(all))
			}
			return writeOutcomes(c.OutOrStdout(), all)
		},
	}
	c.Flags().StringArrayVar(&trust, "trust-new-signer", nil, "accept that the plugin `NAME` is signed by somebody else than before, or by nobody (may be repeated)")
	c.Flags().StringArrayVar(&keys, "key", nil, "the public key by which a plugin has to be signed: `NAME=FILE` of minisign, or in PEM (may be repeated)")
	c.Flags().BoolVar(&upgrade, "upgrade", false, "take the newest versions that the files allow")
	c.Flags().BoolVar(&locked, "locked", false, "install what is locked, and fail where the lock would change")
	c.Flags().BoolVar(&asJSON, "json", false, "print what changed as JSON")
	c.MarkFlagsMutuallyExclusive("upgrade", "locked")
	return c
}

// known refuses names that no file requires, since a mistyped one would check nothing.
func known(ctx context.Context, files map[string]inFolder, names []string) error {
	for _, f := range files {
		for _, path := range f.paths {
			src, err := bounded.Read(ctx, path, nil)
			if err != nil {
				return err
			}
			required, _ := plugin.Requirements(path, src) // Init reports what is wrong with it
			for _, r := range required {
				names = slices.DeleteFunc(names, func(name string) bool { return name == r.Name })
			}
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("no file requires a plugin %q, which --key or --trust-new-signer names", names[0])
	}
	return nil
}

// newInstaller makes ready to install. Keys are NAME=FILE.
func newInstaller(c *cobra.Command, keys, trust []string) (*install.Installer, error) {
	s, err := store.Open("")
	if err != nil {
		return nil, err
	}
	in := &install.Installer{
		Store: s, Trust: trust, Keys: map[string]signature.Key{}, Describe: describeProgram,
		Progress: func(text string) { fmt.Fprintln(c.ErrOrStderr(), terminal.Line(text)) },
	}
	for _, text := range keys {
		name, path, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--key %s: write it as NAME=FILE, with the name of the plugin", text)
		}
		if in.Keys[name], err = signature.ReadKey(path); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// describeProgram starts a program for as long as it takes to ask what it offers.
func describeProgram(ctx context.Context, p program.Program) (sdk.Plugin, error) {
	log, err := newLog()
	if err != nil {
		return sdk.Plugin{}, err
	}
	h, err := host.New(host.Options{Log: log})
	if err != nil {
		return sdk.Plugin{}, err
	}
	defer h.Close()
	return h.Describe(ctx, p)
}

// inFolder are the files of a folder.
type inFolder struct {
	paths []string
	whole bool // all that it has
}

// grouped sorts files by their folders. A folder stands for all its files, and none for the one we are in.
func grouped(args []string) (folders []string, files map[string]inFolder, err error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	files = map[string]inFolder{}
	for _, arg := range args {
		dir, add := filepath.Dir(arg), []string{arg}
		info, err := os.Stat(arg)
		if err != nil {
			return nil, nil, err
		}
		if info.IsDir() {
			dir = filepath.Clean(arg)
			if add, err = install.Files(dir); err != nil {
				return nil, nil, err
			}
			if len(add) == 0 {
				return nil, nil, fmt.Errorf("%s has no .hcl file: name a pipeline file", arg)
			}
		}
		f := files[dir]
		f.whole = f.whole || info.IsDir()
		for _, path := range add {
			if path = filepath.Clean(path); !slices.Contains(f.paths, path) {
				f.paths = append(f.paths, path)
			}
		}
		files[dir] = f
		if !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	return folders, files, nil
}

// writeOutcomes writes a table of what became of each plugin, and what to do with the lock.
func writeOutcomes(out io.Writer, all []install.Outcome) error {
	var errs []error
	for _, o := range all {
		tw := terminal.NewTable(out)
		if len(o.Changes) > 0 {
			fmt.Fprintln(tw, "PLUGIN\tVERSION\tSIGNED BY\tCHANGE\tON THIS MACHINE")
		}
		for _, c := range o.Changes {
			one := changeOf(c)
			there := "ready"
			switch {
			case c.After == nil:
				there = "unused"
			case c.Installed:
				there = "installed"
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", one.Name, terminal.Line(one.Version), orDash(one.Signer), orDash(one.Change), there)
		}
		errs = append(errs, tw.Flush())
		switch {
		case o.Written:
			fmt.Fprintf(out, "%s is written: commit it.\n", o.Lock)
		case len(o.Changes) == 0:
			fmt.Fprintf(out, "%s: no plugin is required.\n", filepath.Dir(o.Lock))
		default:
			fmt.Fprintf(out, "%s stays as it is.\n", o.Lock)
		}
	}
	return errors.Join(errs...)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return terminal.Line(text)
}

// changeJSON is what became of a plugin, as it is printed.
type changeJSON struct {
	Lock      string `json:"lock"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	Source    string `json:"source"`
	Digest    string `json:"digest"`
	Signer    string `json:"signer"`
	Change    string `json:"change"` // "": none
	Installed bool   `json:"installed"`
}

func changeOf(c install.Change) changeJSON {
	p := c.After
	if p == nil {
		p = c.Before
	}
	return changeJSON{Name: c.Name, Version: p.Version, Source: p.Source, Digest: p.Digest, Signer: p.Signer, Change: c.What(), Installed: c.Installed}
}

func outcomesJSON(all []install.Outcome) map[string]any {
	changes := []changeJSON{}
	for _, o := range all {
		for _, c := range o.Changes {
			one := changeOf(c)
			one.Lock = o.Lock
			changes = append(changes, one)
		}
	}
	return map[string]any{"plugins": changes}
}
