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

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

func newRun() *cobra.Command {
	var flags fileFlags
	var to resultFlags
	var on remoteRun
	var noJournal bool
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Take the items of the input through a pipeline",
		Long: `Take the items of the input through a pipeline. What the pipeline knows is
brought up to date first: only what changed since the last run is embedded.

Results go to standard output, or to --output; everything else to standard
error. Exit code 0: every item was answered; 1: the run could not start or
broke off; 3: it finished, and some items or rows failed, or lack a voter;
130: interrupted.

With --calls N or --budget MONEY, voters that call a service are asked where that counts
most. First the other voters answer every item of the input. Then items are sent,
those first that gain most for what they cost: the gain is one minus the confidence,
or the agreement where the election gives no confidence. A voter's when rule decides
as ever which items may be sent. An item is sent if all the calls that it may take are
left; a call is a request, and requests that fail and are sent again are not counted.
The same input and file give the same answers, and answers from the cache count as if
they were paid for now. Items that are not sent are answered, and nothing is missing.
--resume continues to the same end, or to another one that is given with it.
Standard input cannot be read twice: there voters are asked as items come, until that
is spent, and the threshold that tune finds for a when rule should choose the items.
--max-cost is another thing: a bound on all that services cost, which stops the run's
calls wherever it is.

Where more than 5 % of a voter's answers do not count, a warning has the most frequent of
them, and arguments that would make them count.

Where the budget of --max-cost is spent, or a voter's service cannot answer (it is down, the
quota is spent, or --offline finds nothing in the cache), the other voters answer the items. Such an answer is provisional: its result names the
voters that are missing, and --resume asks for them. Where no other voter remains,
the run breaks off.

With --output FILE, results are written to FILE.part as they come, and FILE is
replaced when the run has worked through its input. Until then it stays as it
was. Two runs cannot write one FILE: the second is refused before it starts. So is
a run that would replace a FILE with more results than it has itself, or FILE.part
that a run left which ended early; --overwrite replaces both. Pipes and devices, such
as /dev/stdout, are written to directly.

FILE's name says how results are written: .jsonl, .tsv or .csv, each with .gz or .zst
after it where they are to be compressed, or .parquet. --format says it for other
names. JSONL has each result whole, with the input's other columns under the key
fields. The others have the columns id, text, expected (where the input has labels),
answer, agreement, confidence, runner_up, flagged, reason, error, citations,
candidates and missing, and then the input's own; one of these whose name is among
racflow's is called input_NAME. JSON from standard input does not say beforehand what
its columns are: they are JSON in one column fields. --columns chooses columns, for
JSONL as keys, and may also name votes, fields and decided (by whom and when, where a
person decided about the text).

In TSV each result is one line: \t, \n, \r, \\ and \u001b stand for a tab, the
ends of lines, a backslash and any other control character, by its number. CSV (RFC
4180, with lines that end in a line feed) has texts as they are, also those that a
spreadsheet takes for formulas because they begin with =, +, - or @. In Parquet a
column of the input has the type that suits all its values, and is text otherwise.

Every result is kept as it is reached, in the runs folder of --state. A run that
broke off, was killed or has provisional answers is resumed by the same command
and --resume, or by racflow runs resume: what was answered is not asked again, items that failed are tried
again, and FILE is written whole. What stages chose when the run began (a precision,
a profile) and its prices count to its end, also where the file gives other prices
by then. Unfinished runs are kept until they are resumed
or removed with racflow runs rm; of the others the newest 20, or what the journal block
of the pipeline says.

--again=RUN is for a new run over the same input, such as after a review: it takes from
RUN, an earlier run of the file, the answers that nothing which has changed can affect,
and says how many these are. Where nothing has changed, they are all. Where only the
knowledge has, and still has the same labels, an item is searched for: if the same
candidates with the same scores, and the same random examples, are found, its answer
holds, and no voter is asked. So changed rows affect the items that find them; those that
are searched for by words (mode = "lexical" or "hybrid") all change their scores a little
with every row. Scores change, too, and all rows are embedded again, when an embedder that learns
from the knowledge, such as hashing, does so anew: once that has grown or shrunk by more than
a fifth. Where a voter or election has learnt from the changed knowledge, or the
file has changed, everything is answered anew; what models said comes from the response
cache where they are asked the same. Items that failed before are answered anew, too.
Items whose text a person has decided about (a source with reviewed = true) are answered by that.

With --on SERVERS, the items are answered by other machines: by each racflow worker that is
connected to these NATS servers and has what the file needs. This process reads the
input, brings the knowledge up to date, keeps the journal, and writes results in
order: report and output are those of a run without --on. What a worker lacks is said
here, with the name of its machine. Workers may come and go; where the servers cannot be
reached, or cannot store anything, the run waits. --resume goes on after any death of
this process, with what workers have answered meanwhile; --on none goes on without them.
--detach hands over the whole input and leaves: racflow runs attach comes back for the
results, from any machine. No secret goes to the servers: workers have their own.`,
		// A file and, for --resume ID or --again ID, the run.
		Args: func(c *cobra.Command, args []string) error {
			isRun := func(a string) bool { return a == engine.Newest || journal.IsRunID(a) }
			if i := slices.IndexFunc(args, isRun); i >= 0 && len(args) <= 2 {
				switch {
				case flags.more.Resume == engine.Newest:
					flags.more.Resume = args[i]
				case flags.more.Again == engine.Newest:
					flags.more.Again = args[i]
				default:
					return oneFile(c, args)
				}
				args = slices.Delete(slices.Clone(args), i, i+1)
			}
			return oneFile(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			file := args[0]
			if len(args) == 2 && (file == flags.more.Resume || file == flags.more.Again) {
				file = args[1]
			}
			if flags.more.Again != "" && noJournal {
				return errors.New("--again keeps what it takes in a journal: leave out --no-journal")
			}
			if flags.more.Resume != "" && noJournal {
				return errors.New("--resume needs a journal: leave out --no-journal")
			}
			if err := to.check(); err != nil { // before anything starts
				return err
			}
			if err := on.check(&flags, &to); err != nil {
				return err
			}
			flags.more.Journal, flags.more.Output = !noJournal, disk.OutputTarget(to.name, c.OutOrStdout())
			var err error
			if flags.more.Command, err = commandOf(c); err != nil {
				return err
			}
			if err := on.open(c, &flags, file); err != nil {
				return err
			}
			defer on.close()
			return flags.pipelineOf(c, file, c.InOrStdin(), func(a *app, p *engine.Pipeline) (err error) {
				on.shows(a.display)
				if on.detach {
					return on.leave(c, p)
				}
				results, err := to.open(c, a, p, flags.more.Resume)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, results.close()) }()
				return runTo(c, a, p, results)
			})
		},
	}
	flags.register(c)
	flags.registerInput(c)
	c.Flags().StringVar(&flags.more.Resume, "resume", "", "resume the run `ID`, or the newest of this file and pipeline that left items unanswered")
	c.Flags().Lookup("resume").NoOptDefVal = engine.Newest
	c.Flags().StringVar(&flags.more.Again, "again", "", "take the answers of the run `ID`, or of the newest of this file and pipeline, where nothing that has changed affects them")
	c.Flags().Lookup("again").NoOptDefVal = engine.Newest
	c.Flags().BoolVar(&flags.more.ResumeAnyway, "resume-anyway", false, "resume although the file, the input or the knowledge has changed: answers of both stand side by side")
	c.Flags().Var((*keep)(&flags.more.Keep), "keep", "note of which items what was seen: notable (flagged, failed, wrong, without an answer) or all, in place of the pipeline's keep")
	c.Flags().BoolVar(&noJournal, "no-journal", false, "do not keep results in --state: the run cannot be resumed")
	flags.registerCalls(c)
	flags.registerTelemetry(c)
	flags.registerSpend(c)
	to.register(c)
	on.register(c)
	return c
}

// runTo takes the input through a pipeline, and writes the results to a file.
func runTo(c *cobra.Command, a *app, p *engine.Pipeline, results *results) error {
	o, err := p.Work(c.Context(), results.write, results.finish)
	if o == nil {
		return err
	}
	w := c.ErrOrStderr()
	if results.failed == nil && (err == nil || c.Context().Err() != nil || sdk.CodeOf(err) == sdk.CodeStopped) {
		where := ""
		if err == nil {
			where = results.file.Name()
		}
		summarize(w, o, where)
	}
	reportSpent(w, p, o)
	reportMissing(w, o)
	reportUnfinished(w, p, o, results.file)
	if n := a.Runs().Unfinished(); o.Run != "" && n > manyRuns {
		fmt.Fprintf(w, "%d runs are unfinished and kept: racflow runs list --state %s shows them, racflow runs rm removes them\n", n, c.Flag("state").Value)
	}
	if err == nil && o.Incomplete() {
		err = &exitError{code: exitItemsFailed}
	}
	return err
}

// manyRuns is how many unfinished runs there may be before a person is reminded
// of them.
const manyRuns = 20

const undecided = "without an answer"

// summarize says in a line what came of a run.
func summarize(w io.Writer, o *engine.Outcome, where string) {
	fmt.Fprintf(w, "%d items in %.1f s", o.Items, o.Elapsed.Seconds())
	for _, part := range []struct {
		n    int
		name string
	}{{o.Undecided, undecided}, {o.Decided, "decided by people"}, {o.Flagged, "flagged"}, {o.Failed, "failed"}, {o.Provisional, "provisional"}, {o.Earlier, "from before"}, {o.Taken, "taken from another run"}, {o.Left, "read and left"}} {
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
	}
	if where != "" {
		fmt.Fprintf(w, "; results in %s", where)
	}
	fmt.Fprintln(w)
}

// commonest is the most frequent reason of items without an answer.
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

// reportSpent says on how many items something was spent.
func reportSpent(w io.Writer, p *engine.Pipeline, o *engine.Outcome) {
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
	how := "chosen by confidence"
	if p.InputPath() == "-" {
		how = "as they came"
	}
	fmt.Fprintf(w, "%d of %s sent to %s, %s", s.Asked, terminal.Plural(o.Items, "item"), strings.Join(voters, " and "), how)
	if s.Wanted < o.Items {
		fmt.Fprintf(w, " among the %d for which its rule holds", s.Wanted)
	}
	if l := s.Limit; l.Money != nil {
		fmt.Fprintf(w, ": %s of %s spent\n", governor.Money(s.Cost), governor.Money(*l.Money))
	} else {
		fmt.Fprintf(w, ": %d of %s\n", s.Calls, terminal.Plural(*l.Calls, "call"))
	}
}

// reportMissing names the stages that had to stop.
func reportMissing(w io.Writer, o *engine.Outcome) {
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

// reportUnfinished says where the results of a run are that ended early, and how to
// resume it where something is left to do.
func reportUnfinished(w io.Writer, p *engine.Pipeline, o *engine.Outcome, file *disk.Output) {
	part := ""
	if file.Partial() != "" {
		part = fmt.Sprintf("results so far are in %s, and %s is unchanged", file.Partial(), file.Name())
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
		completes = " and completes " + file.Name()
	}
	switch {
	case o.Err != nil && part != "":
		fmt.Fprintf(w, "run %s ended early: %s\n%s resumes it%s\n", o.Run, part, resume, completes)
	case o.Err != nil:
		fmt.Fprintf(w, "run %s ended early: %s resumes it%s\n", o.Run, resume, completes)
	case o.Failed > 0:
		fmt.Fprintf(w, "%s tries the failed items again\n", resume)
	}
}

// withoutFigures explains a measurement that a stage ended which had to stop.
func withoutFigures(err error) error {
	if sdk.CodeOf(err) == sdk.CodeStopped && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w; there are no figures, because some would be of items without that stage; every answer so far is kept, and the same command asks for the rest, with more to spend or once the service is back", err)
	}
	return err
}
