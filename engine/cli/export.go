package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/distil"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
)

func newExport() *cobra.Command {
	var state, to, format string
	var confident float64
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write what a run answered surely as labelled rows, to learn from",
		Long: `Write what a run answered surely as labelled rows, which are a source for a
knowledge: a voter such as linear learns from them, and then answers without the
run's voters, such as language models. RUN is the id of a run that is kept
(racflow runs list shows them), or newest.

  racflow run -var model=gpt-4o-mini --input unlabelled.tsv pipelines/intent.hcl
  racflow export newest --confident 0.9 --output distilled.jsonl
  racflow run -var train=distilled.jsonl pipelines/intent.hcl

An answer is sure where its confidence is at least --confident. Where the election
estimates no confidence, its agreement counts, which is no probability: look at some
of the rows. Items without an answer, items that are flagged, failed or lack a voter, and texts
that the run answered in different ways, are left out. A text that occurs several times
is one row.

Each row has id, text and label, and where the label is from: confidence, agreement,
the voters that gave it, or who decided it, their models, the pipeline, the run and when it began. A
source keeps these as metadata; meta = [] in its block leaves them out.

The journal of a run has no texts: they are read from the input again, which has to
be as it was. In TSV, tabs and line ends of a text become spaces.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one run, or newest; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			switch {
			case !(confident > 0 && confident <= 1):
				return fmt.Errorf("--confident %v: it is a share above 0, and at most 1", confident)
			case format == "" && (to == "" || to == "-"):
				format = string(source.JSONL)
			case format == "":
				if format = string(source.JSONL); source.Is(to) {
					format = string(source.FormatOf(to))
				}
			}
			if format != string(source.JSONL) && format != string(source.TSV) {
				return fmt.Errorf("unknown format %q: use jsonl or tsv", format)
			}
			runs, id := runs.Of(state), args[0]
			if id == engine.Newest {
				all := runs.List()
				if len(all) == 0 {
					return fmt.Errorf("no run is kept in %s", state)
				}
				id = all[len(all)-1].ID
			}
			e, err := distil.Read(runs, id, confident)
			if err != nil {
				return err
			}
			if len(e.Rows) == 0 {
				reportExport(c.ErrOrStderr(), e)
				if e.Surest > 0 {
					return fmt.Errorf("run %s has no answer as sure as %v; the surest has %.3f: lower --confident", e.Run.ID, confident, e.Surest)
				}
				return fmt.Errorf("run %s has no answer to export", e.Run.ID)
			}
			file, err := output.Open(to, c.OutOrStdout(), e.Run.Input.Path, e.Run.File)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			out := bufio.NewWriter(file)
			if err = distil.Write(out, source.Format(format), e.Rows); err == nil {
				err = out.Flush()
			}
			if err == nil {
				err = file.Commit()
			}
			if err != nil {
				return fmt.Errorf("write rows: %w", err)
			}
			reportExport(c.ErrOrStderr(), e)
			return nil
		},
	}
	c.Flags().Float64Var(&confident, "confident", 0.9, "export answers that are at least this `SURE`, above 0 and at most 1")
	c.Flags().StringVar(&to, "output", "", "write rows to `FILE` (- is standard output)")
	c.Flags().StringVar(&format, "format", "", "jsonl or tsv (default: by the output's name, else jsonl)")
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	return c
}

// reportExport says how many items have become rows, and why others have not.
func reportExport(w io.Writer, e *distil.Export) {
	fmt.Fprintf(w, "run %s: %s from %s", e.Run.ID, terminal.Plural(len(e.Rows), "row"), terminal.Plural(e.Items, "item"))
	var left []string
	for _, part := range []struct {
		n   int
		why string
	}{
		{e.Unsure, "not sure enough"}, {e.Flagged, "flagged"}, {e.Undecided, undecided}, {e.Failed, "failed"}, {e.Provisional, "provisional"},
		{e.Unreached, "not reached"}, {e.Contradicted, "with a text that was answered in another way, too"}, {e.Repeated, "with a text that has a row"},
	} {
		if part.n > 0 {
			left = append(left, fmt.Sprintf("%d %s", part.n, part.why))
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(w, "; left out: %s", strings.Join(left, ", "))
	}
	fmt.Fprintln(w)
	if e.ByAgreement > 0 {
		fmt.Fprintf(w, "note: of %s the election estimates no confidence: their agreement counts, which is the share of the votes and no probability\n", terminal.Plural(e.ByAgreement, "row"))
	}
}
