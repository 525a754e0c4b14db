package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/terminal"
)

// journalFlags say whether results are kept, and which run to resume.
type journalFlags struct {
	resume string
	anyway bool
	off    bool
}

func (f *journalFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.resume, "resume", "", "resume the run `ID`, or the newest of this file and pipeline that left items unanswered")
	c.Flags().Lookup("resume").NoOptDefVal = engine.Newest
	c.Flags().BoolVar(&f.anyway, "resume-anyway", false, "go on although the file, the input or the knowledge has changed: answers of both stand side by side")
	c.Flags().BoolVar(&f.off, "no-journal", false, "do not keep results in --state: the run cannot be resumed")
}

// args checks the arguments: a file and, for --resume ID, the run.
func (f *journalFlags) args(c *cobra.Command, args []string) error {
	if f.resume == engine.Newest && len(args) == 2 {
		for i, arg := range args {
			if journal.IsID(arg) {
				f.resume, args = arg, []string{args[1-i]}
				break
			}
		}
	}
	return oneFile(c, args)
}

// file is the pipeline file among the arguments.
func (f *journalFlags) file(args []string) string {
	for _, arg := range args {
		if arg != f.resume {
			return arg
		}
	}
	return args[0]
}

// check refuses what cannot be resumed, whatever the file says.
func (f *journalFlags) check(input string) error {
	switch {
	case f.resume == "":
		return nil
	case input == "-":
		return errors.New("standard input cannot be read again, so no run over it can be resumed: keep the items in a file and name it with --input")
	case f.off:
		return errors.New("--resume needs a journal: leave out --no-journal")
	}
	return nil
}

// open opens the journal, of a new run or of the one to resume.
func (j *job) open(ctx context.Context, f *journalFlags) error {
	if err := f.check(j.path); err != nil {
		return err
	}
	if f.off || j.path == "-" {
		return nil
	}
	if f.resume == "" {
		book, before, err := j.pipeline.Begin(ctx)
		if before != "" {
			fmt.Fprintf(os.Stderr, "run %s of this file and input ended early: --resume=%[1]s resumes it\n", before)
		}
		j.book = book
		return err
	}
	book, err := j.pipeline.Resume(ctx, f.resume, f.anyway)
	var changed *engine.ChangedError
	if errors.As(err, &changed) {
		return fmt.Errorf("run %s cannot be resumed, because this has changed: %s. Change it back, begin anew without --resume, "+
			"or mix answers of before and after with --resume-anyway", changed.Run, strings.Join(changed.Changed, "; "))
	}
	if err != nil {
		return err
	}
	j.book = book
	fmt.Fprintf(os.Stderr, "resuming run %s: %d items are answered\n", book.ID(), book.Known())
	return nil
}

// end closes the journal and says what is missing, where the results are, and how to
// resume the run where something is left to do. It returns the error of the run.
func (j *job) end(w io.Writer, o *outcome, out *output.File, err error) error {
	again := ""
	if j.book != nil {
		again = fmt.Sprintf("; the same command with --resume=%s asks for it", j.book.ID())
	}
	for _, m := range o.totals.Missing {
		why := terminal.Sanitize(strings.TrimPrefix(m.First.Error(), m.Stage+": "))
		switch {
		case m.Items > 0:
			fmt.Fprintf(w, "%s answered without %s: %s%s\n", terminal.Plural(m.Items, "item"), m.Stage, why, again)
		case err == nil:
			fmt.Fprintf(w, "%s had to stop: %s%s\n", m.Stage, why, again)
		}
	}
	part := out.Partial()
	if j.book == nil {
		if err != nil && part != "" {
			fmt.Fprintf(w, "the run ended early: results so far are in %s, and %s is unchanged\n", part, out.Name())
		}
		if (err != nil || len(o.totals.Missing) > 0) && j.path == "-" {
			fmt.Fprintln(w, "standard input cannot be read again, so this run cannot be resumed: items in a file can")
		}
		return err
	}
	reason := err
	if errors.Is(err, context.Canceled) {
		reason = errors.New("interrupted")
	}
	totals := journal.NewTotals(o.totals, reason)
	closed := j.book.Close(totals)
	if closed != nil {
		closed = fmt.Errorf("journal of the run: %w", closed)
	}
	completes := ""
	if out.Name() != "" {
		completes = " and completes " + out.Name()
	}
	switch {
	case err != nil && part != "":
		fmt.Fprintf(w, "run %s ended early: results so far are in %s, and %s is unchanged\n", j.book.ID(), part, out.Name())
		fmt.Fprintf(w, "the same command with --resume=%s resumes it%s\n", j.book.ID(), completes)
	case err != nil:
		fmt.Fprintf(w, "run %s ended early: the same command with --resume=%[1]s resumes it%s\n", j.book.ID(), completes)
	case totals.Failed > 0:
		fmt.Fprintf(w, "the same command with --resume=%s tries the failed items again\n", j.book.ID())
	}
	if n := j.Runs().Unfinished(); n > manyRuns {
		fmt.Fprintf(w, "%d runs are unfinished and kept: racflow runs list --state %s shows them, racflow runs remove removes them\n", n, j.flags.state)
	}
	return errors.Join(err, closed)
}

// manyRuns is how many unfinished runs there may be before a person is reminded
// of them.
const manyRuns = 20
