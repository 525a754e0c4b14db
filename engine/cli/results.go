package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

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

// check refuses flags that are wrong for every pipeline.
func (f *resultFlags) check() error {
	if f.format == "" {
		return nil
	}
	return output.CheckFormat(f.format)
}

// results is the destination of a pipeline's results.
type results struct {
	file    *disk.Output
	writer  output.Writer
	written int64
	failed  error // why they are not written
}

// open opens the destination of the results, and starts nothing. It refuses unknown columns, and a
// file that must not be replaced. resume is the run to resume; empty: a new run begins.
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

// resultSource describes the run whose results are written.
type resultSource struct {
	reads   []string                                      // files that must not be overwritten
	resume  func() (string, error)                        // the run to resume; empty: a new run begins
	columns func(types bool) (in output.Input, err error) // of the input
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
	o := output.Options{Columns: f.columns, Compression: compression, More: "--output FILE keeps them all"}
	if f.columns != nil || format == output.TSV || format == output.CSV || format == output.Parquet {
		if o.Input, err = of.columns(format == output.Parquet); err != nil {
			return nil, err
		}
	}
	if r.writer, err = output.NewWriter(file, format, o); err != nil && f.columns != nil {
		err = fmt.Errorf("--columns: %w", err)
	}
	return r, err
}

// formatOf returns the format and the compression of the results.
func (f *resultFlags) formatOf(file *disk.Output, terminal bool) (format, compression string, err error) {
	format, compression = output.Named(f.name)
	if f.format != "" {
		format = f.format
	}
	toTerminal := file.Name() == "" && terminal
	switch {
	case format == output.Parquet && toTerminal:
		return "", "", errors.New("a terminal cannot show Parquet: name a file with --output")
	case format != "":
		return format, compression, nil
	case toTerminal:
		return output.Table, "", nil
	case file.Target() == "":
		return output.JSONL, compression, nil
	}
	return "", "", fmt.Errorf("the name of %s does not say how results are to be written: end it in .jsonl, .tsv, .csv or .parquet, or name a format with --format", file.Name())
}

// keep refuses to replace partial results that another run left when it ended early.
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
	if err := r.writer.Flush(); err != nil { // so that no answer is lost with the process
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// finish completes the output. Unless the run ended early, the output then replaces the file.
func (r *results) finish(err error) error {
	if err == nil || r.written > 0 { // otherwise nothing remains of it
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

// report prints where the results of an evaluation are.
func (r *results) report(w io.Writer) {
	switch {
	case r.file.Partial() != "":
		fmt.Fprintf(w, "results so far are in %s, and %s is unchanged\n", r.file.Partial(), r.file.Name())
	case r.failed == nil && r.written > 0:
		fmt.Fprintf(w, "results in %s\n", r.file.Name())
	}
}
