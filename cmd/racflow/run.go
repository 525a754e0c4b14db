package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/sdk"
)

// inputFlags say which items to work on.
type inputFlags struct {
	input string
	limit int
}

func (f *inputFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.input, "input", "", "read items from `FILE` (tsv, csv or jsonl; - is standard input) in place of the pipeline's input")
	c.Flags().IntVar(&f.limit, "limit", 0, "stop after `N` items")
}

func newRun() *cobra.Command {
	var flags fileFlags
	var input inputFlags
	var keep journalFlags
	var to, format string
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Take the items of the input through a pipeline",
		Long: `Take the items of the input through a pipeline. What the pipeline knows is
brought up to date first: only what changed since the last run is embedded.

Results go to standard output, or to --output; everything else to standard
error. Exit code 0: every item was answered; 1: the run could not start or
broke off; 3: it finished, and some items or rows failed, or lack a voter;
130: interrupted.

Where the budget is spent, or a voter's service stays away, the other voters
answer the rest of the items. Such an answer is provisional: its result names the
voters that are missing, and --resume asks for them. Where no other voter remains,
the run breaks off.

With --output FILE, results are written to FILE.part as they come, and FILE is
replaced when the run has worked through its input. Until then it stays as it
was. Two runs cannot write one FILE: the second is refused before it starts.
Pipes and devices, such as /dev/stdout, are written to directly.

In TSV each result is one line: \t, \n, \r, \\ and \u001b stand for a tab, the
ends of lines, a backslash and any other control character, by its number.

Every result is kept as it is reached, in the runs folder of --state. A run that
broke off, was killed or has provisional answers is resumed by the same command
and --resume: what was answered is not asked again, items that failed are tried
again, and FILE is written whole. Unfinished runs are kept until they are resumed
or removed with racflow runs remove; of the others the newest 20.`,
		Args: keep.args,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if to == "-" {
				to = ""
			}
			// A wrong format shows before anything starts.
			format := resultFormat(format, to, c.OutOrStdout())
			if _, err := result.NewWriter(format, io.Discard, ""); err != nil {
				return err
			}
			if err := keep.check(input.input); err != nil {
				return err
			}
			var out *output.File
			j, err := newJob(c.Context(), c.InOrStdin(), &flags, &input, keep.file(args), func(j *job) (err error) {
				out, err = output.Open(to, c.OutOrStdout(), j.pipeline.Reads()...)
				return err
			})
			if out != nil {
				defer func() { err = errors.Join(err, out.Close()) }()
			}
			if err != nil {
				return err
			}
			defer j.close()
			if err := j.open(c.Context(), &keep); err != nil {
				return err
			}
			results, err := result.NewWriter(format, out, "--output FILE keeps them all")
			if err != nil {
				return err
			}
			counter := eval.NewCounter(j.ready.Labels()...)
			o, err := j.run(c.Context(), func(batch []run.Result) error {
				for _, r := range batch {
					counter.Add(r)
					if err := results.Write(r); err != nil {
						return fmt.Errorf("write results: %w", err)
					}
				}
				if !results.Streams() {
					return nil
				}
				return results.Flush() // what was answered is not lost with the process
			})
			written := results.Flush()
			if written == nil && err == nil {
				written = out.Commit()
			}
			if written != nil {
				written = fmt.Errorf("write results: %w", written)
			}
			if written == nil && (err == nil || c.Context().Err() != nil || sdk.CodeOf(err) == sdk.CodeStopped) {
				where := ""
				if err == nil {
					where = out.Name()
				}
				o.summarize(c.ErrOrStderr(), counter, where)
			}
			if err := j.end(c.ErrOrStderr(), o, out, errors.Join(err, written)); err != nil {
				return err
			}
			return o.exit()
		},
	}
	flags.register(c)
	input.register(c)
	keep.register(c)
	flags.calls.register(c)
	c.Flags().StringVar(&to, "output", "", "write results to `FILE` (- is standard output)")
	c.Flags().StringVar(&format, "format", "", "jsonl, tsv or table (default: table on a terminal, else by the output's name, else jsonl)")
	return c
}

func resultFormat(format, output string, out io.Writer) string {
	switch {
	case format != "":
		return format
	case strings.EqualFold(filepath.Ext(output), ".tsv"):
		return result.TSV
	case output == "" && isTerminal(out):
		return result.Table
	}
	return result.JSONL
}

// outcome is what came of a run.
type outcome struct {
	totals run.Totals
	faults int // rows of the knowledge that could not be used
}

func (o *outcome) exit() error {
	if t := o.totals; t.Failed > 0 || t.Provisional > 0 || t.Left > 0 || o.faults > 0 {
		return &exitError{code: exitItemsFailed}
	}
	return nil
}

const undecided = "without an answer"

// why tells the most frequent reason of items without an answer.
func (o *outcome) why() string {
	if len(o.totals.Reasons) == 0 {
		return ""
	}
	most := slices.MaxFunc(o.totals.Reasons, func(a, b run.Reason) int { return cmp.Compare(a.Items, b.Items) })
	text := fmt.Sprintf(" (%d: %s", most.Items, most.Text)
	if most.Example != "" {
		text += fmt.Sprintf(", %.80q", most.Example)
	}
	return text + ")"
}

func (o *outcome) summarize(w io.Writer, counter *eval.Counter, where string) {
	t := o.totals
	fmt.Fprintf(w, "%d items in %.1f s", t.Items, t.Elapsed.Seconds())
	for _, part := range []struct {
		n    int
		name string
	}{{t.Undecided, undecided}, {t.Flagged, "flagged"}, {t.Failed, "failed"}, {t.Provisional, "provisional"}, {t.Earlier, "from before"}, {t.Left, "read and left"}} {
		if part.n > 0 {
			fmt.Fprintf(w, ", %d %s", part.n, part.name)
			if part.name == undecided {
				fmt.Fprint(w, o.why())
			}
		}
	}
	if r := counter.Report(t); r.Scored > 0 && r.Scored >= t.Items/2 {
		fmt.Fprintf(w, "; accuracy %.3f against the input's labels", r.Accuracy)
	}
	if where != "" {
		fmt.Fprintf(w, "; results in %s", where)
	}
	fmt.Fprintln(w)
}
