package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// anew are flags of run that a resumed run sets in its own way, or does not get.
var anew = []string{"resume", "again", "resume-anyway", "state", "no-journal", "overwrite", "metrics", "trace", "trace-texts"}

// commandOf returns the command that a person gave, in the form that a run stores.
func commandOf(c *cobra.Command) (*journal.ManifestCommand, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	given := &journal.ManifestCommand{Dir: dir}
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if !slices.Contains(anew, f.Name) {
				given.Flags = append(given.Flags, journal.ManifestFlag{Name: f.Name, Value: v})
			}
		}
	})
	return given, nil
}

const runsResumeLong = `Give the command again that began a run, in the folder where it was given and with
--resume: the file, the input, variables, the output and its format are those of
the run. ID may be newest, which is the newest that left something to do.

Flags of racflow run after -- take the place of those that the run began with, such
as more to spend:

  racflow runs resume run-000012 -- --max-cost 5

--plugins and --debug are given again that way. Secrets are not kept: they come from the environment, as when
the run began. A run that is not marked as yours, such as one of somebody's checkout,
is not resumed: its command is shown.`

func newRunsResume() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "resume ID [-- FLAG...]",
		Short: "Resume a run: repeat the command that began it",
		Long:  runsResumeLong,
		Example: `  racflow runs resume newest
  racflow runs resume run-000001
  racflow runs resume run-000001 -- --max-cost 5`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the run to resume, or newest; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			m, err := resumable(state, args[0])
			if err != nil {
				return err
			}
			given, err := resuming(m, state, args[1:])
			if err != nil {
				return err
			}
			if !m.Mine {
				return fmt.Errorf("run %s is not marked as yours: an older racflow, another user or another machine began it, or there was no place for your key. If it did what you want, give its command yourself:\n%s", m.ID, repeated(m, given))
			}
			if err := os.Chdir(m.Command.Dir); err != nil {
				return fmt.Errorf("run %s began in another folder: %w; put it back, or give the command of the run again with --resume=%s", m.ID, err, m.ID)
			}
			again := newRoot()
			again.SetArgs(singleDash(again, given))
			again.SetIn(c.InOrStdin())
			again.SetOut(c.OutOrStdout())
			again.SetErr(c.ErrOrStderr())
			return again.ExecuteContext(c.Context())
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	return c
}

// resumable finds the run that a person names, or the newest run that left something to do.
func resumable(state, name string) (journal.Manifest, error) {
	kept := journal.RunsOf(state)
	if name != workspace.Newest {
		return kept.Manifest(name)
	}
	for _, r := range slices.Backward(kept.List()) {
		if r.Manifest.ID != "" && (r.State == journal.Unfinished || r.State == journal.FailedItems) {
			return r.Manifest, nil
		}
	}
	return journal.Manifest{}, kept.NothingLeft("", "")
}

// unrepeated are flags that only the person who resumes a run can give, since what they vouch for may
// have changed. Grants are stored separately.
var unrepeated = []string{"trust", "plugins", "debug"}

// repeated returns the shell command that resumes a run.
func repeated(m journal.Manifest, args []string) string {
	words := []string{"cd", quotedArgument(m.Command.Dir), "&&", "racflow"}
	for _, arg := range args {
		words = append(words, quotedArgument(arg))
	}
	return strings.Join(words, " ")
}

// resuming returns the command line that resumes a run, with further flags.
func resuming(m journal.Manifest, state string, more []string) ([]string, error) {
	if m.Command == nil {
		return nil, fmt.Errorf("run %s does not say with which command it began, since a program began it: give that command again with --resume=%[1]s", m.ID)
	}
	state, err := filepath.Abs(state)
	if err != nil {
		return nil, err
	}
	file := m.File
	if rel, err := filepath.Rel(m.Command.Dir, file); err == nil && filepath.IsLocal(rel) {
		file = rel
	}
	args := []string{"run", file, "--resume=" + m.ID, "--state=" + state}
	for _, v := range m.Variables {
		if name := "RACFLOW_VAR_" + v.Name; v.From == name && v.Value != redact.Placeholder && os.Getenv(name) == "" {
			args = append(args, "--var="+v.Name+"="+v.Value)
		}
	}
	for _, f := range m.Command.Flags {
		switch flag := "--" + f.Name + "=" + f.Value; {
		case f.Name == "trust" || gone["--"+f.Name] != "": // a run that workers answered is resumed on this machine
		case !slices.Contains(unrepeated, f.Name) || !m.Mine: // the command of a run of another user is only shown
			args = append(args, flag)
		case !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(strings.TrimLeft(arg, "-")+"=", f.Name+"=") }):
			return nil, fmt.Errorf("run %s began with %s, which has to be given again: racflow runs resume %[1]s -- %s", m.ID, flag, quotedArgument(flag))
		}
	}
	for _, name := range m.Command.Withheld {
		if !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(strings.TrimPrefix(arg, "--var="), name+"=") }) && os.Getenv("RACFLOW_VAR_"+name) == "" {
			return nil, fmt.Errorf("run %s began with a value of the variable %s that is a secret, which is not kept: set RACFLOW_VAR_%[2]s in the environment", m.ID, name)
		}
	}
	return append(args, more...), nil
}
