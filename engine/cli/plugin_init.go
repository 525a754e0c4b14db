package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/plugin/verify"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

const pluginInitLong = `.racflow.lock.hcl beside the files gets version, digest, signer and the hash of the program for every platform. Without
a FILE it is for all .hcl files of this folder. Commit the lock: whoever has it runs the same programs.

What is locked stays, even if a version's tag was moved. A newer version is taken with --upgrade, or where the
locked one no longer meets the file.

A source is REGISTRY/REPOSITORY (credentials of docker login; RACFLOW_PLUGIN_MIRROR names a folder to read in its
place), a folder with an OCI layout, or an archive by https or file:PATH with its hashes, sha256 = { "linux/amd64" =
"..." }; {os} and {arch} stand for themselves.

The first release notes who signed it; later ones with another signature, or none, are refused. --key says from the
start who it has to be, which signatures of cosign need.`

func newPluginInit() *cobra.Command {
	var keys, newSigners []string
	var upgrade, locked, asJSON bool
	c := &cobra.Command{
		Use:   "init [FILE...]",
		Short: "Install the plugins that pipeline files require, and lock them",
		Long:  pluginInitLong,
		Example: `  racflow plugin init
  racflow plugin init --upgrade pipeline.hcl
  racflow plugin init --locked                 # in CI: fails where the lock would change
  racflow plugin init --key mine=mine.pub`,
		RunE: func(c *cobra.Command, args []string) error {
			in, err := newInstaller(c, keys, newSigners)
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
			var all []registry.Outcome
			for _, dir := range folders {
				out, diags := in.Init(c.Context(), files[dir].paths, files[dir].whole)
				if diags.HasErrors() {
					return &workspace.DiagnosticsError{Diagnostics: diags, Sources: out.Sources}
				}
				all = append(all, out)
				grantStarts(dir)
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), outcomesJSON(all))
			}
			return writeOutcomes(c.OutOrStdout(), all)
		},
	}
	c.Flags().StringArrayVar(&newSigners, "trust-new-signer", nil, "accept that the plugin `NAME` is signed by another key than before, or by nobody (may be repeated)")
	c.Flags().StringArrayVar(&keys, "key", nil, "the public key by which a plugin has to be signed: `NAME=FILE` in PEM (may be repeated)")
	c.Flags().BoolVar(&upgrade, "upgrade", false, "take the newest versions that the files allow")
	c.Flags().BoolVar(&locked, "locked", false, "install what is locked, and fail where the lock would change")
	c.Flags().BoolVar(&asJSON, "json", false, "print what changed as JSON")
	c.MarkFlagsMutuallyExclusive("upgrade", "locked")
	return c
}

// grantStarts lets a folder start the programs that a person has just installed there. It grants
// nothing that these programs reach. If it cannot store the grant, the first run asks.
func grantStarts(dir string) {
	locked, diags := plugin.ReadLock(filepath.Join(dir, plugin.LockName))
	grants, err := trust.OpenGrants()
	if err != nil || diags.HasErrors() {
		return
	}
	var starts []trust.Want
	for _, p := range locked.Plugins {
		starts = append(starts, trust.Start(p.Name, p.Source, p.Version, p.Program()))
	}
	_ = grants.Grant(pipeline.Folder(filepath.Join(dir, plugin.LockName)), starts)
}

// known refuses names that no file requires: a mistyped name would check nothing.
func known(ctx context.Context, files map[string]inFolder, names []string) error {
	for _, f := range files {
		for _, path := range f.paths {
			src, err := bounded.Read(ctx, path, nil)
			if err != nil {
				return err
			}
			required, _ := require.All(path, src) // Init reports what is wrong with it
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

// newInstaller prepares an installation. Keys have the form NAME=FILE.
func newInstaller(c *cobra.Command, keys, newSigners []string) (*registry.Installer, error) {
	s, err := registry.OpenStore("")
	if err != nil {
		return nil, err
	}
	in := &registry.Installer{
		Store: s, Trust: newSigners, Keys: map[string]registry.PublicKey{}, Describe: describeProgram(c),
		Progress: func(text string) { fmt.Fprintln(c.ErrOrStderr(), terminal.Line(text)) },
	}
	for _, text := range keys {
		name, path, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--key %s: write it as NAME=FILE, with the name of the plugin", text)
		}
		if in.Keys[name], err = registry.ReadPublicKey(path); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// describeProgram starts a program just to ask which stages it offers.
func describeProgram(c *cobra.Command) func(context.Context, program.Program) (sdk.Plugin, error) {
	return func(ctx context.Context, p program.Program) (sdk.Plugin, error) {
		log, err := newLog(c)
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
}

// inFolder holds files of a folder.
type inFolder struct {
	paths []string
	whole bool // all files of the folder
}

// grouped groups files by their folders. A folder stands for all its files; without arguments, the
// working directory counts.
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
			if add, err = registry.PipelineFiles(dir); err != nil {
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

// writeOutcomes writes a table of the results for each plugin, and what to do with the lock.
func writeOutcomes(out io.Writer, all []registry.Outcome) error {
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

// changeJSON is the result for a plugin in JSON.
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

func changeOf(c registry.Change) changeJSON {
	p := c.After
	if p == nil {
		p = c.Before
	}
	return changeJSON{Name: c.Name, Version: p.Version, Source: p.Source, Digest: p.Digest, Signer: p.Signer, Change: c.What(), Installed: c.Installed}
}

func outcomesJSON(all []registry.Outcome) map[string]any {
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

const pluginInstallLong = `With --dev, the plugin whose project is in FOLDER is built, and every pipeline file of yours can use its stages; each
run says so. Install it again after a change. A project in Python gets a virtual environment in its folder.

Without it, a plugin is fetched from a SOURCE as a pipeline file names it, checked, put into this machine's store,
and the lines are printed by which a file requires it. An archive needs --sha256.`

func newPluginInstall() *cobra.Command {
	dev := false
	var source sourceFlags
	c := &cobra.Command{
		Use:   "install FOLDER --dev | SOURCE[@VERSION]",
		Short: "Install a plugin, or with --dev one that you are writing",
		Long:  pluginInstallLong,
		Example: `  racflow plugin install . --dev
  racflow plugin install 'ghcr.io/acme/racflow-plugin-mine@~> 1.2' --key mine.pub
  racflow plugin install https://example.com/racflow-plugin-mine_linux_amd64.tar.gz --sha256 HEX`,
		Args: words(1, "name the folder of the plugin's project, such as: racflow plugin install . --dev, or a source, such as: racflow plugin install ghcr.io/acme/racflow-plugin-mine"),
		RunE: func(c *cobra.Command, args []string) error {
			if !dev {
				return source.install(c, args[0])
			}
			p, err := verify.BuildProject(c.Context(), args[0], c.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := program.Link(p); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "The plugin %s is installed for development, from %s.\nPipeline files use its stages as %[1]s/STAGE.\n", p.Name, terminal.Line(p.Project))
			return err
		},
	}
	source.register(c)
	c.Flags().BoolVar(&dev, "dev", false, "the folder holds the project of a plugin in development")
	return c
}

// sourceFlags are the flags with which racflow plugin install checks a source.
type sourceFlags struct{ sha256, key string }

func (f *sourceFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.sha256, "sha256", "", "the sha256 that an archive has to have, in `HEX`")
	c.Flags().StringVar(&f.key, "key", "", "the public key by which it has to be signed: a `FILE` in PEM")
}

// install installs the plugin SOURCE[@VERSION], and prints how a file requires it.
func (f *sourceFlags) install(c *cobra.Command, text string) error {
	source, version := cutVersion(text)
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		if _, err := os.Stat(filepath.Join(source, "oci-layout")); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s holds no published plugin; if it is the project of one that you are writing, add --dev", source)
		}
	}
	var keys []string
	if f.key != "" {
		keys = []string{"=" + f.key} // its name is not known yet
	}
	in, err := newInstaller(c, keys, nil)
	if err != nil {
		return err
	}
	w := require.Plugin{Source: source, Version: version}
	here := runtime.GOOS + "/" + runtime.GOARCH
	if f.sha256 != "" {
		w.SHA256 = map[string]string{here: strings.ToLower(f.sha256)}
	}
	p, installed, err := in.Install(c.Context(), w, nil)
	if err != nil {
		return err
	}
	what, signed := "is installed", "signed by nobody"
	if !installed {
		what = "is on this machine already"
	}
	if p.Signer != "" {
		signed = "signed by " + p.Signer
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s %s, %s.\nA pipeline file requires it by these lines; racflow plugin init then locks it:\n\n%s", p.Name, p.Version, what, signed, requirementOf(p, w))
	return err
}

// requirementOf returns the lines with which a file requires a plugin.
func requirementOf(p plugin.LockedPlugin, w require.Plugin) string {
	version := w.Version
	if version == "" {
		version = "~> " + strings.Join(strings.SplitN(p.Version, ".", 3)[:2], ".")
	}
	values := map[string]cty.Value{"source": cty.StringVal(w.Source), "version": cty.StringVal(version)}
	if w.SHA256 != nil {
		sums := map[string]cty.Value{}
		for platform, sum := range w.SHA256 {
			sums[platform] = cty.StringVal(sum)
		}
		values["sha256"] = cty.ObjectVal(sums)
	}
	f := hclwrite.NewEmptyFile()
	f.Body().AppendNewBlock(require.Block, nil).Body().SetAttributeValue(p.Name, cty.ObjectVal(values))
	return string(hclwrite.Format(f.Bytes()))
}
