package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// votedRows is on how many rows of a knowledge voters vote unless a flag says otherwise.
const votedRows = 10_000

var doctorLong = `Look for mistakes in the rows of the knowledge and of the input, and show them, the
most severe first, with some of the rows and what to do. No model is asked, and no file is
changed.

  swapped        error    the columns of text and label were taken for each other
  spelling       error    labels differ only by case or by what separates their words
  contradiction  error    one text has several labels; warning below 1 % of the rows
  leak           error    rows of the input with a label are in the knowledge, so that figures
                          flatter; info below 1 % of them
  unknown        error    no row of the input has a label that the knowledge has; info: some
  suspect        warning  votes contradict the label
  near           warning  texts are nearly the same, and their labels differ
  near_leak      warning  rows of the input are nearly the same as rows of the knowledge; info below 1 %
  few, long      warning  labels with fewer than 5 rows; labels that look like texts
  cut            warning  texts whose ends the embedder does not see
  invalid        warning  rows that cannot be used, such as those without a text
  copies         info     texts stand there several times, with one label
  languages      info     the texts are in several languages

Texts are compared without regard to case and spaces; nearly the same are texts whose runs of
four characters agree to 80 %. Of documents copies, near copies, languages and cut texts are looked for.

For suspect, the voters neighbours, prototype and linear vote on rows of the knowledge, each of which
is kept out of what they know. How often they err on right labels is learned from all rows, so that
a row is named only where its label is rather wrong than right; the share of these that is expected
to be wrong is printed (expected in JSON). With 5 % of the labels of public sets swapped at
random, 81 to 96 in 100 of the rows that it named had been swapped, where it expected 73 to 98, and it
named 40 to 100 in 100 of those.
The knowledge is embedded for it as for a run. Of more than
` + fmt.Sprint(votedRows) + ` rows it looks at a sample of so many: --votes N for N of them, --votes 0 for none.

--fix FILE writes a copy of the knowledge's rows to a .tsv, .csv or .jsonl file, to be used in the place of
the knowledge's own: without copies, with one spelling for each label, the commonest, and with another label
where votes leave hardly a doubt. Such a row has "relabel" in the column doctor_action, and its
old label in doctor_label. Rows with "review" are as they were, and doctor_label has what they may be.
doctor_why says why. Read these rows, correct what is wrong, and remove the three columns.

A run and an evaluation begin with a short look for errors, which takes the time of
reading the rows.

Exit code 0: there are no errors, whatever else was found; 3: there are; 1: the look could not
be taken.`

func newDoctor() *cobra.Command {
	var flags fileFlags
	var fix string
	var votes int
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "Look for mistakes in the rows of the knowledge and of the input",
		Long:  doctorLong,
		Example: `  racflow doctor pipelines/intent.hcl
  racflow doctor --fix corrected.tsv pipelines/intent.hcl
  racflow doctor --votes 0 --json pipelines/intent.hcl`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if votes < 0 {
				return errors.New("--votes: it is a number of rows, at least 0")
			}
			format := source.FormatOf(fix)
			if fix != "" && (!source.Is(fix) || !slices.Contains([]source.Format{source.TSV, source.CSV, source.JSONL}, format)) {
				return fmt.Errorf("--fix %s: name a file that ends in .tsv, .csv or .jsonl", fix)
			}
			return flags.files(c, func(a *app) error {
				found, err := a.Diagnose(c.Context(), args[0], votes)
				if err != nil {
					return err
				}
				a.progress.Clear()
				if fix != "" {
					if err := propose(c, found, fix, format, args[0]); err != nil {
						return err
					}
				}
				if asJSON {
					err = writeJSON(c.OutOrStdout(), found.Report)
				} else {
					err = report.Doctor(c.OutOrStdout(), found.Report)
				}
				if err == nil && found.Serious() {
					err = &exitError{code: exitItemsFailed}
				}
				return err
			})
		},
	}
	flags.register(c)
	flags.registerInput(c)
	c.Flags().IntVar(&votes, "votes", votedRows, "ask voters about the labels of at most `N` rows of a knowledge; 0: of none")
	c.Flags().StringVar(&fix, "fix", "", "write a corrected copy of the knowledge's rows to `FILE`, with what was changed and why")
	c.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return c
}

// propose writes a corrected copy of the only knowledge with rows.
func propose(c *cobra.Command, found *engine.Diagnosis, to string, format source.Format, file string) (err error) {
	var sets []*doctor.Set
	reads := []string{file}
	for _, s := range found.Knowledge {
		if reads = append(reads, s.Path); !s.Documents() {
			sets = append(sets, s)
		}
	}
	if len(sets) != 1 {
		return fmt.Errorf("--fix corrects one knowledge that is made of rows, and this pipeline has %d", len(sets))
	}
	out, err := disk.OpenOutput(to, io.Discard, reads...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	p := doctor.Propose(sets[0])
	if err := p.Write(out, format); err != nil {
		return fmt.Errorf("--fix %s: %w", to, err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s relabelled, %d to review, %s removed\n", to, terminal.Plural(p.Relabelled, "row"), p.Marked, terminal.Plural(p.Removed, "copy"))
	return nil
}

// partNames are the parts that eval can leave out.
var partNames = strings.Join(eval.Parts, ", ")

var evalLong = `Measure a pipeline on an input with labels: accuracy, macro-averaged F1, a table
per label, what each voter reaches alone and how many of its answers are
acceptable, agreement, rate and latency. An item that failed or got no answer
counts as wrong. An item whose label the knowledge does not have is out of
scope: no answer is the right one there, and both kinds are counted by themselves.

Accuracies have the interval that holds the true one in 95 of 100 cases (Wilson's
score interval). Differences of accuracies have one, too, which compares item by item
(Tango's for paired proportions).

Of the confidence of answers or, where the election does not estimate any, of their
agreement, it measures how far it can be taken at its word:

  ECE    the mean distance between confidence and accuracy, over 15 bins (Guo et
         al. 2017), beside what chance makes of perfectly calibrated confidences:
         a greater one shows that these are not
  NLL    the mean negative log-likelihood of whether the answer is right
  Brier  the mean squared distance between the confidence and 1 or 0, as the
         answer is right or not (Brier 1950)

An item without an answer has the confidence 0 there, and no right answer. SUREST is
the accuracy of the surest items (selective classification: Geifman and El-Yaniv 2017)
and the confidence from which on they are; one that is rightly left without an answer
is right there, as in the accuracy. flags says how many of the errors the flag rule
catches, and how many of the flagged items are right. Where a file of variables states
a promise of racflow tune --accuracy, promise says what became of it on these items.

A table has the pairs of labels that are confused, the most frequent first (confused in
JSON, with all of them). --errors N shows the N wrong answers that the pipeline was
surest of, each with the entries found that have its label: the neighbours that speak
for it. --output FILE writes the results of all items, as racflow run does.

Where more than 5 % of a voter's answers do not count, a warning (dropped in JSON) has
the most frequent of them, and arguments that would make them count.

Of each voter it says how often it is right alone, and of several by how many points it
is better than the election, all of the items that it was asked about; what weight it
has in an election that weighs; and what it adds: the election is held again without
it. Nobody is asked again, so the others' votes stay as they are, also of a voter that
was asked because of what this one said; and so do weights that the election has learned.

Where the input says which passages should be found, in a column gold, it measures
what each retrieve and rerank stage left: recall@k, the mean share of an item's gold
passages among the first k, which is published as Pass@k too; 1 - recall@20; nDCG@10;
MRR. Items without gold passages are left out. Where an item failed, the stages
that it did not get through count as if they had found nothing.

--sweep runs the pipeline once for each value of an argument, or for each
combination where it is given several times, and prints a row for each:

  racflow eval --sweep neighbours.top_k=5,15,60 --sweep var.election=soft,majority FILE

A target is STAGE.ARGUMENT, an argument of the block or of its config, or
BLOCK.STAGE.ARGUMENT where several stages have the name, or var.NAME. Of a model block it is
model.NAME.ARGUMENT, and of a knowledge embed.KNOWLEDGE.ARGUMENT, or chunk or store. Values are
measured in the order given. llm.n=3,1 sends each prompt once, and its row for 1
shows the tokens of the request for 3; llm.n=1,3 sends it again for two more. Of each
voter that is asked over the network, such as a language model, a row says how many
of its answers were acceptable.

--ablate runs it whole, and once without each part that is named, and prints a row
for each. Parts are ` + partNames + `.`

// evaluating is racflow eval.
type evaluating struct {
	flags   fileFlags
	to      resultFlags
	sweep   []string
	asJSON  bool
	options eval.Options
}

func newEval() *cobra.Command {
	var e evaluating
	c := &cobra.Command{
		Use:   "eval [FILE]",
		Short: "Measure a pipeline on an input with labels or gold passages",
		Long:  evalLong,
		Example: `  racflow eval --errors 20 pipelines/intent.hcl
  racflow eval --sweep neighbours.top_k=5,15,60 pipelines/intent.hcl
  racflow eval --input questions.tsv --ablate enrich,lexical,rerank pipelines/contextual.hcl`,
		Args: oneFile,
		RunE: e.run,
	}
	o := &e.options
	c.Flags().StringArrayVar(&e.sweep, "sweep", nil, "measure with each value of an argument: `TARGET=VALUE,VALUE` (may be repeated)")
	c.Flags().StringSliceVar(&o.Ablate, "ablate", nil, "measure without each of these `PARTS`: "+partNames)
	c.Flags().IntSliceVar(&o.Cuts, "k", eval.Cuts, "measure recall among the first `K,K` passages")
	c.Flags().IntVar(&o.Errors, "errors", 0, "show the `N` wrong answers that the pipeline was surest of, with the neighbours that speak for them")
	c.Flags().BoolVar(&e.asJSON, "json", false, "print the evaluation as JSON")
	e.flags.register(c)
	e.flags.registerInput(c)
	e.to.register(c)
	e.flags.registerCalls(c)
	e.flags.registerTelemetry(c)
	return c
}

// several reports whether one table compares several pipelines.
func (e *evaluating) several() bool { return len(e.options.Sweep)+len(e.options.Ablate) > 0 }

// check reads the flags, and refuses those that do not go together.
func (e *evaluating) check(stdout io.Writer) (err error) {
	o := &e.options
	if o.Sweep, err = parseSweep(e.sweep); err != nil {
		return err
	}
	for _, k := range o.Cuts {
		if k < 1 {
			return fmt.Errorf("--k: %d is no length of a list; it is at least 1", k)
		}
	}
	switch {
	case len(o.Sweep) > 0 && len(o.Ablate) > 0:
		return errors.New("give --sweep or --ablate: one table shows one or the other")
	case e.several() && (o.Errors > 0 || e.to.name != ""):
		return errors.New("--output and --errors are of one pipeline: leave out --sweep and --ablate")
	case o.Errors < 0:
		return errors.New("--errors: it is at least 0")
	case e.to.name == "" && (e.to.columns != nil || e.to.format != "" || e.to.overwrite):
		return errors.New("--columns, --format and --overwrite are about the results that --output FILE writes")
	case disk.IsStdout(e.to.name, stdout):
		return errors.New("the evaluation goes to standard output: name a file for the results with --output")
	case e.several() && e.flags.input == "-":
		return errors.New("the input is read several times, which standard input does not allow: name a file with --input")
	}
	return e.to.check()
}

func (e *evaluating) run(c *cobra.Command, args []string) error {
	if err := e.check(c.OutOrStdout()); err != nil {
		return err
	}
	e.flags.more.Set = e.options.First()
	return e.flags.pipelineOf(c, args[0], c.InOrStdin(), func(a *app, p *engine.Pipeline) (err error) {
		var kept *results
		if e.to.name != "" {
			if kept, err = e.to.open(c, a, p, ""); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, kept.close()) }()
			e.options.Results = kept.write
		}
		found, err := p.Evaluate(c.Context(), e.options)
		if kept != nil {
			err = kept.finish(err)
			kept.report(c.ErrOrStderr())
		}
		if err != nil {
			return withoutFigures(err)
		}
		if err := e.write(c.OutOrStdout(), found); err != nil {
			return err
		}
		if found.Incomplete {
			return &exitError{code: exitItemsFailed}
		}
		return nil
	})
}

func (e *evaluating) write(out io.Writer, found *engine.Evaluation) error {
	switch {
	case e.several() && e.asJSON:
		return writeJSON(out, found.Comparison)
	case e.several():
		return report.Comparison(out, found.Comparison)
	case e.asJSON:
		return writeJSON(out, found.Rows[0].Report)
	}
	return report.Eval(out, found.Rows[0].Report)
}

// maxCombinations bounds a product that was surely not meant.
const maxCombinations = 1000

// parseSweep reads --sweep flags.
func parseSweep(flags []string) ([]eval.Target, error) {
	all, err := parseTargets("--sweep", flags)
	combinations := 1
	for _, t := range all {
		if combinations *= len(t.Values); combinations > maxCombinations {
			return nil, fmt.Errorf("--sweep asks for more than %d combinations", maxCombinations)
		}
	}
	return all, err
}

// parseTargets reads flags with a name: TARGET=VALUE,VALUE,... each.
func parseTargets(name string, flags []string) ([]eval.Target, error) {
	var all []eval.Target
	for _, f := range flags {
		target, values, ok := strings.Cut(f, "=")
		t := eval.Target{Name: strings.TrimSpace(target), Values: splitValues(values)}
		if !ok || t.Name == "" || len(t.Values) == 0 {
			return nil, fmt.Errorf("%s %s: write TARGET=VALUE,VALUE, such as neighbours.top_k=5,15,60 or var.election=soft,majority", name, f)
		}
		for _, other := range all {
			if other.Name == t.Name {
				return nil, fmt.Errorf("%s %s is given twice: name all its values in one", name, t.Name)
			}
		}
		all = append(all, t)
	}
	return all, nil
}

// splitValues splits at the commas that stand outside of quotes and brackets.
func splitValues(text string) []string {
	var values []string
	depth, from, quoted := 0, 0, false
	add := func(to int) {
		if v := strings.TrimSpace(text[from:to]); v != "" {
			values = append(values, v)
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == ',' && depth <= 0:
			add(i)
			from = i + 1
		}
	}
	add(len(text))
	return values
}
