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
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// This file calibrates an election that learns from votes to voters that call services. These
// voters vote on the first few of the held-out rows (learn.go). They are asked in the same way as
// about items, but ignore when rules. The result is reused, without another call, wherever the same
// voters would be asked the same.

// calibrationRows is how many rows voters are asked about if the file does not say.
const calibrationRows = 40

// Calibration describes what an election that learns knows about the voters that call services.
type Calibration struct {
	Election *pipeline.Stage
	Voters   []*pipeline.Stage // that call services
	Rows     int               // number of held-out rows to ask them about
	Explicit bool              // the file sets Rows
	Done     bool              // the election has learnt from their answers
}

// Calibration returns the Calibration of the graph's election. It returns nil if the election does
// not learn from votes, if no voter calls a service, or if the file turns calibration off.
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

// String describes how the election weighs voters that it has not learnt about, and how to calibrate
// it.
func (c *Calibration) String() string {
	text := "votes of " + c.Names() + " are not calibrated: they count by a documented prior"
	if !c.Explicit {
		text += fmt.Sprintf("; calibrate = %d in elect %q asks about %[1]d examples first", c.Rows, c.Election.Name)
	}
	return text
}

// Names returns the names of the voters, for people.
func (c *Calibration) Names() string {
	names := make([]string, len(c.Voters))
	for i, v := range c.Voters {
		names[i] = v.Name
	}
	return strings.Join(names, " and ")
}

// rowsAsked returns how many rows voters that call services are asked about.
func (s *stage) rowsAsked() int {
	if s.Calibrate != nil {
		return min(*s.Calibrate, fitted.Voted)
	}
	return calibrationRows
}

// callers returns the voters that call services, above an election that learns from votes.
func (s *stage) callers() []int {
	if s.rescue || s.knowledge == nil || !s.Info.FitReads.Has(sdk.ColumnSamples) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.in.voters), func(v int) bool { return !s.graph.stages[v].Info.Network })
}

// always returns a copy of a stage that works on every item, for calibration; nil: the stage is an
// election.
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

// calibrating returns the Job by which an election learns from answers of voters that call
// services. ok means that there are such voters, and rows to ask them about.
func (s *stage) calibrating(start Launch) (j fitted.Job, ok bool) {
	n := s.rowsAsked()
	if len(s.callers()) == 0 || n == 0 {
		return j, false
	}
	j = s.learning(start)
	j.Asks, j.Scratch = true, nil // no Scratch: results that cannot be kept would be paid for again
	j.From = fmt.Sprint("calibrate ", n, " ", s.votesFrom(always))
	return j, true
}

// startFitted starts a stage that learns. An election uses the kept result of a calibration, if
// there is one. It does not use it if the run began without it or, for an election that is held
// again, if the graph's election does not use it.
func (s *stage) startFitted(ctx context.Context, start Launch) (process any, err error) {
	own, began := s.graph.stages[s.index], s.graph.options.Began[s.String()]
	if j, ok := s.calibrating(start); ok && (own == s || own.calibrated) && (began == "" || j.Is(began)) {
		if process, s.learnt = fitted.Kept(ctx, j); process != nil {
			s.calibrated = true
			return process, nil
		}
	}
	process, s.learnt, err = fitted.Start(ctx, s.learning(start))
	return process, err
}

// Estimate passes the calls that Calibrate would make to each, and makes no call. All resamples of
// an item count as one call. Several goroutines may call each at once.
func (g *Graph) Estimate(ctx context.Context, start Launch, each func(*pipeline.Stage, sdk.Item)) error {
	defer g.begin() // the graphs for held-out rows share the knowledge
	_, done, err := g.stages[g.elect].estimate(ctx, start, each)
	if err == nil {
		done()
	}
	return err
}

// Calibrate asks the voters of the graph's Calibration, which must not be nil, about held-out rows,
// and lets the election learn from their answers, too. Call it before the first item. estimate gets
// the calls as in Estimate. Then afford returns an error if the calls should not be made. After an
// error the election is unchanged.
func (g *Graph) Calibrate(ctx context.Context, start Launch, estimate func(*pipeline.Stage, sdk.Item), afford func() error) error {
	defer g.begin()
	s := g.stages[g.elect]
	held, done, err := s.estimate(ctx, start, estimate)
	if err != nil {
		return err
	}
	defer done()
	if err := afford(); err != nil {
		return err
	}
	answers, err := s.answers(ctx, held)
	if err != nil {
		return err
	}
	rows, err := s.votes(ctx, start)
	if err != nil {
		return err
	}
	if rows == nil { // every voter calls a service
		for _, item := range held.options.Holdout.Items {
			rows = append(rows, sdk.TrainingRow{ID: item.ID, Label: item.Label, HeldOut: true})
		}
	}
	place := func(one sdk.Sample) int { // the voter's position in the file
		return slices.IndexFunc(s.in.voters, func(v int) bool { return g.stages[v].Name == one.Voter })
	}
	for i := range rows {
		rows[i].Samples = append(rows[i].Samples, answers[rows[i].ID]...)
		slices.SortStableFunc(rows[i].Samples, func(a, b sdk.Sample) int { return cmp.Compare(place(a), place(b)) })
	}
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

// estimate passes the calls about held-out rows to each. It returns a graph that makes these calls:
// the voters that call services, and the stages that they need.
func (s *stage) estimate(ctx context.Context, start Launch, each func(*pipeline.Stage, sdk.Item)) (held *Graph, done func(), err error) {
	rows, err := s.graph.Choose(ctx, s.voted())
	if err != nil {
		return nil, nil, err
	}
	if rows.Items = rows.Items[:min(s.rowsAsked(), len(rows.Items))]; len(rows.Items) == 0 {
		return nil, nil, errors.New("no row can be held out of the knowledge")
	}
	p, processes := s.asked(), make([]any, len(s.graph.stages))
	for _, v := range s.callers() {
		processes[v] = s.graph.stages[v].process
	}
	o := Options{Holdout: rows, Calls: true, Pending: s.graph.options.Pending, Waits: s.graph.options.Waits}
	o.Ask = func(voter *pipeline.Stage, _ int, item sdk.Item) bool {
		if at := slices.Index(p.Stages, voter); at >= 0 { // forecasts need the stage of the file, not its copy
			voter = s.graph.pipeline.Stages[at]
		}
		each(voter, item)
		return false
	}
	if held, done, err = s.graph.hold(ctx, p, o, processes, start); err != nil {
		return nil, nil, err
	}
	if err = held.pass(ctx, s, "preparing to calibrate", func(*Record, []sdk.Sample) {}); err != nil {
		done()
		return nil, nil, err
	}
	held.options.Ask = nil
	return held, done, nil
}

// answers returns the samples of voters that call services, by the id of the held-out row. It is an
// error if more than a tenth of the rows have no samples of a voter.
func (s *stage) answers(ctx context.Context, held *Graph) (map[string][]sdk.Sample, error) {
	var all []outcome.Result
	var cause *outcome.Failure
	given, failed, voters, needs := map[string][]sdk.Sample{}, 0, s.callers(), append(slices.Clone(s.in.needs), s.index)
	err := held.pass(ctx, s, "calibrating", func(rec *Record, _ []sdk.Sample) {
		f := cmp.Or(rec.failure(needs), rec.missing(needs))
		for _, v := range voters {
			f = cmp.Or(f, rec.outputs[v].skipped)
		}
		result, _ := held.Result(rec)
		if all = append(all, result); f == nil {
			given[rec.id] = rec.samples(voters)
		} else if sdk.CodeOf(f.Err) != sdk.CodeRefused { // on CodeRefused the voter abstains
			failed, cause = failed+1, cmp.Or(cause, f)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case 10*failed > len(all):
		return nil, fmt.Errorf("%d of %s have no answer: %w", failed, terminal.Plural(len(all), "example"), cause)
	}
	return given, held.Settle(all)
}

// asked returns a pipeline of the voters that call services, and of the stages that they need,
// changed to work on every item.
func (s *stage) asked() *pipeline.Pipeline {
	p := *s.graph.pipeline
	p.Stages = slices.Clone(p.Stages)
	for i, one := range p.Stages {
		if form := always(one); form != nil {
			p.Stages[i] = form
		}
	}
	wanted := s.callers()
	for _, v := range s.callers() {
		wanted = append(wanted, (&Graph{pipeline: &p}).needs(v)...)
	}
	for i, one := range p.Stages {
		if one.Enabled && !slices.Contains(wanted, i) {
			off := *one
			off.Enabled, p.Stages[i] = false, &off
		}
	}
	return &p
}
