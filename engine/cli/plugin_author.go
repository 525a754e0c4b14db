package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/plugin/verify"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

const pluginNewLong = `Write the project of a new plugin into the folder NAME: a small stage that works, a
test, data, a pipeline file that uses the stage as NAME/NAME, and a workflow that
releases the plugin. KIND is what the stage does:

  chunk    cuts documents into passages         rerank  orders what a search found
  enrich   adds to passages what finds them     prompt  writes what a model is asked
  embed    turns texts into vectors             sample  votes on an item
  store    keeps entries and searches them      elect   decides from all votes

A plugin in Go needs Go, and racflow's module, which the go command downloads. A
plugin in Python needs Python 3 and packages that pip downloads.`

func newPluginNew() *cobra.Command {
	var o verify.ProjectOptions
	c := &cobra.Command{
		Use:   "new KIND NAME",
		Short: "Write the project of a new plugin",
		Long:  pluginNewLong,
		Example: `  racflow plugin new rerank mine
  racflow plugin new sample mine --lang python`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("name the kind of the stage and the plugin, such as: racflow plugin new rerank mine; the kinds are %s", verify.StageKinds())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.Kind, o.Name = sdk.Kind(args[0]), args[1]
			if o.SDK == "" {
				o.SDK = workspace.Version()
			}
			paths, err := verify.WriteProject(o.Name, o)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			fmt.Fprintf(out, "The plugin %s is in the folder %s:\n\n", o.Name, o.Name)
			for _, path := range paths {
				fmt.Fprintf(out, "  %s\n", terminal.Line(filepath.Join(o.Name, path)))
			}
			fmt.Fprintf(out, "\nThe stage is written in %s. Next:\n\n", filepath.Join(o.Name, o.Main()))
			table := terminal.NewTable(out)
			fmt.Fprintf(table, "  cd %s\n", o.Name)
			fmt.Fprint(table, "  racflow plugin verify .\t# build it, and check what it owes the engine\n")
			fmt.Fprint(table, "  racflow plugin install . --dev\t# let your own racflow use it; again after each change\n")
			fmt.Fprint(table, "  racflow run pipeline.hcl\t# and use it\n")
			return table.Flush()
		},
	}
	c.Flags().StringVar(&o.Lang, "lang", verify.TemplateGo, "write it in `LANGUAGE`: go or python")
	c.Flags().StringVar(&o.SDK, "sdk", "", "write it against a `VERSION` of racflow, or in Go against the folder of a checkout (default: the version of this racflow)")
	return c
}

const pluginPublishLong = `DIST holds a folder for each platform, OS_ARCH as Go names them, or any_any for a plugin that is the same everywhere:

    dist/linux_amd64/racflow-plugin-mine
    dist/any_any/racflow-plugin-mine/        a folder, with the program of its name in it

One of them has to run here: it is started to describe the plugin and its version. TARGET is REGISTRY/REPOSITORY, with
the credentials of docker login, or a folder for an OCI layout. A version that is there is not replaced.

--key names an Ed25519 key in PEM without a password, as openssl genpkey -algorithm ed25519 writes it. The text
sha256:HEX is signed, the digest that is printed.`

func newPluginPublish() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "publish DIST TARGET",
		Short: "Publish a release of your plugin, signed",
		Long:  pluginPublishLong,
		Example: `  racflow plugin publish dist ghcr.io/acme/racflow-plugin-mine --key racflow-plugin-mine.key
  racflow plugin publish dist ./releases`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			target, err := registry.Parse(args[1], ".")
			if err != nil {
				return err
			}
			if target.Archive != nil {
				return errors.New("a release is published to a registry's repository or a folder, not to the address of an archive")
			}
			var signer *registry.PrivateKey
			if key != "" {
				k, err := registry.ReadPrivateKey(key)
				if err != nil {
					return err
				}
				signer = &k
			}
			r, err := registry.Publish(c.Context(), args[0], target, signer, describeProgram(c))
			if err != nil {
				return err
			}
			signed := "not signed: --key signs it"
			if r.Signer != "" {
				signed = "signed by " + r.Signer
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s is published for %s\n  %s\n  %s\n", r.Name, r.Version, strings.Join(r.Platforms, ", "), r.Digest, signed)
			return err
		},
	}
	c.Flags().StringVar(&key, "key", "", "sign with the private key in `FILE`")
	return c
}

// ofOurs is the prefix that names a built-in stage instead of a program.
const ofOurs = "builtin:"

var pluginVerifyLong = `PATH is a program racflow-plugin-NAME, a folder of that name with the program in it, the folder of a project, which
is built first, or builtin:KIND/NAME.

Each stage is started as in a run: its description, results that depend on nothing but the row, odd texts and
numbers, cancelled calls, 256 calls at a time, messages of 64 MiB, kills, memory, output, and its end. A store is
compared with a model that scores and sorts everything. A check that fails says why it is there and what to do.

The file ` + verify.FileName + ` beside the program, or in the project's folder, configures the stages:

    {
      "rerank/mine": {"weight": 0.5},
      "sample/asks": {"endpoint": "http://127.0.0.1:8080/v1", "api_key": "$MINE_KEY"},
      "without":     {"store/mine: filters/infinity": "the database has no literal for it"},
      "network":     ["api.example.com:443"],
      "read":        ["models"]
    }

$NAME is read from the environment. "without" leaves a check out and shows the reason, "dense_only" says that a
store has no lexical search, and "network", "read" and "write" are those of required_plugins.

Exit code 0: no check failed; 1: one did, or there was nothing to check.`

func newPluginVerify() *cobra.Command {
	var config, stage, only, junit string
	var asJSON bool
	var within time.Duration
	c := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check that a plugin does what the engine needs, in its real process",
		Long:  pluginVerifyLong,
		Example: `  racflow plugin verify .
  racflow plugin verify dist/racflow-plugin-mine --stage rerank/mine --config '{"weight": 0.5}'
  racflow plugin verify . --junit verify.xml
  racflow plugin verify builtin:elect/majority`,
		Args: words(1, "name a plugin's program or the folder of its project, such as: racflow plugin verify FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			out, folders := c.OutOrStdout(), []string(nil)
			o := verify.Options{Stage: stage, Check: only, Within: within}
			if name, ok := strings.CutPrefix(args[0], ofOurs); ok {
				o.Builtin, o.Stage, o.Version = builtin.Stages(), name, workspace.Version()
			} else {
				p, in, err := verify.Find(c.Context(), args[0], c.ErrOrStderr())
				if err != nil {
					return err
				}
				o.Program, folders = &p, in
			}
			var err error
			if o.Config, err = verify.ReadConfig(config, o.Stage, folders...); err != nil {
				return err
			}
			return check(c.Context(), out, o, asJSON, junit)
		},
	}
	c.Flags().StringVar(&config, "config", "", "use the `FILE` in the place of "+verify.FileName+", or this JSON object; with --stage also the stage's config alone")
	c.Flags().StringVar(&stage, "stage", "", "check only the stage `KIND/NAME`")
	c.Flags().StringVar(&only, "check", "", "make only the check `NAME`, or those below it, such as filters of a store")
	c.Flags().DurationVar(&within, "timeout", 0, "give each check so long, in the place of its own deadline of a few minutes")
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	c.Flags().StringVar(&junit, "junit", "", "write the outcome to `FILE` as well, as JUnit's XML")
	return c
}

// check runs the checks and writes their results.
func check(ctx context.Context, out io.Writer, o verify.Options, asJSON bool, junit string) error {
	var broken error // the output cannot be written
	report, err := verify.Run(ctx, o, func(stage string, r conformance.Result) {
		if !asJSON && broken == nil {
			broken = verify.Line(out, stage, r)
		}
	})
	if err != nil {
		return err
	}
	if asJSON {
		broken = writeJSON(out, report)
	} else if broken == nil {
		broken = report.Summary(out)
	}
	if junit != "" {
		broken = errors.Join(broken, writeJUnit(junit, report))
	}
	if broken == nil && report.Failed > 0 {
		return &exitError{code: exitFailed}
	}
	return broken
}

func writeJUnit(path string, report *verify.Report) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return report.JUnit(f)
}
