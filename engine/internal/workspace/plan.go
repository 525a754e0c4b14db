package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/attached"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// relieve removes the time limits of the stage that Options.Debug names.
func (w *Workspace) relieve(file *pipeline.File, chosen *pipeline.Pipeline) error {
	if w.options.Debug == "" {
		return nil
	}
	var names []string
	found := false
	for name, s := range chosen.Processes() {
		if name == w.options.Debug {
			found, s.Timeout = true, host.Forever
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !found {
		return optionError("Debug", "%[2]s has no stage %[3]q with a process; %[1]s names one of %[4]s", file.Path, w.options.Debug, strings.Join(names, ", "))
	}
	return nil
}

// DebuggerAttached waits until a debugger is attached to a process. Only Linux can report that;
// elsewhere it returns an error.
func DebuggerAttached(ctx context.Context, pid int) error { return host.Attached(ctx, pid) }

// DiagnosticsError reports what is wrong with a file, and where. hcl.NewDiagnosticTextWriter prints
// it, with the lines from Sources.
type DiagnosticsError struct {
	Diagnostics hcl.Diagnostics
	Sources     map[string]*hcl.File // by name
}

// Error returns a line for each diagnostic: FILE:LINE:COLUMN: summary: detail.
func (e *DiagnosticsError) Error() string {
	var lines []string
	for _, d := range e.Diagnostics {
		line := d.Summary
		if d.Detail != "" {
			line += ": " + d.Detail
		}
		if at := d.Subject; at != nil {
			line = fmt.Sprintf("%s:%d:%d: %s", at.Filename, at.Start.Line, at.Start.Column, line)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// explain turns an error with a cause in the file into a DiagnosticsError that points there.
func (p *Pipeline) explain(err error) error {
	var source *generation.SourceError
	var config *host.ConfigError
	var collection *attached.UnusableError
	var diags hcl.Diagnostics
	switch {
	case errors.As(err, &source):
		diags = diags.Append(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unusable source", Detail: capitalize(source.Err.Error()) + ".", Subject: &source.Range,
		})
	case errors.As(err, &collection):
		diags = diags.Append(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unusable collection", Detail: capitalize(err.Error()) + ".", Subject: &collection.Range,
		})
	case errors.As(err, &config):
		diags = p.blame(config)
	}
	if len(diags) == 0 {
		return p.workspace.unwritable(err)
	}
	return &DiagnosticsError{diags, p.file.Sources}
}

// unwritable adds advice to an error about an unwritable state folder. The error may come from another
// process, so only its text is known.
func (w *Workspace) unwritable(err error) error {
	if err == nil || !strings.Contains(err.Error(), w.state) {
		return err
	}
	for _, why := range []error{syscall.EACCES, syscall.EROFS} {
		if strings.Contains(err.Error(), why.Error()) {
			return fmt.Errorf("%w; this is not in the state folder yet, which cannot be written: name another with Options.State", err)
		}
	}
	return err
}

// blame turns the arguments that a stage refused into diagnostics. An error about the stage as a whole
// stays as it is.
func (p *Pipeline) blame(refused *host.ConfigError) hcl.Diagnostics {
	blocks := map[*pipeline.Stage]string{}
	for _, k := range p.file.Knowledge {
		for _, stage := range k.Stages() {
			if blocks[stage] = k.Name; stage.Kind == sdk.KindEnrich {
				blocks[stage] = stage.Name
			}
		}
	}
	if p.chosen != nil {
		for _, stage := range p.chosen.Stages {
			blocks[stage] = stage.Name
			for _, f := range stage.Fallbacks {
				blocks[f.Stage] = stage.Name
			}
		}
	}
	var diags hcl.Diagnostics
	for stage, block := range blocks {
		for _, e := range refused.Errors {
			if _, given := stage.Config.Ranges[e.Argument]; given && block == refused.Block && stage.Kind == refused.Kind {
				diags = diags.Append(stage.Config.Diagnostic(stage.Use, stage.UseRange, e))
			}
		}
	}
	return diags
}

func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Plan finds out what a run would build and call, and the cost. It calls no service. It runs the other
// stages on up to 500 items. For that it updates knowledge that is embedded on this machine.
func (p *Pipeline) Plan(ctx context.Context) (*plan.Plan, error) {
	w := p.workspace
	o := plan.Options{
		Launch: p.launch, Stage: w.catalog.Stage, Fitted: w.fitted(), Samples: w.samples(), Forecaster: forecaster[sdk.Forecaster](p, knowing{models: true, cache: true}), Spending: p.spendForecast, Enricher: forecaster[sdk.EnrichForecaster](p, knowing{models: true, cache: true}), Spend: w.options.Spend, Models: p.known,
		Knowledge: w.options.Events.Knowledge, Progress: w.progress,
		Calibrating: p.calibrating,
	}
	if p.InputPath() != "-" { // standard input is left for the run
		o.Rows = func() (plan.Rows, error) { return p.Rows() }
	}
	o.Wants = p.workspace.wants(p.file)
	found, err := plan.Make(ctx, p.file, p.chosen, o)
	if err != nil {
		return nil, p.explain(err)
	}
	found.Parts = w.parts()
	return found, nil
}

// Progress describes the progress of a piece of work.
type Progress = progress.Step

// progress reports progress, with the cost so far.
func (w *Workspace) progress(s progress.Step) {
	if w.options.Events.Progress == nil {
		return
	}
	if spent, any := w.Spent(); any {
		s.Paid = spent.Total.Cost
	}
	w.options.Events.Progress(s)
}

// tuning reports the progress of Tune.
func (w *Workspace) tuning(doing string, done, total int) {
	w.progress(progress.Step{Doing: doing, Done: int64(done), Total: int64(total)})
}

// tally counts the results of one pass over the input. The zero value is ready.
type tally struct{ done, flagged, failed int64 }

// add counts results, and returns s with the counts.
func (c *tally) add(all []outcome.Result, s progress.Step) progress.Step {
	for _, r := range all {
		c.done++
		if r.Flagged {
			c.flagged++
		}
		if r.Failure != nil {
			c.failed++
		}
	}
	s.Unit, s.Done, s.Flagged, s.Failed = "item", c.done, c.flagged, c.failed
	return s
}

// step returns the progress of reading.
func (r *Rows) step(doing string) progress.Step {
	total, about := r.Total()
	return progress.Step{Doing: doing, Total: total, About: about}
}

// checkSpend rejects a limit on the usage of voters if no voter uses anything, or a price is missing.
func checkSpend(l spend.Limit, p *pipeline.Pipeline) error {
	if !l.IsSet() {
		return nil
	}
	if err := spend.Check(p); err != nil {
		return optionError("Spend", "%[1]s: %[2]v", err)
	}
	if l.Money == nil {
		return nil
	}
	for _, s := range p.Unpriced() {
		if strings.HasPrefix(s, "sample.") {
			return optionError("Spend.Money", "%[2]s has no price, so %[1]s cannot bound what it spends: %[3]s", s, pipeline.PriceAdvice)
		}
	}
	return nil
}

// newSpender returns the Spender that decides, for a run, which voters that call services are asked;
// nil: all are always asked.
func (p *Pipeline) newSpender(ctx context.Context) (*spend.Spender, error) {
	limit := p.limit()
	if !limit.IsSet() {
		return nil, nil
	}
	forecast, err := p.spendForecast(ctx, limit)
	if err != nil {
		return nil, err
	}
	return spend.New(spend.Options{Limit: limit, Forecast: forecast, Cost: p.chosen.Cost}), nil
}

// spendForecast returns a function that forecasts a voter's usage for an item. The expected usage,
// which orders the items, depends only on the file, so that runs are repeatable. The highest usage,
// which enforces a limit of money, also depends on the profiles of models where the file gives no
// value.
func (p *Pipeline) spendForecast(ctx context.Context, l spend.Limit) (func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error), error) {
	plain, err := plan.Forecasts(ctx, p.chosen, forecaster[sdk.Forecaster](p, knowing{}))
	if err != nil || l.Money == nil {
		return plain, err
	}
	known, err := plan.Forecasts(ctx, p.chosen, forecaster[sdk.Forecaster](p, knowing{models: true}))
	if err != nil {
		return nil, err
	}
	return func(s *pipeline.Stage, item sdk.Item) (sdk.Forecast, error) {
		f, err := plain(s, item)
		if err != nil || f.Unknown == "" {
			return f, err
		}
		most, err := known(s, item)
		f.Most, f.Unknown = most.Most, most.Unknown
		return f, err
	}, nil
}

// passes runs the input through the pipeline twice: for the answers of the free voters, then for the
// answers of the paid voters. Then sink gets all results.
func (p *Pipeline) passes(ctx context.Context, r *run.Run, records *journal.Journal, sink func([]outcome.Result) error) (outcome.Totals, error) {
	s := p.spender
	records.Index()
	totals, err := p.pass(ctx, r, s.Survey(records), nil, "pass 1 of 2, answering without paid voters")
	if err != nil {
		return totals, err
	}
	first := totals
	for lines := s.Round(); len(lines) > 0; lines = s.Round() {
		totals, err := p.pass(ctx, r, s.Asking(records), lines, "pass 2 of 2, asking paid voters")
		first.Elapsed += totals.Elapsed
		if err != nil && (ctx.Err() != nil || sdk.CodeOf(err) != sdk.CodeStopped) {
			return first, err
		}
		if gone := p.gone(r); gone != nil {
			s.Abandon(gone)
			break
		}
	}
	rows, err := p.Rows()
	if err != nil {
		return first, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	totals, err = r.Kept(ctx, rows.Next, func(row source.Row) (outcome.Result, *outcome.Failure) { return s.Result(records, row), nil }, sink)
	totals.Elapsed += first.Elapsed
	totals.Earlier = totals.Items - totals.Failed - s.Fresh()
	return totals, err
}

// pass runs the rows of some lines through the pipeline; nil: all rows.
func (p *Pipeline) pass(ctx context.Context, r *run.Run, j run.Journal, lines []int, doing string) (outcome.Totals, error) {
	rows, err := p.Rows()
	if err != nil {
		return outcome.Totals{}, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	next, step := rows.Next, func() progress.Step { return rows.step(doing) }
	if lines != nil {
		total := int64(len(lines))
		step = func() progress.Step { return progress.Step{Doing: doing, Total: total} }
		next = func() (source.Row, error) {
			for len(lines) > 0 {
				row, err := rows.Next()
				if err != nil {
					return row, err
				}
				if row.Line == lines[0] {
					lines = lines[1:]
					return row, nil
				}
			}
			return source.Row{}, io.EOF
		}
	}
	var counted tally
	return r.Items(ctx, next, j, func(batch []outcome.Result) error {
		p.workspace.progress(counted.add(batch, step()))
		return nil
	})
}

// gone returns the paid voters that had to stop. It returns nil if another paid voter is left.
func (p *Pipeline) gone(r *run.Run) []*outcome.Failure {
	halted := r.Graph().Halted()
	if len(halted) == 0 {
		return nil
	}
	if r.Graph().Err() != nil {
		return halted
	}
	for i, s := range p.chosen.Stages {
		name := s.Block + "." + s.Name
		if spend.Paid(s) && p.chosen.Used(i) && !slices.ContainsFunc(halted, func(f *outcome.Failure) bool { return f.Stage == name }) {
			return nil
		}
	}
	return halted
}
