package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/host/replay"
	"github.com/racflow/racflow/engine/plugin/verify"
	"github.com/racflow/racflow/sdk/conformance"
)

// ofOurs begins the name of a built-in stage in the place of a program.
const ofOurs = "builtin:"

func newPluginVerify() *cobra.Command {
	var config, stage, only, junit, again string
	var asJSON bool
	var within time.Duration
	c := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check what a plugin owes the engine, in its real process",
		Long: `Check what a plugin owes the engine, whatever it computes and in whatever language it is
written. PATH is a program racflow-plugin-NAME, a folder of that name with the program in
it, the folder of a project, which is built first, or builtin:KIND/NAME, a stage of racflow's own.

Each stage is started as in a run, as often as the checks want: its description, results that
depend on nothing but the row and the columns that it declares, odd texts and numbers, cancelled
calls and calls without time, 256 calls at a time, messages of 64 MiB, kills, memory over 10,000
rows, output, and its end. A store is compared with a model that scores and sorts everything.
A check that fails says why it is there and what to do. One that hangs has failed, and the others
go on. The Go package sdk/sdktest has the same checks, but for those of the process.

The file ` + verify.FileName + ` beside the program, or in the project's folder, says how each stage is configured:

    {
      "rerank/mine": {"weight": 0.5},
      "sample/asks": {"endpoint": "http://127.0.0.1:8080/v1", "api_key": "$MINE_KEY"},
      "without":     {"store/mine: filters/infinity": "the database has no literal for it"},
      "dense_only":  "the database has no lexical search",
      "network":     ["api.example.com:443"],
      "read":        ["models"]
    }

A secret that begins with $ is read from the environment. "without" leaves a check out and shows the
reason. "network", "read" and "write" are what required_plugins would allow. A stage that is not listed
is configured by the examples of its description.

A request that a stage failed on in a run, in a file of the run's folder replay, is sent once more with
--replay FILE, to the stage as it was configured then; secrets, which the file does not have, come
from verify.json. It passes where every row has a result.

Exit code 0: no check failed; 1: one did, or there was nothing to check.`,
		Example: `  racflow plugin verify .
  racflow plugin verify dist/racflow-plugin-mine --stage rerank/mine --config '{"weight": 0.5}'
  racflow plugin verify . --junit verify.xml
  racflow plugin verify builtin:elect/majority`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name a plugin's program or the folder of its project, such as: racflow plugin verify FOLDER")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			out, folders := c.OutOrStdout(), []string(nil)
			o := verify.Options{Stage: stage, Check: only, Within: within}
			if name, ok := strings.CutPrefix(args[0], ofOurs); ok {
				o.Builtin, o.Stage, o.Version = builtin.Stages(), name, engine.Version()
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
			run := checks(verify.Run)
			if again != "" {
				f, err := replay.Read(again)
				if err != nil {
					return err
				}
				run = func(ctx context.Context, o verify.Options, done func(string, conformance.Result)) (*verify.Report, error) {
					return verify.Replay(ctx, o, f, done)
				}
			}
			return check(c.Context(), out, o, run, asJSON, junit)
		},
	}
	c.Flags().StringVar(&config, "config", "", "use the `FILE` in the place of "+verify.FileName+", or this JSON object; with --stage also the stage's config alone")
	c.Flags().StringVar(&stage, "stage", "", "check only the stage `KIND/NAME`")
	c.Flags().StringVar(&only, "check", "", "make only the check `NAME`, or those below it, such as filters of a store")
	c.Flags().DurationVar(&within, "timeout", 0, "give each check so long, in the place of its own deadline of a few minutes")
	c.Flags().StringVar(&again, "replay", "", "make no check, but send the request in `FILE` once more, alone: a run keeps those that stages fail on in its folder replay")
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	c.Flags().StringVar(&junit, "junit", "", "write the outcome to `FILE` as well, as JUnit's XML")
	return c
}

// checks are verify.Run, or the replay of a request.
type checks func(context.Context, verify.Options, func(stage string, r conformance.Result)) (*verify.Report, error)

// check makes the checks and writes what comes of them.
func check(ctx context.Context, out io.Writer, o verify.Options, run checks, asJSON bool, junit string) error {
	var broken error // the output cannot be written
	report, err := run(ctx, o, func(stage string, r conformance.Result) {
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
	if _, failed, _ := report.Count(); broken == nil && failed > 0 {
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
