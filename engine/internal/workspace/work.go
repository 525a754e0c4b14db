package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// work is the state of Work.
type work struct {
	*Pipeline
	run     *run.Run
	rows    *Rows
	write   func([]outcome.Result) error
	records *journal.Journal // nil: the run is not kept
	kept    run.Journal      // records, or records with other answers; nil: nothing
	later   unasked          // results from the first of these items on have to wait
	counter *eval.Counter
	cost    float64 // cost of the voters' answers, at the file's prices
	out     *Outcome

	mu       sync.Mutex // guards the following fields
	inOrder  tally
	answered int64 // results in the journal
	reported progress.Step
}

// reportingJournal reports progress when results are stored, which may be before they come in order.
type reportingJournal struct {
	run.Journal
	work *work
}

func (j reportingJournal) Keep(results []outcome.Result) error {
	err := j.Journal.Keep(results)
	j.work.reportProgress(nil, len(results))
	return err
}

// reportProgress reports how many items are answered, after these results came in order and kept results were
// stored.
func (w *work) reportProgress(inOrder []outcome.Result, kept int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered += int64(kept)
	step := w.inOrder.add(inOrder, w.rows.step("answering"))
	if step.Done = max(step.Done, w.answered); step != w.reported { // a stored result may come in order immediately
		w.workspace.progress(step)
	}
	w.reported = step
}

// unasked holds the lines of items that a service could not be asked about.
type unasked struct{ lines []int } // in order

func (w *unasked) add(line int) { w.lines = append(w.lines, line) }

// before returns the results before the first of these lines.
func (w *unasked) before(batch []outcome.Result) []outcome.Result { return batch[:w.cut(batch)] }

// after returns the other results, from the first of these lines on.
func (w *unasked) after(batch []outcome.Result) []outcome.Result { return batch[w.cut(batch):] }

func (w *unasked) cut(batch []outcome.Result) int {
	at := slices.IndexFunc(batch, func(r outcome.Result) bool { return len(w.lines) > 0 && r.Line >= w.lines[0] })
	if at < 0 {
		return len(batch)
	}
	return at
}

// askLater asks again about the items that services did not answer: first about one of them and, if its services are
// back, about the others. Then sink gets the results of the whole input, from the journal.
func (p *Pipeline) askLater(ctx context.Context, r *run.Run, records *journal.Journal, w *unasked, first outcome.Totals, sink func([]outcome.Result) error) (outcome.Totals, error) {
	r.OnLater(nil)
	p.workspace.control.TryAll()
	for _, lines := range [][]int{w.lines[:1], w.lines[1:]} {
		if len(lines) == 0 {
			break
		}
		totals, err := p.pass(ctx, r, records, lines, "asking again")
		first.Elapsed += totals.Elapsed
		if err != nil {
			return first, err
		}
		if totals.Provisional+totals.Left > 0 {
			break
		}
	}
	rows, err := p.Rows()
	if err != nil {
		return first, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	left := first.Missing[max(0, slices.IndexFunc(first.Missing, func(s outcome.Skipped) bool { return s.Left > 0 }))]
	totals, err := r.Kept(ctx, rows.Next, func(row source.Row) (outcome.Result, *outcome.Failure) {
		item := records.Item(row)
		if item.Status == journal.Unreached {
			return item.Result, &outcome.Failure{Stage: left.Stage, Err: left.First}
		}
		for i, f := range item.Result.Missing { // the journal does not keep the reason
			if at := slices.IndexFunc(first.Missing, func(s outcome.Skipped) bool { return s.Stage == f.Stage }); at >= 0 {
				item.Result.Missing[i].Err = first.Missing[at].First
			}
		}
		return item.Result, nil
	}, sink)
	totals.Earlier, totals.Skipped = first.Earlier, first.Skipped
	totals.Elapsed += first.Elapsed
	return totals, err
}

func (p *Pipeline) launch(ctx context.Context, l stage.LaunchRequest) (any, error) {
	w := p.workspace
	block, dir := l.Knowledge, filepath.Join(w.state, "knowledge", l.Knowledge)
	switch {
	case l.StateDir != "":
		block, dir = l.Stage.Name, l.StateDir
	case l.Knowledge == "":
		block, dir = l.Stage.Name, filepath.Join(w.state, "stages", p.chosen.Name, l.Stage.Name)
	case l.Stage.Kind == sdk.KindEmbed: // the store uses the folder above
		dir = filepath.Join(w.state, "stages", l.Knowledge, "embed")
	case l.Stage.Kind == sdk.KindEnrich:
		block, dir = l.Stage.Name, filepath.Join(w.state, "stages", l.Knowledge, "enrich", l.Stage.Name)
	}
	shared, err := p.share(l.Stage, block)
	if err != nil {
		return nil, err
	}
	config, err := p.configOf(l.Stage)
	if err != nil {
		return nil, err
	}
	if w.options.Likely && listsLabels(l.Stage) {
		if config, err = sdk.CompleteConfig([]byte(allLabels), config); err != nil {
			return nil, err
		}
	}
	spec := host.Spec{
		Kind: l.Stage.Kind, Use: l.Stage.Use, Block: block, Config: config,
		StateDir: dir, Fits: l.Stage.Kind == sdk.KindEmbed && l.Stage.Info.Fits, State: l.State, Samples: l.Stage.N, Labels: p.chosen.LabelForm(), Quiet: l.HeldOut, Network: l.Stage.Info.Network, Host: shared,
		Program: l.Stage.Program, Secrets: l.Stage.Config.Secrets, Memory: l.Stage.Memory, Debug: w.options.Debug == string(l.Stage.Kind)+"."+block,
		Paths: pipeline.PathsIn(l.Stage.Info.Arguments, config),
	}
	if start := w.options.Start; start != nil {
		return w.opened(start(ctx, spec))
	}
	return w.host.Start(ctx, spec)
}

// forecaster opens a stage as a T that forecasts what the stage would send; nil: the stage cannot forecast. It only
// opens built-in stages, which call no service for this.
func forecaster[T any](p *Pipeline, by knowing) func(context.Context, *pipeline.Stage) (T, error) {
	return func(ctx context.Context, s *pipeline.Stage) (asked T, err error) {
		if s.Program != nil {
			return asked, nil
		}
		looker, err := p.workspace.looker(s, by)
		if err != nil {
			return asked, err
		}
		opened, err := p.openBuiltin(ctx, s, looker)
		asked, _ = opened.(T)
		return asked, err
	}
}

// openBuiltin opens one of racflow's own stages in this process.
func (p *Pipeline) openBuiltin(ctx context.Context, s *pipeline.Stage, h sdk.Host) (any, error) {
	setup := sdk.Setup{Block: s.Name, Samples: s.N, Host: h, Log: slog.New(slog.DiscardHandler)}
	if p.chosen != nil {
		setup.Labels = p.chosen.LabelForm()
	}
	opened, err := s.Info.Open(ctx, setup, s.Config.Open)
	if err != nil {
		return nil, &host.ConfigError{Kind: s.Kind, Block: s.Name, Errors: sdk.ArgumentErrors(err)}
	}
	return opened, nil
}

// launchHere opens a built-in election in this process, since tuning needs many elections, each for a moment. This
// process has the same code. An election that learns from a knowledge gets its own process, as in a run.
func (p *Pipeline) launchHere(ctx context.Context, l stage.LaunchRequest) (any, error) {
	if l.Stage.Info.Fits {
		return p.launch(ctx, l)
	}
	return p.openHere(ctx, l)
}

// openHere is like launchHere, for an election with given weights, or one that learns its weights from given rows.
func (p *Pipeline) openHere(ctx context.Context, l stage.LaunchRequest) (any, error) {
	if l.Stage.Kind != sdk.KindElect || l.Stage.Program != nil {
		return p.launch(ctx, l)
	}
	return l.Stage.Info.Open(ctx, sdk.Setup{Block: l.Stage.Name, StateDir: l.StateDir, Labels: p.chosen.LabelForm()}, l.Stage.Config.Open)
}

// voting is a pipeline that votes on rows of a knowledge, whatever voters the file has. Its voters ask no service.
// The checks of their votes were measured with these voters.
const voting = `
pipeline "racflow_doctor" {
  retrieve "racflow_doctor" {
    from  = knowledge.%s
    top_k = 60
  }
  sample "racflow_doctor_neighbours" { use = "neighbours" }
  sample "racflow_doctor_prototype" { use = "prototype" }
  sample "racflow_doctor_linear" { use = "linear" }
  elect "racflow_doctor" { use = "soft" }
}
`

// votes returns the votes on at most n rows of a knowledge. The voters do not know the row that they vote on.
func (w *Workspace) votes(ctx context.Context, path string, block *pipeline.Knowledge, n int) (rows []doctor.VotedRow, err error) {
	p, err := w.voters(path, block.Name)
	if err != nil {
		return nil, err
	}
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	_, _, done, err := r.HeldOut(ctx, n, p.launch, func(batch []outcome.Result) error {
		for _, one := range batch {
			if one.Failure == nil {
				rows = append(rows, voted(one))
			}
		}
		w.progress(Progress{Doing: "checking the labels of", Name: block.Name, Done: int64(len(rows)), Unit: "row"})
		return nil
	})
	if err != nil {
		return nil, err
	}
	done()
	return rows, nil
}

// voters opens the voting pipeline.
func (w *Workspace) voters(path, knowledge string) (*Pipeline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o, err := w.LoadOptions()
	if err != nil {
		return nil, err
	}
	o.Text = fmt.Appendf(text, voting, knowledge)
	file, diags := pipeline.Load(w.ctx, path, o)
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, file.Sources}
	}
	return &Pipeline{workspace: w, file: file, chosen: file.Pipelines[len(file.Pipelines)-1]}, nil
}

// Outcome is the outcome of an input, even if the run ended early.
type Outcome struct {
	outcome.Totals
	Run        string      // the ID of its journal; empty: it cannot be resumed
	Labels     []string    // labels of the knowledge
	Evaluation eval.Report // for the items with an expected label
	Invalid    int         // as Pipeline.Invalid
	Err        error       // why the run ended early; nil: it did not
	Refusing   []string    // voters whose service refused every item, such as a model with too small a context
	// Spent reports the effect of Options.Spend; nil: it was not set.
	Spent *spend.Report
}

// Incomplete reports whether items or documents failed, or lack a voter's answers.
func (o *Outcome) Incomplete() bool {
	return o.Failed > 0 || o.Provisional > 0 || o.Left > 0 || o.Invalid > 0 || len(o.Refusing) > 0
}

// fewRefused is how many items a service must refuse, without answering any, before the voter counts as the cause.
// Fewer items may all be items that the service must not answer.
const fewRefused = 5

// Work runs the input through the pipeline. write gets batches of results in input order. finish, if not nil, gets
// the error that ended the run early, or nil, and returns the final error; after an error, the run has to be
// resumed. Options decide whether there is a journal. The outcome is nil if the run could not begin.
func (p *Pipeline) Work(ctx context.Context, write func([]outcome.Result) error, finish func(error) error) (*Outcome, error) {
	if err := p.checkWork(); err != nil {
		return nil, err
	}
	var last journal.Manifest
	if p.workspace.options.Resume != "" {
		var err error
		if last, err = p.resume(); err != nil {
			return nil, err
		}
	}
	rows, err := p.Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	p.glance(ctx)
	if p.spender, err = p.newSpender(ctx); err != nil {
		return nil, p.explain(err)
	}
	r, err := p.start(ctx, true)
	if err != nil {
		return nil, err
	}
	w := &work{Pipeline: p, run: r, rows: rows, write: write, out: &Outcome{Labels: r.Labels()}}
	w.counter = w.newCounter()
	if s := p.pooled; s != nil {
		w.counter, w.cost = s.counter, s.cost
	}
	begun, err := w.open(ctx, last)
	if err != nil {
		return nil, err
	}
	if begin := p.workspace.options.Events.Begun; begin != nil {
		begin(begun)
	}
	err = w.items(ctx, begun)
	if p.spender != nil {
		spent := p.spender.Report()
		w.out.Spent, w.cost = &spent, spent.Cost
	}
	if finish != nil {
		err = finish(err)
	}
	if w.out.Err = err; w.records != nil {
		w.out.Err = closeJournal(w.records, w.out.Totals, err)
	}
	w.report()
	return w.out, w.out.Err
}

// checkWork rejects options that do not suit each other or the input.
func (p *Pipeline) checkWork() error {
	o, again := p.workspace.options, p.rereadable()
	switch {
	case o.Resume != "" && !again:
		return optionError("Input", "standard input cannot be read again, so no run over it can be resumed: keep the items in a file and name it with %[1]s")
	case o.Spend.IsSet() && !again:
		return optionError("Spend", "%[1]s chooses among all items, and standard input cannot be read twice: keep the items in a file and name it with Options.Input")
	case o.Spend.IsSet() && !o.Journal:
		return optionError("Spend", "%[1]s keeps first answers in a journal: it cannot be used without Options.Journal")
	case o.Share.IsSet() && (!again || !o.Journal):
		return optionError("Share", "the results of %[1]s are put together from journals, which need an input that can be read again: keep the items in a file, and do not run without Options.Journal")
	case o.Share.IsSet() && o.Spend.IsSet():
		return optionError("Share", "Options.Spend chooses among all items: it cannot be used together with %[1]s")
	}
	return nil
}

// sums continue over several calls of Work, so that their figures cover all items.
type sums struct {
	counter *eval.Counter
	totals  outcome.Totals
	cost    float64
}

// open opens the journal, if there is one.
func (w *work) open(ctx context.Context, last journal.Manifest) (Begun, error) {
	o, begun := w.workspace.options, Begun{Pipeline: w.chosen}
	if !o.Journal || !w.rereadable() {
		return begun, nil
	}
	records, err := w.journal(ctx, last, &begun)
	if err != nil {
		return begun, err
	}
	w.records, w.kept = records, reportingJournal{records, w}
	if err := o.Services.keepProfiles(records.Folder()); err != nil {
		return begun, errors.Join(err, records.Close(nil))
	}
	w.out.Run, begun.Run = records.ID(), records.ID()
	// Items without a service's answers wait for the service until the end of the input.
	if w.spender == nil && !o.strict && o.Services.Mode != governor.Offline && w.cover(w.run) {
		records.Index()
		w.run.OnLater(w.later.add)
	}
	return begun, nil
}

// items runs the input through the stages and passes all results to write.
func (w *work) items(ctx context.Context, begun Begun) error {
	var err error
	if w.spender != nil {
		w.out.Totals, err = w.passes(ctx, w.run, w.records, w.sink())
	} else {
		w.reportProgress(nil, begun.Answered)
		w.out.Totals, err = w.run.Items(ctx, w.rows.Next, w.kept, w.sink())
	}
	switch {
	case err != nil:
	case len(w.later.lines) > 0:
		w.counter = w.newCounter()
		w.out.Totals, err = w.askLater(ctx, w.run, w.records, &w.later, w.out.Totals, func(batch []outcome.Result) error {
			for _, one := range batch {
				w.counter.Add(one)
			}
			return w.write(w.later.after(batch))
		})
	case w.workspace.options.strict && w.out.Left > 0:
		m := w.out.Missing[0]
		err = &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%d of %d items have no answer of %s: %w", w.out.Left, w.out.Items+w.out.Left, m.Stage, m.First)}
	}
	return err
}

func (w *work) newCounter() *eval.Counter { return eval.NewCounter(w.out.Labels...).Of(w.chosen) }

// sink returns a function that counts and reports results, and passes them on to write.
func (w *work) sink() func([]outcome.Result) error {
	return func(batch []outcome.Result) error {
		for _, one := range batch {
			w.counter.Add(one)
			if w.pooled != nil {
				w.pooled.totals.Callers = w.run.Graph().Callers()
				w.pooled.totals.Add(one)
			}
			for voter, usage := range one.Usages {
				w.cost += w.chosen.Cost(voter, usage)
			}
		}
		if answered := w.workspace.options.Events.Answered; answered != nil {
			answered(batch)
		}
		if w.spender == nil { // the long passes are over
			w.reportProgress(batch, 0)
		}
		return w.write(w.later.before(batch))
	}
}

// closeJournal closes the journal of a run that ended with err. If closing fails, it adds that error to err.
func closeJournal(records *journal.Journal, t outcome.Totals, err error) error {
	why := err
	if errors.Is(err, context.Canceled) {
		why = errors.New("interrupted")
	}
	if closed := records.Close(journal.NewTotals(t, why)); closed != nil {
		err = errors.Join(err, fmt.Errorf("journal of the run: %w", closed))
	}
	return err
}

// report adds the figures of the run to its outcome.
func (w *work) report() {
	for _, note := range w.rows.Notes() {
		w.advise("%s", note)
	}
	out, totals := w.out, w.out.Totals
	if s := w.pooled; s != nil {
		s.totals.Took(out.Totals)
		s.cost, totals = w.cost, s.totals
	}
	out.Evaluation = w.counter.Report(totals)
	out.Evaluation.Cost = w.cost
	out.Evaluation.Dropped = eval.DroppedAnswers(totals)
	for _, s := range w.chosen.Stages {
		if s.Block == "sample" && s.Info.Network {
			askedOver(&out.Evaluation, totals, s.Name)
		}
	}
	for _, a := range totals.ByChance() {
		out.Evaluation.ByChance = append(out.Evaluation.ByChance, eval.ByChance{Voter: a.Voter, Items: a.Items, Same: a.Same, Chance: a.Chance()})
	}
	for _, id := range w.run.Graph().Identities() {
		if w.pooled == nil && strings.HasPrefix(id.Stage, "elect.") {
			out.Evaluation.Weigh(w.chosen.WeightsOf(id.Resolved))
		}
	}
	for _, s := range out.Skipped {
		if voter, _ := strings.CutPrefix(s.Stage, "sample."); s.Items >= fewRefused && sdk.CodeOf(s.First) == sdk.CodeRefused && !out.Totals.Wrote(voter) {
			out.Refusing = append(out.Refusing, s.Stage)
		}
	}
	out.Invalid = w.Invalid()
	if ended := w.workspace.options.Events.Ended; ended != nil {
		ended(out)
	}
}

// askedOver marks a voter that is asked over the network, and counts its items.
func askedOver(r *eval.Report, t outcome.Totals, voter string) {
	for i := range r.Voters {
		r.Voters[i].Network = r.Voters[i].Network || r.Voters[i].Name == voter
	}
	for _, worked := range t.Stages {
		if worked.Stage == "sample."+voter {
			r.Asked += worked.Rows
		}
	}
}

// eachRow calls each with the rows of a rereadable input, until each returns false.
func (p *Pipeline) eachRow(each func(source.Row) bool) error {
	rows, err := p.Rows()
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	for {
		row, err := rows.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !each(row):
			return nil
		}
	}
}
