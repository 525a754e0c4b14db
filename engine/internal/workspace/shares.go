package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
)

// Shares are runs that have answered all parts of an input (Options.Share). Merge joins them into one run.
type Shares struct {
	workspace *Workspace
	manifest  journal.Manifest   // of the joined run
	parts     []*journal.Journal // by number
}

// OpenShares opens runs by their names in this workspace or by their folders, which may come from other machines. The
// error says what is missing. input is the path of the input on this machine; empty: the path in a run whose input is
// here.
func (w *Workspace) OpenShares(runs []string, input string) (_ *Shares, err error) {
	s := &Shares{workspace: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, name := range runs {
		open := journal.Open
		if journal.IsRunID(name) {
			open = w.Runs().Open
		}
		j, err := open(name)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, j)
	}
	ordered, err := journal.CheckShares(s.parts)
	if err != nil {
		return nil, err
	}
	s.parts = ordered
	return s, s.describeRun(input)
}

// describeRun describes the run that the parts form together.
func (s *Shares) describeRun(input string) error {
	s.manifest = s.parts[0].Manifest
	for _, part := range s.parts {
		if same, err := part.Manifest.Input.Unchanged(); same && err == nil {
			s.manifest = part.Manifest
			break
		}
	}
	m := &s.manifest
	m.Share, m.Output = journal.Share{}, s.workspace.options.Output
	if c := m.Command; c != nil {
		m.Command = &journal.ManifestCommand{Dir: c.Dir, Withheld: c.Withheld}
		for _, f := range c.Flags {
			if f.Name != "part" && f.Name != "output" {
				m.Command.Flags = append(m.Command.Flags, f)
			}
		}
		if m.Output != "" {
			m.Command.Flags = append(m.Command.Flags, journal.ManifestFlag{Name: "output", Value: m.Output})
		}
	}
	if input == "" {
		return nil
	}
	path, err := filepath.Abs(input)
	m.Input.Path = path
	return err
}

// Reads returns the files from which the parts are read; no results may be written to them.
func (s *Shares) Reads() []string { return []string{s.manifest.Input.Path, s.manifest.File} }

// rows opens the input.
func (s *Shares) rows() (*Rows, error) {
	r, err := s.manifest.Rows()
	return &Rows{Reader: r, limit: s.manifest.Limit}, err
}

// Columns is like Pipeline.Columns.
func (s *Shares) Columns(types bool) (output.Input, error) {
	rows, err := s.rows()
	if err != nil {
		return output.Input{}, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	return inputOf(rows, s.manifest.LabelForm, types)
}

// Merge writes the answers of all parts in the order of the input, as one run over it would have, and stores them as
// a new run. It asks no voter. write and finish are as in Work; Outcome.Elapsed is the time of all parts together.
func (s *Shares) Merge(ctx context.Context, write func([]outcome.Result) error, finish func(error) error) (*Outcome, error) {
	rows, err := s.rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	records, _, err := s.workspace.Runs().Begin(s.manifest, journal.Options{}, journal.Retention{})
	if err != nil {
		return nil, err
	}
	out, counter := &Outcome{Run: records.ID()}, eval.NewCounter()
	err = s.each(ctx, rows, func(part *journal.Journal, item journal.Item) error {
		out.Add(item.Result)
		counter.Add(item.Result)
		return errors.Join(records.Adopt(part, item), write([]outcome.Result{item.Result}))
	})
	for _, part := range s.parts {
		out.Took(journal.End(part.Folder()).Times())
	}
	err = finish(err)
	closed := records.Close(journal.NewTotals(out.Totals, err))
	out.Err, out.Evaluation = errors.Join(err, closed), counter.Report(out.Totals)
	return out, out.Err
}

// each calls do with each item in the order of the input, and with the part that has the item's answer.
func (s *Shares) each(ctx context.Context, rows *Rows, do func(*journal.Journal, journal.Item) error) error {
	for n := 0; ; n++ {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		part := s.parts[n%len(s.parts)]
		item := part.Item(row)
		if item.Status == journal.Unreached {
			return fmt.Errorf("%s has no answer to line %d of the input, since its journal has changed: resume it first", part.Folder(), row.Line)
		}
		if err := do(part, item); err != nil {
			return err
		}
	}
}

// Close closes the parts, which are unchanged.
func (s *Shares) Close() error {
	var errs []error
	for _, part := range s.parts {
		errs = append(errs, part.Close(nil))
	}
	return errors.Join(errs...)
}
