package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
)

// votedRows is on how many rows of a knowledge voters vote unless a flag says otherwise.
const votedRows = 10_000

func newDoctor() *cobra.Command {
	var flags fileFlags
	var fix string
	var votes int
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor FILE",
		Short: "Look for mistakes in the rows of the knowledge and of the input",
		Long: `Look for mistakes in the rows of the knowledge and of the input, and show them, the
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
be taken.`,
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
	out, err := output.Open(to, io.Discard, reads...)
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
