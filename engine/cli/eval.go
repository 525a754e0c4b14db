package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// votedRows is the number of rows of a knowledge on which voters vote, unless a flag says otherwise.
const votedRows = 10_000

var doctorLong = `No model is asked, and no file is changed. Findings come with some of their rows and with what to do, the most
severe first:

  swapped        error    the columns of text and label were taken for each other
  spelling       error    labels differ only by case, blanks or what separates their words
  contradiction  error    one text has several labels; warning below 1 % of the rows
  leak           error    the knowledge has rows of the input, which flatters figures; info below 1 %
  unknown        error    no row of the input has a label that the knowledge has; info: some
  suspect        warning  voters contradict the label
  lookalike      warning  labels differ only by quotes, a final full stop, or letters of another script that look alike
  near           warning  texts are nearly the same, and their labels differ
  near_leak      warning  rows of the input are nearly the same as rows of the knowledge; info below 1 %
  few            warning  labels with fewer than 5 rows
  cut            warning  texts whose ends the embedder does not see
  invalid        warning  rows that cannot be used, such as those without a text
  copies         info     several rows have one text and one label
  written        info     labels are read without blanks and invisible characters at their ends, and in Unicode NFC

Nearly the same are texts whose runs of four characters agree to 80 %. Of documents it looks for copies, near
copies and cut texts.

For suspect, the voters neighbours, prototype and linear vote on rows that they have not seen. A row is named
where its label is rather wrong than right, and the share of these that is expected to be wrong is printed.
With 5 % of the labels of public sets swapped at random, 81 to 96 % of the rows that it named had been swapped
(it expected 73 to 98 %), and it named 40 to 100 % of those. Of more than ` + fmt.Sprint(votedRows) + ` rows it takes a sample.
Rows with several labels are not voted on.

All labelled rows of the knowledge's files are looked at, also those that the file holds out.

--fix FILE writes a corrected copy of all these rows: without copies, with one spelling for each label, and with
another label where hardly a doubt is left. The column doctor_action says relabel or review, doctor_label the
old or the suggested label, doctor_why the reason. Read these rows, and remove the three columns.

Exit code 0: there are no errors; 3: there are; 1: the look could not be taken.`

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

// propose writes a corrected copy of the knowledge, if only one knowledge has rows.
func propose(c *cobra.Command, found *workspace.Diagnosis, to string, format source.Format, file string) (err error) {
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
	left := ""
	if p.LeftOut > 0 {
		left = fmt.Sprintf(", %s left out that cannot be used", terminal.Plural(p.LeftOut, "row"))
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s relabelled, %d to review, %s removed%s\n", to, terminal.Plural(p.Relabelled, "row"), p.Marked, terminal.Plural(p.Removed, "copy"), left)
	return nil
}

// partNames are the parts that eval can leave out.
var partNames = strings.Join(eval.Parts, ", ")

var evalLong = `An item that failed or got no answer counts as wrong, but for rows that cannot be used, such as those without a text:
they are not scored. An item whose label the knowledge does not have is out of
scope: there no answer is the right one, and both kinds are counted apart. Accuracies have 95 % intervals
(Wilson's; Tango's for differences, item by item).

Confidence, or agreement where the election estimates none:

  ECE     the mean distance between confidence and accuracy, over 15 bins (Guo et al. 2017), beside what
          chance makes of calibrated confidences
  NLL     the mean negative log-likelihood of whether the answer is right
  Brier   the mean squared distance to 1 or 0, as the answer is right or not (Brier 1950)
  SUREST  the accuracy of the surest items, and the confidence from which on they are (Geifman and
          El-Yaniv 2017)
  flags   how many errors the flag rule catches, and how many flagged items are right
  unknown how often an item out of scope is less likely to have a known label than one in scope (area under
          the ROC curve), by the election's probability of that and by the confidence
  caught  the share of the items out of scope, and of those in scope, that are flagged or get no answer

Of each voter it says how often it is right alone, which share of its answers counts, its weight, and what it
adds: the election is held again without it, and nobody is asked again. --errors N shows the N wrong answers
that the pipeline was surest of, with the neighbours that speak for them.

Where the input has a column gold, each retrieve and rerank stage is measured: recall@k, the mean share of the
gold passages among the first k (published as Pass@k, too), 1 - recall@20, nDCG@10 and MRR.

--sweep measures with each value of an argument, or each combination of several:

  racflow eval --sweep neighbours.top_k=5,15,60 --sweep var.election=soft,majority FILE

A target is var.NAME, STAGE.ARGUMENT (of the block or of its config), or BLOCK.STAGE.ARGUMENT where stages share
a name; also model.NAME.ARGUMENT, and embed, chunk or store.KNOWLEDGE.ARGUMENT. llm.n=3,1 sends each prompt once.

--ablate measures with everything, and without each part that is named: ` + partNames + `.

--folds 5 needs no input: the rows of the knowledge are the items. They are split into 5 folds, and those of each
are answered by a pipeline whose knowledge, and whatever learns from it, lacks them. Copies of a text share a fold,
whatever their case, spaces and punctuation, and people's decisions stay with the text. One report counts all
rows. An item of a label that no other fold has is out of scope. A model is asked about every row; --limit N
draws N of them.

--curve measures in folds (5, or --folds) with at most 1, 2, 4, 8, ... rows of each label, and with all. Each size
asks models anew. It shows the accuracy of labels by their number of rows, and those that would gain most from
more. It extrapolates a power law: doubling the rows leaves the same share of the errors of every label,
as it did on average where the rows were doubled here or, since curves flatten, in the last doubling if that left
more. Few items say little about a label, so its accuracy is drawn towards that of labels with as many rows.`

// evaluating holds the flags of racflow eval.
type evaluating struct {
	flags   fileFlags
	to      resultFlags
	sweep   []string
	folds   int
	curve   bool
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
  racflow eval --folds 5 pipelines/intent.hcl
  racflow eval --input questions.tsv --ablate enrich,lexical,rerank pipelines/contextual.hcl`,
		Args: oneFile,
		RunE: e.run,
	}
	o := &e.options
	c.Flags().StringArrayVar(&e.sweep, "sweep", nil, "measure with each value of an argument: `TARGET=VALUE,VALUE` (may be repeated)")
	c.Flags().StringSliceVar(&o.Ablate, "ablate", nil, "measure without each of these `PARTS`: "+partNames)
	c.Flags().IntSliceVar(&o.Cuts, "k", eval.Cuts, "measure recall among the first `K,K` passages")
	c.Flags().IntVar(&o.Errors, "errors", 0, "show the `N` wrong answers that the pipeline was surest of, with the neighbours that speak for them")
	c.Flags().IntVar(&e.folds, "folds", 0, "measure on the rows of the knowledge, in `K` folds: each is answered by a knowledge without it")
	c.Flags().BoolVar(&e.curve, "curve", false, "measure in folds with fewer rows of each label, and estimate what more would bring")
	c.Flags().BoolVar(&e.asJSON, "json", false, "print the evaluation as JSON")
	e.flags.register(c)
	e.flags.registerInput(c)
	e.to.register(c)
	e.flags.registerCalls(c)
	e.flags.registerTelemetry(c)
	return c
}

// curveFolds is the number of folds of --curve, unless --folds sets it.
const curveFolds = 5

// several reports whether one table compares several pipelines.
func (e *evaluating) several() bool { return len(e.options.Sweep)+len(e.options.Ablate) > 0 }

// check reads the flags, and refuses combinations that do not go together.
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
	case e.curve && (e.several() || o.Errors > 0 || e.to.name != ""):
		return errors.New("--curve has figures of its own: leave out --sweep, --ablate, --errors and --output")
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
	if e.curve && e.folds == 0 {
		e.folds = curveFolds
	}
	e.flags.more.Set, e.flags.more.Folds = e.options.First(), e.folds
	return e.flags.pipelineOf(c, args[0], c.InOrStdin(), func(a *app, p *workspace.Pipeline) (err error) {
		var kept *results
		if e.to.name != "" {
			if kept, err = e.to.open(c, a, p, ""); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, kept.close()) }()
			e.options.Results = kept.write
		}
		if e.curve {
			found, err := p.Curve(c.Context())
			if err != nil {
				return withoutFigures(err)
			}
			if e.asJSON {
				return writeJSON(c.OutOrStdout(), found)
			}
			return report.Curve(c.OutOrStdout(), *found)
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

func (e *evaluating) write(out io.Writer, found *workspace.Evaluation) error {
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

// maxCombinations bounds the combinations of a sweep; more were surely not meant.
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

// parseTargets reads flags of the form TARGET=VALUE,VALUE,...
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

// splitValues splits at commas outside of quotes and brackets.
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
