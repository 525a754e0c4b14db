package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

const runLong = `What the pipeline knows is brought up to date first: only what changed since the last run is
embedded. Results go to standard output or to --output, everything else to standard error.

Exit code 0: every item was answered; 1: the run could not start or broke off; 3: it finished, and
some items or rows failed, or lack a voter, or a voter was refused every item; 130: it was interrupted.

--output FILE. Results are written to FILE.part as they come, which replaces FILE at the end of the
input. Two runs cannot write one FILE, and what an unfinished run left is replaced only with --overwrite.
The name says the format: .jsonl, .tsv or .csv, with .gz or .zst behind it, or .parquet; --format says it for
other names, pipes and devices. JSONL has each result whole, and the input's other columns under the key fields. Tables have the columns id, text, expected, answer,
agreement, confidence, unknown, labels (of sets and trees), runner_up, flagged, reason, error, citations,
candidates and missing, and then the input's own; one of the same name becomes input_NAME. --columns chooses,
and may also name votes, fields and decided. TSV writes tabs, line ends and backslashes as \t, \n, \r and \\. CSV has texts as
they are, also those that a spreadsheet takes for formulas.

--resume. Every result is kept in --state as it is reached. The same command with --resume, or
racflow runs resume, continues a run that was killed, broke off or has provisional answers: what was
answered is not asked again, failed items are tried again, and FILE is written whole. Prices and what
stages chose when the run began hold to its end. Unfinished runs are kept until they are resumed or
removed, of the others the newest 20.

--calls N and --budget MONEY. The other voters answer every item first. Then items are sent to the
voters that call a service, those first whose answers are least sure, by confidence or agreement. A voter's when
rule still decides which items may be sent. Items that are not sent are answered, and nothing is missing. The
items have to be in a file: standard input cannot be read twice.

--max-cost stops the run's calls wherever it is. Where that is spent, or a service cannot answer, the
other voters answer. Such an answer is provisional: it names the missing voters, and --resume asks for
them. Where no other voter remains, the run breaks off.

--part I/N. The run answers every Nth row of the input, from row I on. Runs of all parts, on one machine or
several, need the same files and no server. racflow runs merge writes what one run would have written. --max-cost
and limits are divided by N, unless --whole-limits is given. For schedulers that count from 0, part 0/N is N/N.`

// running holds the flags of racflow run.
type running struct {
	flags     fileFlags
	to        resultFlags
	noJournal bool
}

func newRun() *cobra.Command {
	var r running
	c := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Classify the texts of the input, or search for each of them",
		Long:  runLong,
		Example: `  racflow run pipelines/intent.hcl
  racflow run --input texts.csv --output answers.csv pipelines/intent.hcl
  racflow run -var model=gpt-4o-mini --max-cost 2 pipelines/intent.hcl
  racflow run --resume pipelines/intent.hcl`,
		Args: r.fileAndRun,
		RunE: r.run,
	}
	r.flags.register(c)
	r.flags.registerInput(c)
	r.flags.registerPart(c)
	r.to.register(c)
	section(c, "Earlier runs", r.registerRuns)
	r.flags.registerCalls(c)
	r.flags.registerSpend(c)
	r.flags.registerTelemetry(c)
	for _, other := range []string{"no-journal", "calls", "budget"} {
		c.MarkFlagsMutuallyExclusive("part", other)
	}
	return c
}

func (r *running) registerRuns(c *cobra.Command) {
	o := &r.flags.more
	c.Flags().StringVar(&o.Resume, "resume", "", "resume the run `ID`, or the newest of this file and pipeline that left items unanswered")
	c.Flags().Lookup("resume").NoOptDefVal = workspace.Newest
	c.Flags().BoolVar(&o.ResumeAnyway, "resume-anyway", false, "resume although the file, the input or the knowledge has changed: answers of both stand side by side")
	c.Flags().Var((*keep)(&o.Keep), "keep", "note of which items what was seen: notable (flagged, failed, wrong, without an answer) or all, in place of the pipeline's keep")
	c.Flags().BoolVar(&r.noJournal, "no-journal", false, "do not keep results in --state: the run cannot be resumed")
}

// fileAndRun checks the arguments: a file and, for --resume ID, the run.
func (r *running) fileAndRun(c *cobra.Command, args []string) error {
	o := &r.flags.more
	isRun := func(a string) bool { return a == workspace.Newest || journal.IsRunID(a) }
	if i := slices.IndexFunc(args, isRun); i >= 0 && len(args) <= 2 {
		if o.Resume != workspace.Newest {
			return oneFile(c, args)
		}
		o.Resume = args[i]
		args = slices.Delete(slices.Clone(args), i, i+1)
	}
	return oneFile(c, args)
}

// check refuses flags that do not go together, before anything starts.
func (r *running) check() error {
	switch o := &r.flags.more; {
	case o.Resume != "" && r.noJournal:
		return errors.New("--resume needs a journal: leave out --no-journal")
	}
	return r.to.check()
}

func (r *running) run(c *cobra.Command, args []string) (err error) {
	o, file := &r.flags.more, args[0]
	if len(args) == 2 && file == o.Resume {
		file = args[1]
	}
	if err := r.check(); err != nil {
		return err
	}
	o.Journal, o.Output = !r.noJournal, disk.OutputTarget(r.to.name, c.OutOrStdout())
	if o.Command, err = commandOf(c); err != nil {
		return err
	}
	return r.flags.pipelineOf(c, file, c.InOrStdin(), func(a *app, p *workspace.Pipeline) (err error) {
		results, err := r.to.open(c, a, p, o.Resume)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, results.close()) }()
		return runTo(c, a, p, results)
	})
}

// runTo answers the input with a pipeline, and writes the results to a file.
func runTo(c *cobra.Command, a *app, p *workspace.Pipeline, results *results) error {
	o, err := p.Work(c.Context(), results.write, results.finish)
	if o == nil {
		return err
	}
	w := c.ErrOrStderr()
	if !a.quiet && results.failed == nil && (err == nil || c.Context().Err() != nil || sdk.CodeOf(err) == sdk.CodeStopped) {
		where := ""
		if err == nil {
			where = results.file.Name()
		}
		if o.Err != nil && o.Run != "" { // results wait for earlier ones, and the journal stores them meanwhile
			o.Items = max(o.Items, a.Runs().Info(o.Run).Answered)
		}
		summarize(w, o, where)
	}
	if part := c.Flag("part"); err == nil && o.Items+o.Left == 0 && part != nil && part.Changed {
		fmt.Fprintf(w, "part %s has no item: the input has fewer rows than parts\n", part.Value)
	}
	if !a.quiet {
		reportSpent(w, p, o)
	}
	reportMissing(w, o)
	for _, stage := range o.Refusing {
		fmt.Fprintf(w, "%s failed: its service refused every item, and the answers are those of the other voters\n", stage)
	}
	reportUnfinished(w, p, o, results.file)
	if n := a.Runs().Unfinished(); o.Run != "" && n > manyRuns {
		fmt.Fprintf(w, "%d runs are unfinished and kept: racflow runs list --state %s shows them, racflow runs remove removes them\n", n, c.Flag("state").Value)
	}
	if err == nil && o.Incomplete() {
		err = &exitError{code: exitItemsFailed}
	}
	return err
}

// manyRuns is the number of unfinished runs from which a person is reminded of them.
const manyRuns = 20

const undecided = "without an answer"

// summarize prints the results of a run in one line.
func summarize(w io.Writer, o *workspace.Outcome, where string) {
	fmt.Fprintf(w, "%d items in %.1f s", o.Items, o.Elapsed.Seconds())
	for _, part := range []struct {
		n    int
		name string
	}{{o.Undecided, undecided}, {o.Decided, "decided by people"}, {o.Flagged, "flagged"}, {o.Failed, "failed"}, {o.Provisional, "provisional"}, {o.Earlier, "from before"}, {o.Left, "read and left"}} {
		if part.n > 0 {
			fmt.Fprintf(w, ", %d %s", part.n, part.name)
			if part.name == undecided {
				fmt.Fprint(w, commonest(o.Reasons))
			}
		}
	}
	switch r := o.Evaluation; {
	case r.Scored == 0 || r.Scored < o.Items/2:
	case o.Provisional+o.Left > 0:
		fmt.Fprintf(w, "; no accuracy, which would be of a mixture: %d of %s are not final", o.Provisional+o.Left, terminal.Plural(o.Items+o.Left, "item"))
	default:
		fmt.Fprintf(w, "; accuracy %.3f against the input's labels", r.Accuracy)
		if r.Unusable > 0 {
			fmt.Fprintf(w, ", without %s that cannot be used", terminal.Plural(r.Unusable, "row"))
		}
	}
	if where != "" {
		fmt.Fprintf(w, "; results in %s", terminal.Line(where))
	}
	fmt.Fprintln(w)
}

// commonest returns the most frequent reason of items without an answer.
func commonest(reasons []outcome.Reason) string {
	if len(reasons) == 0 {
		return ""
	}
	most := slices.MaxFunc(reasons, func(a, b outcome.Reason) int { return cmp.Compare(a.Items, b.Items) })
	text := fmt.Sprintf(" (%d: %s", most.Items, most.Text)
	if most.Example != "" {
		text += fmt.Sprintf(", %.80q", most.Example)
	}
	return text + ")"
}

// reportSpent reports on how many items calls or money were spent.
func reportSpent(w io.Writer, p *workspace.Pipeline, o *workspace.Outcome) {
	s := o.Spent
	if s == nil {
		return
	}
	var voters []string
	for _, stage := range p.Definition().Stages {
		if spend.Paid(stage) {
			voters = append(voters, stage.Name)
		}
	}
	fmt.Fprintf(w, "%d of %s sent to %s, chosen by confidence", s.Asked, terminal.Plural(o.Items, "item"), strings.Join(voters, " and "))
	if s.Wanted < o.Items {
		fmt.Fprintf(w, " among the %d for which its rule holds", s.Wanted)
	}
	if l := s.Limit; l.Money != nil {
		fmt.Fprintf(w, ": %s of %s spent", governor.Money(s.Cost), governor.Money(*l.Money))
	} else {
		fmt.Fprintf(w, ": %d of %s", s.Calls, terminal.Plural(*l.Calls, "call"))
	}
	switch {
	case s.RestCost > 0:
		fmt.Fprintf(w, "; the others would cost about %s", governor.Money(s.RestCost))
	case s.RestCalls > 0:
		fmt.Fprintf(w, "; the others would take %s", terminal.Plural(s.RestCalls, "call"))
	}
	fmt.Fprintln(w)
}

// reportMissing names the stages that had to stop.
func reportMissing(w io.Writer, o *workspace.Outcome) {
	again := ""
	if o.Run != "" {
		again = fmt.Sprintf("; the same command with --resume=%s asks for it", o.Run)
	}
	for _, m := range o.Missing {
		why := terminal.Sanitize(strings.TrimPrefix(m.First.Error(), m.Stage+": "))
		switch {
		case m.Items > 0 && m.Left > 0:
			fmt.Fprintf(w, "%s answered, and %d not, without %s: %s%s\n", terminal.Plural(m.Items, "item"), m.Left, m.Stage, why, again)
		case m.Items > 0:
			fmt.Fprintf(w, "%s answered without %s: %s%s\n", terminal.Plural(m.Items, "item"), m.Stage, why, again)
		case m.Left > 0 && o.Err == nil:
			fmt.Fprintf(w, "%s not answered for want of %s: %s%s\n", terminal.Plural(m.Left, "item"), m.Stage, why, again)
		case o.Err == nil:
			fmt.Fprintf(w, "%s had to stop: %s%s\n", m.Stage, why, again)
		}
	}
}

// reportUnfinished prints where the results of a run are that ended early, and how to resume the run
// if items are left.
func reportUnfinished(w io.Writer, p *workspace.Pipeline, o *workspace.Outcome, file *disk.Output) {
	part := ""
	if file.Partial() != "" {
		part = terminal.Sanitize(fmt.Sprintf("results so far are in %s, and %s is unchanged", file.Partial(), file.Name()))
	}
	if o.Run == "" {
		if o.Err != nil && part != "" {
			fmt.Fprintf(w, "the run ended early: %s\n", part)
		}
		if (o.Err != nil || len(o.Missing) > 0) && p.InputPath() == "-" {
			fmt.Fprintln(w, "standard input cannot be read again, so this run cannot be resumed: items in a file can")
		}
		return
	}
	resume := fmt.Sprintf("the same command with --resume=%s", o.Run)
	completes := ""
	if file.Name() != "" {
		completes = " and completes " + terminal.Sanitize(file.Name())
	}
	switch {
	case o.Err != nil && part != "":
		fmt.Fprintf(w, "run %s ended early: %s\n%s resumes it%s\n", o.Run, part, resume, completes)
	case o.Err != nil:
		fmt.Fprintf(w, "run %s ended early: %s resumes it%s\n", o.Run, resume, completes)
	case o.Failed > o.Unusable:
		fmt.Fprintf(w, "%s tries the failed items again\n", resume)
	}
}

// withoutFigures explains why a measurement has no figures: a stage had to stop.
func withoutFigures(err error) error {
	if sdk.CodeOf(err) == sdk.CodeStopped && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w; there are no figures, because some would be of items without that stage; every answer so far is kept, and the same command asks for the rest, with more to spend or once the service is back", err)
	}
	return err
}
