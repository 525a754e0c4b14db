package stage

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/outcome"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/show/terminal"

	"github.com/racflow/racflow/sdk"
)

// Options say how stages run.
type Options struct {
	Ballots bool // records keep what voters returned, so that elections can be held again
	Lists   bool // what each retrieve and rerank stage left has texts
	Basis   bool // results have what the stages saw of the knowledge
	// Strict ends the graph where a stage has to stop, rather than answer items
	// without it: figures are then of one method.
	Strict bool
	// Ask decides whether a voter that calls a service is asked about the item of a line,
	// each time before it is, resamples included. Where it is not, it is as if its when rule
	// did not hold. nil: it is asked.
	Ask func(s *pipeline.Stage, line int, item sdk.Item) bool
	// Refuses reports whether every call that a stage asks its host for is refused from
	// now on. A stage that had to stop is then still asked about the items that it had
	// been given: what the response cache holds, it answers. nil: none is asked.
	Refuses func(*pipeline.Stage) bool
	// Holdout are the items, where those are rows of a knowledge that are held out of it;
	// nil: they are none.
	Holdout *fitted.HeldOut
	Observe outcome.Observer       // hears of calls; nil: nobody listens
	Calls   bool                   // with Holdout: stages that ask services run, and the election
	Waits   *terminal.WaitReporter // hears what stages wait for; nil: nobody does
	Pending *retry.Handles         // handles of results that come later; nil: those are errors
	Fitted  string                 // folder of what stages learn from knowledge
	Scratch func() (string, error) // makes a folder in its place where that cannot be written; may be nil
	Fitting terminal.ProgressFunc  // of stages, as "sample.mine", that learn
}

// Graph is the stages of a pipeline that run.
type Graph struct {
	pipeline  *pipeline.Pipeline
	options   Options
	stages    []*stage // by position in the pipeline; nil: not run
	retrieve  int      // the last retrieve stage; -1: none
	found     int      // the last stage that writes candidates: a retrieve or a rerank stage; -1: none
	elect     int      // the last elect stage; -1: none
	voters    []int
	network   bool // a stage asks other machines
	gathers   bool // a stage asks a service in batches
	knowledge map[*pipeline.Knowledge]*knowledge.Knowledge
	labels    map[*pipeline.Knowledge]*rule.LabelSet
	ending    *ending
	folders   []func() // remove what stages have learnt for a fold

	mu     sync.Mutex
	lost   []bool             // by stage: it, or a fallback of it, had to stop
	halted []*outcome.Failure // why
	// elsewhere is what stages have done on other machines.
	elsewhere []outcome.StageTime
}

// stage is a stage of the pipeline that runs.
type stage struct {
	*pipeline.Stage
	graph     *Graph
	name      string // as results have it: "sample.llm", or "sample.llm, fallback.other"
	index     int
	in        inputs
	knowledge *knowledge.Knowledge // of the nearest retrieve stage; nil: none
	labels    *rule.LabelSet
	above     *rule.LabelSet // of a retrieve or rerank stage: those that its when rule sees
	process   any            // nil: it has none, or one for each fold
	random    sdk.Draw       // examples that it wants of its knowledge
	shown     bool           // of a retrieve stage: another one reads the texts of its candidates
	method    method
	whole     *whole   // of a retrieve stage whose whole rule holds, and of those below it; nil: it searches
	fallbacks []*stage // as Stage.Fallbacks
	rescue    bool     // it is a fallback itself
	readers   []*stage // of a prompt stage: those that read its prompts

	slots       chan struct{}  // holds its calls that are under way; nil: the batches under way are few
	ending      *ending        // of its waits: it has to stop, or the graph ends
	stopped     atomic.Bool    // it had to stop
	spread      atomic.Bool    // a voter: it returns distributions
	fingerprint string         // of its process
	identity    string         // digest of all that what it makes of a row depends on
	learnt      string         // names what it has learnt; empty: nothing
	resolved    map[string]any // by its process
	rows        atomic.Int64
	busy        atomic.Int64
}

func (s *stage) String() string { return s.Block + "." + s.Name }

// New finds out which stages of a pipeline run and what each reads from.
func New(p *pipeline.Pipeline, o Options) *Graph {
	o.Observe = outcome.ObserverOr(o.Observe)
	g := &Graph{
		pipeline: p, options: o, retrieve: -1, found: -1, elect: -1,
		stages: make([]*stage, len(p.Stages)), lost: make([]bool, len(p.Stages)),
		knowledge: map[*pipeline.Knowledge]*knowledge.Knowledge{}, labels: map[*pipeline.Knowledge]*rule.LabelSet{},
		ending: newEnding(), network: Calls(p) > 0, gathers: Gathers(p),
	}
	in := inputs{retrieve: -1, found: -1, prompt: -1}
	for i, definition := range p.Stages {
		if !definition.Enabled || !p.Used(i) {
			continue
		}
		if definition = o.runs(definition); definition == nil {
			continue
		}
		in.needs = g.needs(i)
		s := &stage{Stage: definition, graph: g, name: definition.Block + "." + definition.Name, index: i, in: in, ending: newEnding(), slots: g.slotsOf(definition)}
		s.in.voters = slices.Clone(in.voters)
		g.stages[i] = s
		switch s.Block {
		case "retrieve":
			in.retrieve, g.retrieve = i, i
			in.found, g.found = i, i
		case "rerank":
			in.found, g.found = i, i
		case "prompt":
			in.prompt = i
		case "sample":
			in.voters = append(in.voters, i)
		case "elect":
			g.elect = i
		}
		for _, n := range p.Needs(i) {
			switch above := g.stages[n]; {
			case above == nil:
			case above.Block == "prompt":
				above.readers = append(above.readers, s)
			case s.Block == "elect" && (above.Block != "sample" || s.names(above)):
				s.in.firm = append(s.in.firm, n)
			}
		}
	}
	for i, s := range g.stages {
		if s != nil && s.Block == "prompt" && len(s.readers) == 0 && o.Holdout != nil {
			g.stages[i] = nil // those that would read its prompts do not run
		}
	}
	g.voters = in.voters
	return g
}

// needs returns all stages that stage i waits for, directly or not, in file order.
func (g *Graph) needs(i int) []int {
	all := make([]bool, i)
	var add func(int)
	add = func(i int) {
		for _, n := range g.pipeline.Needs(i) {
			if !all[n] {
				all[n] = true
				add(n)
			}
		}
	}
	add(i)
	var sorted []int
	for n := range all {
		if all[n] {
			sorted = append(sorted, n)
		}
	}
	return sorted
}

// Labels are those of the knowledge that the last retrieve stage searches.
func (g *Graph) Labels() []string {
	if g.retrieve < 0 {
		return nil
	}
	return g.knowledge[g.stages[g.retrieve].Retrieve.From].Labels
}

// Knowledge returns what is searched, in file order.
func (g *Graph) Knowledge() []*knowledge.Knowledge {
	var all []*knowledge.Knowledge
	for _, block := range g.pipeline.Knowledge() {
		if k := g.knowledge[block]; k != nil {
			all = append(all, k)
		}
	}
	return all
}

// NewRecord begins the way of an item.
func (g *Graph) NewRecord(row source.Row) *Record {
	rec := &Record{Row: row, id: row.ID, outputs: make([]output, len(g.stages))}
	if rec.id == "" {
		rec.id = strconv.Itoa(row.Line)
	}
	return rec
}

// Decisions are what people have decided about texts, where the pipeline elects labels of a
// knowledge none of whose entries is held out.
func (g *Graph) Decisions() reviewed.Decisions {
	if g.elect < 0 || g.retrieve < 0 || g.options.Holdout != nil {
		return nil
	}
	if known := g.knowledge[g.stages[g.retrieve].Retrieve.From]; known != nil {
		return known.Decided
	}
	return nil
}
