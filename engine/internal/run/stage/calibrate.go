package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// This file lets an election that learns from votes learn what those of voters are worth that call
// services. Of the held-out rows with the votes of the other voters (learn.go), the first few get
// theirs, too (Calibrate). They are asked as about items, except that every row is sent, whatever
// a when rule says.
//
// What the election learns so is kept beside what it learns without calls. It is used wherever the
// same voters are asked the same, without another call.

// calibrationRows is how many rows voters are asked about if the file does not say.
const calibrationRows = 40

// Calibration says what an election that learns knows of the voters that call services.
type Calibration struct {
	Election *pipeline.Stage
	Voters   []*pipeline.Stage // that call services
	Rows     int               // how many held-out rows to ask them about
	Explicit bool              // the file says so
	Done     bool              // it has learnt from their answers
}

// Calibration returns the Calibration of the graph's election; nil: it does not learn from votes, no
// voter calls a service, or the file wants no voter asked.
func (g *Graph) Calibration() *Calibration {
	if g.elect < 0 {
		return nil
	}
	s := g.stages[g.elect]
	voters := s.callers()
	if len(voters) == 0 || s.rowsAsked() == 0 || s.learnt == "" {
		return nil
	}
	_, _, rows := s.knowledge.Learnt()
	c := &Calibration{Election: s.Stage, Rows: min(s.rowsAsked(), rows), Explicit: s.Calibrate != nil, Done: s.calibrated}
	for _, v := range voters {
		c.Voters = append(c.Voters, g.stages[v].Stage)
	}
	return c
}

// Names returns the names of the voters, for people.
func (c *Calibration) Names() string {
	names := make([]string, len(c.Voters))
	for i, v := range c.Voters {
		names[i] = v.Name
	}
	return strings.Join(names, " and ")
}

// Note says what the votes of voters rest on that the election has not learnt about.
func (c *Calibration) Note() string {
	if c.Explicit {
		return c.prior()
	}
	return fmt.Sprintf("%s; calibrate = %d in elect %q asks about %s first", c.prior(), c.Rows, c.Election.Name, terminal.Plural(c.Rows, "example"))
}

func (c *Calibration) prior() string {
	if len(c.Voters) > 1 {
		return "the votes of " + c.Names() + " are not calibrated: they count by a documented prior"
	}
	return c.Names() + "'s vote is not calibrated: it counts by a documented prior"
}

// rowsAsked returns how many rows voters that call services are asked about.
func (s *stage) rowsAsked() int {
	if s.Calibrate != nil {
		return min(*s.Calibrate, maxVoted)
	}
	return calibrationRows
}

// callers returns the voters above an election that learns from votes that call services.
func (s *stage) callers() []int {
	if s.rescue || s.knowledge == nil || !s.Info.FitReads.Has(sdk.ColumnSamples) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.in.voters), func(v int) bool { return !s.graph.stages[v].Info.Network })
}

// always returns the form of a stage for calibrating: it works on every item. nil: it is an election.
func always(s *pipeline.Stage) *pipeline.Stage {
	if s.Block == "elect" {
		return nil
	}
	if s.When == nil || s.Block != "prompt" && !s.Info.Network {
		return s
	}
	one := *s
	one.When = nil
	return &one
}

// calibrating returns the Job by which an election learns with answers of voters that call
// services; ok: there are such voters, and rows to ask them about.
func (s *stage) calibrating(start Launch) (j fitted.Job, ok bool) {
	n := s.rowsAsked()
	if len(s.callers()) == 0 || n == 0 {
		return j, false
	}
	j = s.learning(start)
	j.Asks, j.Scratch = true, nil // what cannot be kept would be paid for again
	j.From = fmt.Sprint("calibrate ", n, " ", s.votesFrom(always))
	return j, true
}

// startFitted starts a stage that learns. An election takes what it learnt with answers of voters
// that call services, if that is kept, and the run did not begin without.
func (s *stage) startFitted(ctx context.Context, start Launch) (process any, err error) {
	if j, ok := s.calibrating(start); ok && s.mayTake(j) {
		if process, s.learnt = fitted.Kept(ctx, j); process != nil {
			s.calibrated = true
			return process, nil
		}
	}
	process, s.learnt, err = fitted.Start(ctx, s.learning(start))
	return process, err
}

// mayTake reports whether an election may take what it learnt by a job: it does what it did when
// the run began, and one that is held again (Election) does what the graph's does.
func (s *stage) mayTake(j fitted.Job) bool {
	if own := s.graph.stages[s.index]; own != s {
		return own.calibrated
	}
	began := s.graph.options.Began[s.String()]
	return began == "" || j.Is(began)
}

// Calibrator decides about the calls by which an election is calibrated, and counts them. Several
// goroutines may call its methods at once.
type Calibrator interface {
	// Foresee gets every call, before any is made.
	Foresee(voter *pipeline.Stage, item sdk.Item)
	// Afford returns why the calls that were foreseen are not made; nil: they are.
	Afford() error
	// Ask gets each call that is made, resamples included.
	Ask(voter *pipeline.Stage, item sdk.Item)
	// Used gets what a sample used.
	Used(voter string, u sdk.Usage)
}

// UncalibratedError says why an election goes on without answers of voters that call services.
type UncalibratedError struct {
	Calibration *Calibration
	Err         error
}

func (e *UncalibratedError) Error() string {
	return fmt.Sprintf("%s, since %v", e.Calibration.prior(), e.Err)
}

func (e *UncalibratedError) Unwrap() error { return e.Err }

// Calibrate asks the voters of the graph's Calibration, which must not be nil, about held-out rows,
// and lets the election learn from their answers, too. Call it before the first item. An error that
// is no *UncalibratedError is that of the context.
func (g *Graph) Calibrate(ctx context.Context, start Launch, by Calibrator) error {
	s := g.stages[g.elect]
	defer g.begin() // the graphs for held-out rows use the same knowledge
	rows, err := s.calibrationVotes(ctx, start, by)
	if err == nil {
		err = s.relearn(ctx, start, rows)
	}
	if err == nil || ctx.Err() != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return &UncalibratedError{g.Calibration(), err}
}

// Foresee gives by the calls that Calibrate would make, and makes none.
func (g *Graph) Foresee(ctx context.Context, start Launch, by Calibrator) error {
	defer g.begin()
	_, done, err := g.stages[g.elect].foresee(ctx, start, by)
	if err == nil {
		done()
	}
	return err
}

// relearn replaces the process of an election by one that has learnt from these rows.
func (s *stage) relearn(ctx context.Context, start Launch, rows []sdk.TrainingRow) error {
	j, _ := s.calibrating(start)
	j.Rows = func(context.Context) ([]sdk.TrainingRow, error) { return rows, nil }
	process, learnt, err := fitted.Start(ctx, j)
	if err != nil {
		return err
	}
	if before, ok := s.process.(io.Closer); ok {
		_ = before.Close()
	}
	s.learnt, s.calibrated = learnt, true
	return s.connect(process)
}

// calibrationVotes returns held-out rows with votes, the first of them with those of voters that
// call services.
func (s *stage) calibrationVotes(ctx context.Context, start Launch, by Calibrator) ([]sdk.TrainingRow, error) {
	ahead, done, err := s.foresee(ctx, start, by)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := by.Afford(); err != nil {
		return nil, err
	}
	answers, err := ahead.ask(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.votes(ctx, start)
	if err != nil {
		return nil, err
	}
	if rows == nil { // every voter calls a service
		for _, item := range ahead.held.options.Holdout.Items {
			rows = append(rows, sdk.TrainingRow{ID: item.ID, Label: item.Label, HeldOut: true})
		}
	}
	for i := range rows {
		if given := answers[rows[i].ID]; given != nil {
			rows[i].Samples = s.inOrder(append(rows[i].Samples, given...))
		}
	}
	return rows, nil
}

// inOrder sorts samples by their voters, in file order.
func (s *stage) inOrder(samples []sdk.Sample) []sdk.Sample {
	at := map[string]int{}
	for i, v := range s.in.voters {
		at[s.graph.stages[v].Name] = i
	}
	slices.SortStableFunc(samples, func(a, b sdk.Sample) int { return cmp.Compare(at[a.Voter], at[b.Voter]) })
	return samples
}

// examples asks voters that call services about held-out rows.
type examples struct {
	election *stage
	held     *Graph // of these voters and what they need
	by       Calibrator
	asking   bool // else the calls are only foreseen
}

// foresee gives by the calls about held-out rows, and returns what makes them.
func (s *stage) foresee(ctx context.Context, start Launch, by Calibrator) (e *examples, done func(), err error) {
	rows, err := s.graph.Choose(ctx, maxVoted)
	if err != nil {
		return nil, nil, err
	}
	if rows.Items = rows.Items[:min(s.rowsAsked(), len(rows.Items))]; len(rows.Items) == 0 {
		return nil, nil, errors.New("no row can be held out of the knowledge")
	}
	e = &examples{election: s, by: by}
	p, processes := s.asked(), make([]any, len(s.graph.stages))
	for _, v := range s.callers() {
		processes[v] = s.graph.stages[v].process
	}
	o := Options{Holdout: rows, Calls: true, Pending: s.graph.options.Pending, Waits: s.graph.options.Waits}
	o.Ask = func(voter *pipeline.Stage, _ int, item sdk.Item) bool {
		if at := slices.Index(p.Stages, voter); at >= 0 { // forecasts know the voter by the file's stage
			voter = s.graph.pipeline.Stages[at]
		}
		if e.asking {
			by.Ask(voter, item)
		} else {
			by.Foresee(voter, item)
		}
		return e.asking
	}
	if e.held, done, err = s.graph.hold(ctx, p, o, processes, start); err != nil {
		return nil, nil, err
	}
	if err = e.pass(ctx, "preparing to calibrate", func(*Record, []sdk.Sample) {}); err != nil {
		done()
		return nil, nil, err
	}
	return e, done, nil
}

// pass is Graph.pass in batches so small that progress shows.
func (e *examples) pass(ctx context.Context, doing string, each func(*Record, []sdk.Sample)) error {
	size := 4
	if e.held.gathers {
		size = heldBatch * Window
	}
	return e.held.pass(ctx, e.election, doing, size, each)
}

// ask returns the voters' samples by the id of the row. It is an error if more than a tenth of the
// rows lacks a voter's.
func (e *examples) ask(ctx context.Context) (answers map[string][]sdk.Sample, err error) {
	e.asking, answers = true, map[string][]sdk.Sample{}
	var all []*Record
	var cause *outcome.Failure
	failed, voters, needs := 0, e.election.callers(), append(slices.Clone(e.election.in.needs), e.election.index)
	err = e.pass(ctx, "calibrating", func(rec *Record, samples []sdk.Sample) {
		all = append(all, rec)
		for _, one := range samples {
			e.by.Used(one.Voter, one.Usage)
		}
		if f := rec.lost(needs); f == nil {
			answers[rec.id] = rec.samples(voters)
		} else if sdk.CodeOf(f.Err) != sdk.CodeRefused { // then it abstains
			failed, cause = failed+1, cmp.Or(cause, f)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case 10*failed > len(all):
		return nil, fmt.Errorf("%d of %s have no answer: %w", failed, terminal.Plural(len(all), "example"), cause)
	}
	return answers, e.held.Settle(all)
}

// asked returns the pipeline of the voters that call services, and of what they need, in the form
// in which they work on every item.
func (s *stage) asked() *pipeline.Pipeline {
	p := *s.graph.pipeline
	p.Stages = slices.Clone(p.Stages)
	for i, one := range p.Stages {
		if form := always(one); form != nil {
			p.Stages[i] = form
		}
	}
	wanted := map[int]bool{}
	var want func(int)
	want = func(i int) {
		wanted[i] = true
		for _, n := range p.Needs(i) {
			want(n)
		}
	}
	for _, v := range s.callers() {
		want(v)
	}
	for i, one := range p.Stages {
		if one.Enabled && !wanted[i] {
			off := *one
			off.Enabled, p.Stages[i] = false, &off
		}
	}
	return &p
}
