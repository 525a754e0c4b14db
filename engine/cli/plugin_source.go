package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/plugin/install"
	"github.com/racflow/racflow/engine/plugin/lock"
)

// sourceFlags are those of racflow plugin install for a source.
type sourceFlags struct{ sha256, key string }

func (f *sourceFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.sha256, "sha256", "", "the sha256 that an archive has to have, in `HEX`")
	c.Flags().StringVar(&f.key, "key", "", "the public key by which it has to be signed: a `FILE` of minisign, or in PEM")
}

// install installs the plugin of SOURCE[@VERSION], and says how a file requires it.
func (f *sourceFlags) install(c *cobra.Command, text string) error {
	source, version := cutVersion(text)
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		if _, err := os.Stat(filepath.Join(source, "oci-layout")); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s holds no published plugin; if it is the project of one that you are writing, add --dev", source)
		}
	}
	var keys []string
	if f.key != "" {
		keys = []string{"=" + f.key} // its name is not known before
	}
	in, err := newInstaller(c, keys, nil)
	if err != nil {
		return err
	}
	w := install.Wanted{Source: source, Version: version, Dir: "."}
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

// requirementOf are the lines of a file that require a plugin.
func requirementOf(p lock.Plugin, w install.Wanted) string {
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
	f.Body().AppendNewBlock(plugin.Block, nil).Body().SetAttributeValue(p.Name, cty.ObjectVal(values))
	return string(hclwrite.Format(f.Bytes()))
}
