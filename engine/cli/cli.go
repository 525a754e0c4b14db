// Package cli is the command racflow. It decides nothing that other programs need: verbs read flags,
// call package workspace, and show the results.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/startup"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// app is the context of a verb on a pipeline file: the engine, and a display of its events on
// standard error.
type app struct {
	*workspace.Workspace
	*display
	ended func(error) // reports the end of the verb to whatever watches it
}

// open prepares loading files and starting processes. It does neither.
func (f *fileFlags) open(c *cobra.Command, stdin io.Reader) (*app, error) {
	if f.state == "" {
		return nil, errors.New("--state is empty: name a folder")
	}
	a := &app{display: newDisplay(c), ended: func(error) {}}
	options, err := f.options(stdin)
	if err != nil {
		return nil, err
	}
	options.Events = a.events()
	options.Events.Debugging = debuggingAt(a.print, stdin)
	if options.Log, err = newLog(c); err != nil {
		return nil, err
	}
	if f.watched {
		if a.ended, err = f.telemetry.watch(c, &options, a.print); err != nil {
			return nil, err
		}
	}
	if a.Workspace, err = workspace.NewWorkspace(c.Context(), options); err != nil {
		a.ended(err)
	}
	return a, err
}

func (a *app) close() {
	a.progress.Clear()
	a.Close()
}

// files calls do with a workspace, and closes the workspace afterwards.
func (f *fileFlags) files(c *cobra.Command, do func(*app) error) error {
	a, err := f.open(c, c.InOrStdin())
	if err != nil {
		return err
	}
	defer a.close()
	return do(a)
}

// pipelineOf calls do with the pipeline of a file, and closes the pipeline afterwards. It starts no
// stage before.
func (f *fileFlags) pipelineOf(c *cobra.Command, path string, stdin io.Reader, do func(*app, *workspace.Pipeline) error) (err error) {
	a, err := f.open(c, stdin)
	if err != nil {
		return err
	}
	defer func() {
		a.close()
		a.ended(err)
	}()
	p, err := a.Open(path)
	if err != nil {
		return err
	}
	return do(a, p)
}

// Exit codes; README lists them for people.
const (
	exitOK          = 0
	exitFailed      = 1 // could not start, or ended early
	exitUsage       = 2 // unknown word or flag on the command line; nothing was done
	exitItemsFailed = 3 // finished, but some items or rows failed or lack a voter
	exitUnexpected  = 4 // finished, but an expectation of a file is not met
	exitInterrupted = 130
)

// exitError ends the command with a code; a nil err has been reported already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// stderr is standard error for texts for people. Verbs get it from cobra, and the same for standard
// output. Output for programs goes to terminal.Data of these.
var stderr = terminal.NewWriter(os.Stderr)

// builtin holds the stages of the program; Run sets it.
var builtin workspace.Builtin

// Run executes the command line of this process (os.Args) with the stages of the program, and returns
// the exit code: 0: everything was done; 1: it could not start, or ended early; 2: a word or flag is
// unknown, and nothing was done; 3: it finished, and something failed or needs a look; 4: an
// expectation of a file is not met; 130: interrupted. more are additional commands of the stages.
//
// Call it before all else: the engine executes the program again for each stage; there Run becomes
// the stage and does not return.
func Run(stages []sdk.Stage, more ...*cobra.Command) int {
	builtin = workspace.Serve(stages)
	startup.Over()
	if err := support.NoDump(); err != nil { // the environment may hold secrets
		fmt.Fprintln(stderr, "racflow: warning:", err)
	}
	return execute(interruptible(), os.Args[1:], more...)
}

// interruptible returns a context that ends with the first signal to stop. A second signal has its
// usual effect: it ends the process at once, in case the work does not notice the end of its context.
// Stages end when their engine is gone.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, more ...*cobra.Command) int {
	root := newRoot(more...)
	root.SetArgs(singleDash(root, args))
	err := root.ExecuteContext(ctx)
	var exit *exitError
	var found *workspace.DiagnosticsError
	code := exitFailed
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &found):
		writeDiagnostics(stderr, found)
		err = nil
	case errors.As(err, &exit):
		code, err = exit.code, exit.err
	case strings.HasPrefix(err.Error(), "unknown command "): // of a command without words
		code = exitUsage
	case strings.HasPrefix(err.Error(), "if any flags in the group ["): // cobra's words for flags that exclude each other
		_, both, _ := strings.Cut(err.Error(), "; [")
		both, _, _ = strings.Cut(both, "]")
		err = fmt.Errorf("--%s exclude one another: leave all but one out", strings.Join(strings.Fields(both), " and --"))
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "racflow: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "racflow:", message(err))
	}
	return code
}

const rootLong = `Start with racflow init and your own data, or with racflow init --example intent.
Where no FILE is named, it is pipeline.hcl of this folder, or the only file there that has a pipeline.

Exit codes:

  0    all of it was done
  1    it could not start, or broke off; or a check of plugins or models failed
  2    a word or flag of the command line is unknown, and nothing was done
  3    it finished, and something failed or is missing, or a check found something; flagged answers do not count
  4    what a file expects does not hold
  130  it was interrupted

RACFLOW_LOG chooses the level of the log on standard error (debug, info, warn, error); lines of a
stage have its name. What a plugin prints to standard error has the level info.

Where a file system does not lock files, as some network and FUSE mounts, racflow does not write. RACFLOW_NOLOCK=1
lets it: then only one racflow command at a time may use a state folder or an output, on all machines together.`

func newRoot(more ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "racflow",
		Short:         "Retrieval-augmented classification and retrieval pipelines",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetErr(stderr)
	root.PersistentPreRunE = prepare
	root.AddGroup(groups()...)
	inGroup(root, startGroup, newInit(), newRun(), newAsk(), newPlan(), newServe())
	inGroup(root, improveGroup, newEval(), newTest(), newTune(), newDoctor(), newExplain(), newReport(), newReview())
	inGroup(root, operateGroup, newRuns(), newPack(), newKnowledge(), newCache())
	inGroup(root, operateGroup, more...)
	inGroup(root, extendGroup, newStages(), newModel(), newPlugin(), newValidate(), newFormat(), newLSP(), newVersion(), newHelp())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.GroupID = extendGroup
	}
	root.PersistentFlags().BoolP("quiet", "q", false, "say nothing on standard error but warnings and errors")
	root.PersistentFlags().BoolP("verbose", "v", false, "show all of the log, as RACFLOW_LOG=debug does")
	root.Flags().Bool("version", false, "print the version")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if isSet(c, "version") {
			return writeBuild(c.OutOrStdout(), workspace.BuildInfo(), false)
		}
		return c.Help()
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { _ = writeHelp(c.OutOrStdout(), c, false) }) // a broken output cannot be reported anywhere
	completions(root)
	root.SetFlagErrorFunc(unknownFlag)
	strict(root)
	return root
}

// prepare does what all commands need before they run. Earlier messages of cobra go to standard
// error.
func prepare(c *cobra.Command, _ []string) error {
	if c.OutOrStdout() == io.Writer(os.Stdout) {
		c.Root().SetOut(terminal.NewWriter(os.Stdout))
	}
	if isSet(c, "json") || c.Annotations["output"] == "data" {
		c.SetOut(terminal.Data(c.OutOrStdout()))
	}
	return nil
}

// strict makes c and its subcommands refuse unknown words. Without it, cobra prints the help of a
// group and succeeds.
func strict(c *cobra.Command) {
	if c.HasSubCommands() {
		c.Args, c.DisableFlagsInUseLine = commandWord, true
		if c.RunE == nil {
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// commandWord refuses a word after a group: cobra would have found a command of that name.
func commandWord(group *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	var names []string
	for _, sub := range group.Commands() {
		names = append(names, sub.Name())
	}
	meant := rule.Nearest(words[0], names)
	if others := group.SuggestionsFor(words[0]); meant == "" && len(others) > 0 {
		meant = others[0] // a command that the word stands for or begins
	}
	err := fmt.Errorf("unknown command %q for %q", words[0], group.CommandPath())
	if instead, is := gone[words[0]]; is {
		return &exitError{exitUsage, fmt.Errorf("%w: %s", err, instead)}
	}
	return usageError(group, err, meant)
}

// unknownFlag adds the flag that was probably meant.
func unknownFlag(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if wanted := map[string]string{"int": "a whole number", "float64": "a number", "duration": "a duration such as 30s"}; errors.As(err, &invalid) && errors.Is(err, strconv.ErrSyntax) && wanted[invalid.GetFlag().Value.Type()] != "" {
		return fmt.Errorf("--%s %s: it takes %s", invalid.GetFlag().Name, invalid.GetValue(), wanted[invalid.GetFlag().Value.Type()])
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if instead, is := gone["--"+unknown.GetSpecifiedName()]; is {
		return &exitError{exitUsage, fmt.Errorf("%w: %s", err, instead)}
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	meant := rule.Nearest(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	if meant != "" {
		meant = "--" + meant
	}
	return usageError(c, err, meant)
}

// Advice that replaces the features of version 0.1 for runs on many machines.
const (
	dividedInstead = "runs are no longer spread over NATS servers; racflow run --part I/N answers a part of the input on each machine, and racflow runs merge joins the parts (examples/cluster)"
	sharedInstead  = "limits and answers are no longer shared over NATS servers; a gateway in front of the model, such as LiteLLM, keeps one limit for several runs (examples/cluster)"
)

// gone maps verbs and flags of earlier versions to advice on their replacements.
var gone = map[string]string{
	"worker": dividedInstead, "attach": dividedInstead,
	"--on": dividedInstead, "--on-credentials": dividedInstead, "--on-ca": dividedInstead, "--on-cert": dividedInstead, "--on-key": dividedInstead,
	"--detach": dividedInstead, "--claim": dividedInstead,
	"--share": sharedInstead,
	"console": "racflow validate checks the rules of a file, and racflow explain shows what they decided",
	"--again": "leave it out, since what models have answered comes from the response cache",
}

func usageError(c *cobra.Command, err error, meant string) error {
	if meant == "" {
		return &exitError{exitUsage, fmt.Errorf("%w; %s --help lists what there is", err, c.CommandPath())}
	}
	return &exitError{exitUsage, fmt.Errorf("%w; did you mean %s?", err, meant)}
}

const versionLong = `Print the version, platform and Go release, and the revision that racflow was built from, where the
build knew it. A build from a working tree with changes says so: nobody can make it again.`

func newVersion() *cobra.Command {
	var asJSON, modules bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Long:  versionLong,
		Example: `  racflow version
  racflow version --modules
  racflow version --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := workspace.BuildInfo()
			if asJSON {
				return writeJSON(c.OutOrStdout(), b)
			}
			return writeBuild(c.OutOrStdout(), b, modules)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object, with the modules")
	c.Flags().BoolVar(&modules, "modules", false, "list the modules that it was built with")
	return c
}

func writeBuild(w io.Writer, b workspace.Build, modules bool) error {
	fmt.Fprintf(w, "racflow %s %s %s\n", b.Version, b.Platform, b.Go)
	if b.Revision != "" {
		changes := ""
		if b.Modified {
			changes = ", and changes that are not in it"
		}
		fmt.Fprintf(w, "revision %s of %s%s\n", b.Revision, b.Time, changes)
	}
	tw := terminal.NewTable(w)
	if modules {
		for _, m := range b.Modules {
			fmt.Fprintf(tw, "%s\t%s\n", m.Path, m.Version)
		}
	}
	return tw.Flush()
}
