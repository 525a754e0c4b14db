package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/internal/workspace/expect"
)

const exportLong = `The rows are a source for a knowledge: a voter such as linear learns from them, and then answers without the run's
language models. RUN is the id of a run that is kept (racflow runs list shows them), or newest.

  racflow run -var model=gpt-4o-mini --input unlabelled.tsv pipelines/intent.hcl
  racflow export newest --confidence 0.9 --output distilled.jsonl
  racflow run -var train=distilled.jsonl pipelines/intent.hcl

Left out are items that are flagged, failed, lack a voter or have no answer, and texts that were answered in
different ways. Where the election estimates no confidence, agreement counts, which is no probability. Each
row says where its label is from: confidence, voters, models, who decided it, run and time; meta = [] leaves
that out. The input is read again, and has to be as it was.`

// exporting is racflow export.
type exporting struct {
	state, to, format string
	sure              float64
}

func newExport() *cobra.Command {
	var x exporting
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write the sure answers of a run as labelled rows, for use as examples",
		Long:  exportLong,
		Example: `  racflow export newest --confidence 0.9
  racflow export newest --confidence 0.9 --output distilled.jsonl
  racflow export run-000001 --output rows.tsv`,
		Args: words(1, "name one run, or newest; racflow runs list shows them"),
		RunE: x.run,
	}
	c.Flags().Float64Var(&x.sure, "confidence", 0.9, "export answers of at least this `CONFIDENCE`, above 0 and at most 1")
	c.Flags().StringVarP(&x.to, "output", "o", "", "write rows to `FILE` (- is standard output)")
	c.Flags().StringVar(&x.format, "format", "", "write jsonl or tsv: `FORMAT` (default: by the output's name, else jsonl)")
	c.Flags().StringVar(&x.state, "state", stateDir, "`DIR` that keeps runs")
	return c
}

// check finds the format, and refuses what is not possible.
func (x *exporting) check() error {
	if !(x.sure > 0 && x.sure <= 1) {
		return fmt.Errorf("--confidence %v: it is a share above 0, and at most 1", x.sure)
	}
	if x.format == "" {
		x.format = string(source.JSONL)
		if x.to != "-" && source.Is(x.to) {
			x.format = string(source.FormatOf(x.to))
		}
	}
	if x.format != string(source.JSONL) && x.format != string(source.TSV) {
		return fmt.Errorf("unknown format %q: use jsonl or tsv", x.format)
	}
	return nil
}

func (x *exporting) run(c *cobra.Command, args []string) (err error) {
	if err := x.check(); err != nil {
		return err
	}
	runs, id, err := runOf(x.state, args[0])
	if err != nil {
		return err
	}
	e, err := expect.ReadAnswers(runs, id, x.sure)
	if err != nil {
		return err
	}
	if len(e.Rows) == 0 {
		reportExport(c.ErrOrStderr(), e)
		if e.Surest > 0 {
			return fmt.Errorf("run %s has no answer as sure as %v; the surest has %.3f: lower --confidence", e.Run.ID, x.sure, e.Surest)
		}
		return fmt.Errorf("run %s has no answer to export", e.Run.ID)
	}
	file, err := disk.OpenOutput(x.to, terminal.Data(c.OutOrStdout()), e.Run.Input.Path, e.Run.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	if err = expect.WriteAnswers(out, source.Format(x.format), e.Rows); err == nil {
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
}

// reportExport says how many items have become rows, and why others have not.
func reportExport(w io.Writer, e *expect.AnswerExport) {
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

// resultFlags are the flags of verbs that write results.
type resultFlags struct {
	name      string
	format    string
	columns   []string
	overwrite bool
}

func (f *resultFlags) register(c *cobra.Command) {
	section(c, "The output", func(c *cobra.Command) {
		c.Flags().StringVarP(&f.name, "output", "o", "", "write results to `FILE`, whose name says the format: .jsonl, .tsv, .csv or .parquet, and all but the last with .gz or .zst after it (- is standard output)")
		c.Flags().StringVar(&f.format, "format", "", "write results as `FORMAT`: jsonl, tsv, csv, parquet or table, whatever the output's name says (default: table on a terminal, and jsonl to pipes)")
		c.Flags().StringSliceVar(&f.columns, "columns", nil, "write these `NAMES` alone, in this order: id, text, answer and so on, or columns of the input")
		c.Flags().BoolVar(&f.overwrite, "overwrite", false, "replace what an unfinished run left of FILE")
	})
}

// check refuses flags that are wrong whatever the pipeline is.
func (f *resultFlags) check() error {
	if f.format == "" {
		return nil
	}
	return result.CheckFormat(f.format)
}

// results are where the results of a pipeline go.
type results struct {
	file    *disk.Output
	writer  result.Writer
	written int64
	failed  error // why they are not written
}

// open opens what results go to, and starts nothing. It refuses columns that there are not,
// and a file that is not to be replaced. resume is the run that is resumed; empty: a new one
// begins.
func (f *resultFlags) open(c *cobra.Command, a *app, p *workspace.Pipeline, resume string) (r *results, err error) {
	return f.openOf(c, a.Workspace, resultSource{
		reads: p.Reads(), resume: func() (string, error) {
			if resume != workspace.Newest {
				return resume, nil
			}
			path, err := filepath.Abs(p.File().Path)
			newest, _ := a.Runs().Newest(path, p.Definition().Name)
			return cmp.Or(newest.ID, resume), err
		}, columns: p.Columns,
	})
}

// resultSource says whose results are written.
type resultSource struct {
	reads   []string                                      // files that are not to be written over
	resume  func() (string, error)                        // the run that is resumed; empty: a new one begins
	columns func(types bool) (in result.Input, err error) // of the input
}

// openOf is open for any run.
func (f *resultFlags) openOf(c *cobra.Command, w *workspace.Workspace, of resultSource) (r *results, err error) {
	file, err := disk.OpenOutput(f.name, terminal.Data(c.OutOrStdout()), of.reads...)
	if err != nil {
		return nil, err
	}
	r = &results{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	format, compression, err := f.formatOf(file, isTerminal(c.OutOrStdout()))
	if err != nil {
		return nil, err
	}
	if file.Target() != "" && !f.overwrite {
		if err := r.keep(w, of); err != nil {
			return nil, err
		}
	}
	o := result.Options{Columns: f.columns, Compression: compression, More: "--output FILE keeps them all"}
	if f.columns != nil || format == result.TSV || format == result.CSV || format == result.Parquet {
		if o.Input, err = of.columns(format == result.Parquet); err != nil {
			return nil, err
		}
	}
	if r.writer, err = result.NewWriter(file, format, o); err != nil && f.columns != nil {
		err = fmt.Errorf("--columns: %w", err)
	}
	return r, err
}

// formatOf says in which format results are written, and how they are compressed.
func (f *resultFlags) formatOf(file *disk.Output, terminal bool) (format, compression string, err error) {
	format, compression = result.Named(f.name)
	if f.format != "" {
		format = f.format
	}
	toTerminal := file.Name() == "" && terminal
	switch {
	case format == result.Parquet && toTerminal:
		return "", "", errors.New("a terminal cannot show Parquet: name a file with --output")
	case format != "":
		return format, compression, nil
	case toTerminal:
		return result.Table, "", nil
	case file.Target() == "":
		return result.JSONL, compression, nil
	}
	return "", "", fmt.Errorf("the name of %s does not say how results are to be written: end it in .jsonl, .tsv, .csv or .parquet, or name a format with --format", file.Name())
}

// keep refuses to replace results that another run left that ended early.
func (r *results) keep(w *workspace.Workspace, of resultSource) error {
	if r.file.Left() == 0 {
		return nil
	}
	resume, err := of.resume()
	if err != nil {
		return err
	}
	left, known := w.Runs().Writing(r.file.Target())
	switch {
	case known && left.ID != resume:
		return fmt.Errorf("%s holds results of %s, which ended early: --resume=%s completes it, --overwrite begins anew, and another name keeps both", r.file.Part(), left.ID, left.ID)
	case !known && resume == "":
		return fmt.Errorf("%s holds results of a run that ended early and is not kept: rename that file, choose another name, or replace it with --overwrite", r.file.Part())
	}
	return nil
}

// write takes a batch of results.
func (r *results) write(batch []outcome.Result) error {
	for _, one := range batch {
		if err := r.writer.Write(one); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
		r.written++
	}
	if err := r.writer.Flush(); err != nil { // what was answered is not lost with the process
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// finish completes what was written and, unless the run ended early, puts it in the place of
// the file.
func (r *results) finish(err error) error {
	if err == nil || r.written > 0 { // else nothing is left of it
		r.failed = r.writer.Close()
	}
	if r.failed == nil && err == nil {
		r.failed = r.file.Commit()
	}
	if r.failed != nil {
		r.failed = fmt.Errorf("write results: %w", r.failed)
	}
	return errors.Join(err, r.failed)
}

func (r *results) close() error { return r.file.Close() }

// report says where the results of an evaluation are.
func (r *results) report(w io.Writer) {
	switch {
	case r.file.Partial() != "":
		fmt.Fprintf(w, "results so far are in %s, and %s is unchanged\n", r.file.Partial(), r.file.Name())
	case r.failed == nil && r.written > 0:
		fmt.Fprintf(w, "results in %s\n", r.file.Name())
	}
}
