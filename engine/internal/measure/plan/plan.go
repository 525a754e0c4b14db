package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// Plan says what a run would do.
type Plan struct {
	File      *pipeline.File
	Pipeline  *pipeline.Pipeline
	Items     int // in the input; -1: not known before it is read
	Parts     int // above 1: the input is split into this many runs, each with a part of limits and budget
	Invalid   int // unusable rows of the input
	Knowledge []knowledge.BuildReport
	Texts     map[string]Texts // by knowledge: the most texts that a service would embed
	Forecast  *Forecast        // nil: no stage or embedder that items go through calls a service
	Models    []Model          // models that stages ask
	Plugins   []Plugin         // third parties' plugins
	Wants     []trust.Want     // what the file wants beyond its folder
}

// Call is the forecast of a voter's calls for all items of the input.
type Call struct {
	Stage *pipeline.Stage
	Voter VoterAsked // of the items of the dry run
	Items int
	// Forecast is for all items. Its Most is known only if all items were in the dry run.
	sdk.Forecast
	// Cost is the expected cost and MostCost the highest cost; 0: the stage has no price.
	Cost, MostCost float64
}

// Calls returns the calls of the voters in the dry run, in file order.
func (p *Plan) Calls() []Call {
	var all []Call
	f := p.Forecast
	scale := func(n int) int { return int(float64(n)*float64(p.Items)/float64(max(f.Tried, 1)) + .5) }
	for _, s := range p.Pipeline.Stages {
		v, ok := f.Voters[s.Name]
		if !ok || s.Block != "sample" {
			continue
		}
		c := Call{Stage: s, Voter: v, Items: scale(v.Items), Forecast: v.Forecast}
		c.Requests, c.Answers, c.Cached = scale(v.Requests), scale(v.Answers), scale(v.Cached)
		for _, n := range []*uint64{&c.Likely.InputTokens, &c.Likely.CachedTokens, &c.Likely.OutputTokens, &c.Low, &c.High} {
			*n = uint64(scale(int(*n)))
		}
		if price := s.CallPrice(); price != nil {
			c.Cost = price.Of(c.Likely)
			c.MostCost = price.AtMost(v.Most)
		}
		all = append(all, c)
	}
	return all
}

// sampled is the largest number of items in a dry run.
const sampled = 500

// Forecast is the forecast of the voters' calls.
type Forecast struct {
	Unknown string // why there is no forecast; empty: there is one
	Tried   int    // items of the input in the dry run
	Failed  int    // items that failed in it
	Cause   error  // of the first failure
	Voters  map[string]VoterAsked
	// Beside names what items send to services without being counted in a figure; empty: nothing.
	Beside string
	// StandIns has the knowledge whose chunks stood in for its entries, by name, with the reason.
	StandIns map[string]string
	// Spending forecasts the effect of Options.Spend; nil: that is not set.
	Spending *Spending
	// Calibrating is nil if the election learns nothing about the voters that call services.
	Calibrating *Calibrating
}

// Calibrating says whether a run asks voters about held-out rows before the first item.
type Calibrating struct {
	*stage.Calibration
	outcome.Bill      // what asking costs, unless Done; zero: unknown
	Wanted       bool // a run asks
}

// asks reports whether a stage is a voter that calls a service.
func asks(s *pipeline.Stage) bool { return s.Enabled && s.Block == "sample" && s.Info.Network }

// forecast finds out by a dry run what the voters that call services would ask. nil: no stage
// or embedder that items go through calls a service.
func (p *Plan) forecast(ctx context.Context, o Options) (*Forecast, error) {
	f := &Forecast{Voters: map[string]VoterAsked{}}
	asked := false
	for i, stage := range p.Pipeline.Stages {
		switch {
		case !stage.Enabled || !p.Pipeline.Used(i) || !stage.Info.Network:
		case asks(stage):
			asked = true
		case stage.Kind == sdk.KindRerank:
			f.Beside = fmt.Sprintf("%s.%s calls a service, and what it sends is not estimated", stage.Block, stage.Name)
		default:
			f.Unknown = fmt.Sprintf("%s.%s calls a service, and what it sends is not estimated", stage.Block, stage.Name)
		}
	}
	for _, k := range p.Pipeline.Knowledge() {
		if k.Embed.Info.Network {
			f.Beside = cmp.Or(f.Beside, fmt.Sprintf("knowledge %q is embedded by a service, which embeds the items as well", k.Name))
		}
	}
	switch {
	case !asked:
		f.Unknown = cmp.Or(f.Unknown, f.Beside)
	case f.Unknown == "":
		f.StandIns = p.missing()
		f.Unknown = p.impossible(o, f)
	}
	switch {
	case f.Unknown != "":
		return f, nil
	case !asked:
		return nil, nil
	}
	return f, p.dryRun(ctx, o, f)
}

// impossible returns why a dry run is impossible without asking a service or changing anything
// elsewhere, in a pipeline where only voters call services; empty: it is possible.
func (p *Plan) impossible(o Options, f *Forecast) string {
	switch p.Items {
	case -1:
		return "the input is standard input, which is left for the run"
	case 0:
		return "the input holds no items"
	}
	for _, k := range p.Pipeline.Knowledge() {
		switch why := f.StandIns[k.Name]; {
		case k.Stdin():
			return fmt.Sprintf("knowledge %q is read from standard input", k.Name)
		case k.Attached() && why != "":
			return fmt.Sprintf("nothing can be found in knowledge %q: %s", k.Name, why)
		case why != "" && standInStages(o) == nil:
			return fmt.Sprintf("the entries of knowledge %q are not there: %s", k.Name, why)
		}
	}
	return ""
}

// dryRun sends some items through the pipeline, with a stand-in for each voter that calls a
// service.
func (p *Plan) dryRun(ctx context.Context, o Options, f *Forecast) error {
	d := newDryRun()
	in, done, err := p.standIn(o, f)
	if err != nil {
		return err
	}
	defer done()
	if in.dir != "" {
		o.Fitted, o.Knowledge = filepath.Join(in.dir, "fitted"), nil
	}
	stages, kept := stage.Options{Fitted: o.Fitted}, run.Journal(nil)
	if o.Spend.IsSet() {
		var err error
		if f.Spending, err = p.spending(ctx, o); err != nil {
			return err
		}
		stages.Ask, kept = f.Spending.ask, f.Spending.spender.Survey(nothing{})
	}
	launch := func(ctx context.Context, l stage.LaunchRequest) (any, error) {
		if l.Stage.Kind != sdk.KindSample || !l.Stage.Info.Network {
			return in.Launch(ctx, l)
		}
		asked, err := o.Forecaster(ctx, l.Stage)
		return d.sampler(l.Stage, asked), err
	}
	ready, err := run.Open(ctx, p.Pipeline, run.Options{
		Launch: launch, Options: stages, Samples: o.Samples, Progress: o.Progress, Knowledge: o.Knowledge,
	})
	if err != nil {
		return err
	}
	items, err := o.Rows()
	if err != nil {
		return err
	}
	defer items.Close() //nolint:errcheck // it was only read
	broken := 0         // items on which a stage failed
	_, err = ready.Items(ctx, spread(items.Next, p.Items, sampled), kept, func(batch []outcome.Result) error {
		for _, result := range batch {
			if f.add(result); result.Failure != nil && result.Failure.Stage != "" {
				broken++
			}
		}
		return nil
	})
	if f.Spending != nil {
		f.Spending.sum(f.Tried, p.Items)
	}
	for _, stage := range p.Pipeline.Stages {
		if asks(stage) {
			v := d.voter(stage.Name)
			v.Unknown = cmp.Or(voterUnknown(p.Pipeline, stage), v.Unknown, f.unknown(p.Items, broken))
			f.Voters[stage.Name] = v
		}
	}
	if err != nil {
		return err
	}
	if o.Calibrating != nil {
		f.Calibrating, err = o.Calibrating(ctx, ready.Graph(), launch)
	}
	return err
}

// add counts an item that was tried.
func (f *Forecast) add(result outcome.Result) {
	if f.Tried++; f.Spending != nil {
		f.Spending.add(result)
	}
	if result.Failure != nil {
		if f.Failed++; f.Failed == 1 {
			f.Cause = result.Failure
		}
	}
}

// unknown returns why no voter's usage is known for all items; empty: it is known. broken counts
// the items on which a stage failed.
func (f *Forecast) unknown(items, broken int) string {
	switch {
	case len(f.StandIns) > 0:
		return "other texts stood in for those that a run will find"
	case broken > 0:
		return fmt.Sprintf("%s failed before it was asked", terminal.Plural(broken, "item"))
	case f.Tried < items:
		return fmt.Sprintf("%d of %s were looked at", f.Tried, terminal.Plural(items, "item"))
	}
	return ""
}

// spread returns n of total rows, spread evenly.
func spread(next func() (source.Row, error), total, n int) func() (source.Row, error) {
	n = min(n, total)
	at, given := 0, 0
	return func() (source.Row, error) {
		for given < n {
			row, err := next()
			if err != nil {
				return row, err
			}
			if at++; at-1 == given*total/n {
				given++
				return row, nil
			}
		}
		return source.Row{}, io.EOF
	}
}

// Texts counts texts that would be sent to a service.
type Texts struct{ Count, Tokens int }

// Rows reads the rows of an input.
type Rows interface {
	Next() (source.Row, error) // io.EOF after the last one
	Close() error
}

// Options configures a plan.
type Options struct {
	Launch stage.Launch
	// Stage finds a built-in stage, which may stand in for a stage of a knowledge.
	Stage   func(kind sdk.Kind, use string) (sdk.Stage, bool)
	Fitted  string // as stage.Options.Fitted
	Samples string // as knowledge.Options.Samples
	// Forecaster opens a voter that forecasts what it would send, calling no service; nil: it has
	// no forecasts.
	Forecaster func(context.Context, *pipeline.Stage) (sdk.Forecaster, error)
	// Spending returns a function that forecasts what a voter uses for an item, if Spend is set:
	// answers in the response cache count as if they were paid for.
	Spending func(context.Context, spend.Limit) (func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error), error)
	// Enricher is like Forecaster, for an enricher.
	Enricher  func(context.Context, *pipeline.Stage) (sdk.EnrichForecaster, error)
	Spend     spend.Limit                            // the limit whose effect is forecast, if it is set
	Rows      func() (Rows, error)                   // opens the input; nil: it can be read only once
	Models    func(context.Context) ([]Model, error) // returns the models that stages ask, calling no service
	Knowledge func(knowledge.BuildReport)
	Progress  progress.Func
	Wants     []trust.Want // what the file wants beyond its folder
	// Calibrating says whether a run over the input asks voters about held-out rows before the first
	// item. launch starts further processes for the graph. nil, or a nil result: no voter is asked.
	Calibrating func(ctx context.Context, g *stage.Graph, launch stage.Launch) (*Calibrating, error)
}

// Make plans a run of one of the pipelines of a file.
func Make(ctx context.Context, f *pipeline.File, p *pipeline.Pipeline, o Options) (*Plan, error) {
	plan := &Plan{File: f, Pipeline: p, Items: -1, Texts: map[string]Texts{}, Wants: o.Wants}
	err := plan.count(o)
	if err == nil {
		err = plan.compare(ctx, o)
	}
	if err == nil {
		plan.Plugins, err = plugins(p)
	}
	if err == nil {
		plan.Models, err = o.Models(ctx)
	}
	if err == nil {
		plan.Forecast, err = plan.forecast(ctx, o)
	}
	return plan, err
}

func (p *Plan) count(o Options) error {
	if o.Rows == nil {
		return nil
	}
	rows, err := o.Rows()
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	for p.Items = 0; ; p.Items++ {
		row, err := rows.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case row.Err != nil:
			p.Invalid++
		}
	}
}

// compare compares the knowledge that the pipeline searches with its sources, and reads the state of
// attached collections. It asks no embedding service. It counts all texts, even those that are
// already embedded and would not be sent again.
func (p *Plan) compare(ctx context.Context, o Options) error {
	for _, block := range p.Pipeline.Knowledge() {
		r := knowledge.BuildReport{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
		estimate := knowledge.Forecasters{}
		var err error
		for _, s := range block.Enrichers() {
			if s.Info.Network {
				if estimate[s], err = o.Enricher(ctx, s); err != nil {
					return err
				}
			}
		}
		switch {
		case block.Stdin():
		case block.Embed.Info.Network && !block.Attached():
			var t Texts
			r, err = knowledge.BuildTexts(ctx, block, stage.LaunchKnowledge(block, o.Launch), estimate, func(text string) {
				t.Count++
				t.Tokens += sdk.EstimateTokens(len([]rune(text)))
			})
			p.Texts[block.Name] = t
		default:
			var k *knowledge.Knowledge
			if k, err = knowledge.Open(ctx, block, stage.LaunchKnowledge(block, o.Launch), knowledge.Options{Plan: true, Estimate: estimate, Samples: o.Samples}); err == nil {
				r = k.Report
			}
		}
		if err != nil {
			return err
		}
		p.Knowledge = append(p.Knowledge, r)
	}
	return nil
}

// Plugin is a third party's program that the pipeline starts, and its permissions.
type Plugin struct {
	program.Program
	Hash   string           // of the present program
	Stages []string         // the stages that it runs, such as "sample.mine"
	Memory map[string]int64 // bytes that a stage's process may hold; stages without a limit are missing
	Gaps   []string         // which parts of its confinement this system cannot enforce
}

// plugins returns the plugins of a pipeline and its knowledge, each once, in the order in which
// data reaches them. It starts none.
func plugins(p *pipeline.Pipeline) ([]Plugin, error) {
	var all []Plugin
	for name, s := range p.Processes() {
		if s.Program == nil {
			continue
		}
		at := slices.IndexFunc(all, func(have Plugin) bool { return have.Name == s.Program.Name })
		if at < 0 {
			hash, err := s.Program.Check()
			if err != nil {
				return nil, err
			}
			at = len(all)
			all = append(all, Plugin{Program: *s.Program, Hash: hash, Memory: map[string]int64{}})
			if !s.Program.Allow.Unconfined {
				all[at].Gaps = confine.Probe().Gaps(confine.Policy{Network: len(s.Program.Allow.Hosts) > 0, Local: confine.Loopback(s.Program.Allow.Hosts)})
			}
		}
		if !slices.Contains(all[at].Stages, name) {
			all[at].Stages = append(all[at].Stages, name)
		}
		if s.Memory > 0 {
			all[at].Memory[name] = max(all[at].Memory[name], s.Memory)
		}
	}
	for i, p := range all {
		if len(p.Memory) > 0 && runtime.GOOS != "linux" {
			all[i].Gaps = append(all[i].Gaps, "its memory is not watched")
		}
	}
	return all, nil
}

// Spending forecasts the effect of limits on what voters use, for all items of the input.
type Spending struct {
	Limit spend.Limit
	Rows  []Spent // by amount, ascending
	// Labelled counts the items of the dry run with a label; Right counts the labelled items that
	// the free voters answer correctly. Confident means that the election estimates a confidence.
	Labelled, Right int
	Confident       bool

	spender *spend.Spender
	wrong   map[int]bool
}

// Spent is the effect of one limit.
type Spent struct {
	Amount   float64 // the limit; infinite: none
	Accuracy float64 // upper bound on labelled items: voters answer every item right that they get
	spend.Preview
}

// spending prepares to forecast the effect of a limit.
func (p *Plan) spending(ctx context.Context, o Options) (*Spending, error) {
	forecast, err := o.Spending(ctx, o.Spend)
	if err != nil {
		return nil, err
	}
	return &Spending{
		Limit: o.Spend, wrong: map[int]bool{},
		spender: spend.New(spend.Options{Limit: o.Spend, Forecast: forecast, Cost: p.Pipeline.Cost}),
	}, nil
}

// ask records what an item would use, and lets the stand-in see it.
func (s *Spending) ask(voter *pipeline.Stage, line int, item sdk.Item) bool {
	s.spender.Ask(voter, line, item)
	return true
}

// nothing is a journal that keeps no results.
type nothing struct{}

func (nothing) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }
func (nothing) Keep([]outcome.Result) error                { return nil }

func (s *Spending) add(r outcome.Result) {
	s.Confident = s.Confident || r.Confidence > 0
	if r.Failure != nil || r.Expected == "" {
		return
	}
	s.Labelled++
	if r.Right() {
		s.Right++
	} else {
		s.wrong[r.Line] = true
	}
}

// sum computes the effect of 0, half the limit, the limit, twice the limit, and no limit. It scales
// the figures of the dry run up to all items.
func (s *Spending) sum(tried, items int) {
	limit, share := s.Limit.Amount(), float64(tried)/float64(max(items, 1))
	scale := func(n int) int { return int(float64(n)/share + .5) }
	all := s.spender.Preview(math.Inf(1), s.wrong)
	half := limit / 2
	if s.Limit.Calls != nil {
		half = math.Floor(half)
	}
	for _, amount := range []float64{0, half, limit, 2 * limit, math.Inf(1)} {
		if len(s.Rows) > 0 && amount == s.Rows[len(s.Rows)-1].Amount {
			continue
		}
		found := s.spender.Preview(amount*share, s.wrong)
		if found.Items == all.Items && amount > limit && !math.IsInf(amount, 1) {
			continue // no more items than without a limit
		}
		row := Spent{Amount: amount, Preview: found}
		if s.Labelled > 0 {
			row.Accuracy = float64(s.Right+found.Errors) / float64(s.Labelled)
		}
		row.Items, row.Calls, row.Errors = scale(found.Items), scale(found.Calls), scale(found.Errors)
		row.Cost, row.Doubt = found.Cost/share, found.Doubt/share
		s.Rows = append(s.Rows, row)
	}
}
