package stage

import (
	"context"
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
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/source"

	"github.com/racflow/racflow/sdk"
)

// Options say how stages run.
type Options struct {
	Ballots bool // records keep the voters' samples, so that elections can be held again
	Lists   bool // candidates of each retrieve and rerank stage have texts
	// Strict ends the graph if a stage has to stop, instead of answering items without it. So all
	// figures come from one method.
	Strict bool
	// Ask decides, before each call of a voter that calls a service, resamples included, whether
	// the voter is asked about the item of a line. If not, the effect is as if the voter's when
	// rule did not hold. nil: the voter is asked.
	Ask func(s *pipeline.Stage, line int, item sdk.Item) bool
	// Refuses reports whether the host refuses every call of a stage from now on. A stopped stage
	// is then still asked about its present items, and answers those in the response cache. nil: no
	// stopped stage is asked.
	Refuses func(*pipeline.Stage) bool
	// Holdout is set if the items are rows held out of a knowledge; nil: they are not.
	Holdout *fitted.HeldOut
	Observe outcome.Observer       // gets the calls; nil: no observer
	Calls   bool                   // with Holdout: stages that call services run, and so does the election
	Waits   *progress.WaitReporter // gets what stages wait for; nil: no reports
	Pending *retry.Handles         // handles of results that come later; nil: such results are errors
	Fitted  string                 // folder for what stages learn from knowledge
	Scratch func() (string, error) // makes a replacement folder if Fitted cannot be written; may be nil
	Fitting progress.Func          // of stages that learn, as "sample.mine"
	// Began is set if another process began the run. It has what each stage had learnt then
	// (Identity.Learnt), and an election uses the same. nil: the run begins here.
	Began map[string]string
}

// Graph holds the stages of a pipeline that run.
type Graph struct {
	pipeline  *pipeline.Pipeline
	form      sdk.LabelForm
	options   Options
	stages    []*stage // by position in the pipeline; nil: not run
	retrieve  int      // the last retrieve stage; -1: none
	found     int      // the last stage that writes candidates (retrieve or rerank); -1: none
	elect     int      // the last elect stage; -1: none
	voters    []int
	network   bool // a stage asks other machines
	gathers   bool // a stage asks a service in batches
	knowledge map[*pipeline.Knowledge]*knowledge.Knowledge
	labels    map[*pipeline.Knowledge]*rule.LabelSet
	ending    *ending
	folders   []func() // remove what stages learnt for a fold

	mu     sync.Mutex
	lost   []bool             // by stage: the stage, or its fallback, had to stop
	halted []*outcome.Failure // the causes
}

// stage is a stage of the pipeline that runs.
type stage struct {
	*pipeline.Stage
	graph     *Graph
	name      string // as in results: "sample.llm", or "sample.llm, fallback.other"
	index     int
	in        inputs
	knowledge *knowledge.Knowledge // of the nearest retrieve stage; nil: none
	labels    *rule.LabelSet
	above     *rule.LabelSet // of a retrieve or rerank stage: the labels for its when rule
	process   any            // nil: none, or one for each fold
	random    sdk.Draw       // random examples that the stage asks for
	method    method
	whole     *whole   // of a retrieve stage whose whole rule holds, and of stages below; nil: it searches
	fallbacks []*stage // as Stage.Fallbacks
	rescue    bool     // the stage is a fallback
	readers   []*stage // of a prompt stage: stages that read its prompts

	slots       chan struct{}  // bounds concurrent calls; nil: no bound, because few batches are in work
	ending      *ending        // ends the stage's waits when it has to stop, or the graph ends
	stopped     atomic.Bool    // it had to stop
	spread      atomic.Bool    // the voter returned distributions
	fingerprint string         // of its process
	identity    string         // digest of everything that the output for a row depends on
	learnt      string         // identifies what the stage learnt; empty: nothing
	calibrated  bool           // the election learnt from answers of voters that call services
	resolved    map[string]any // arguments that its process chose
	rows        atomic.Int64
	busy        atomic.Int64
}

func (s *stage) String() string { return s.Block + "." + s.Name }

// New returns the graph of the pipeline's stages that run, with their inputs.
func New(p *pipeline.Pipeline, o Options) *Graph {
	o.Observe = outcome.ObserverOr(o.Observe)
	g := &Graph{
		pipeline: p, form: p.LabelForm(), options: o, retrieve: -1, found: -1, elect: -1,
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
			case s.Block == "elect" && above.Block != "sample":
				s.in.firm = append(s.in.firm, n)
			}
		}
	}
	for i, s := range g.stages {
		if s != nil && s.Block == "prompt" && len(s.readers) == 0 && o.Holdout != nil {
			g.stages[i] = nil // the stages that read its prompts do not run
		}
	}
	g.voters = in.voters
	return g
}

// needs returns all stages that stage i waits for, directly or indirectly, in file order.
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

// Labels returns the labels of the knowledge that the last retrieve stage searches.
func (g *Graph) Labels() []string {
	if g.retrieve < 0 {
		return nil
	}
	return g.knowledge[g.stages[g.retrieve].Retrieve.From].Labels
}

// Knowledge returns the searched knowledge, in file order.
func (g *Graph) Knowledge() []*knowledge.Knowledge {
	var all []*knowledge.Knowledge
	for _, block := range g.pipeline.Knowledge() {
		if k := g.knowledge[block]; k != nil {
			all = append(all, k)
		}
	}
	return all
}

// NewRecord returns the record of a row.
func (g *Graph) NewRecord(row source.Row) *Record {
	rec := &Record{Row: row, id: row.ID, outputs: make([]output, len(g.stages))}
	if rec.id == "" {
		rec.id = strconv.Itoa(row.Line)
	}
	return rec
}

// Renames returns the labels that the knowledge renames or merges, because items may have the old
// labels.
func (g *Graph) Renames() source.Renames {
	if known := g.answersFrom(); known != nil {
		return known.Renames
	}
	return nil
}

// Described returns the descriptions of the labels that the pipeline elects.
func (g *Graph) Described() map[string]sdk.Described {
	if known := g.answersFrom(); known != nil {
		return known.Described
	}
	return nil
}

// Embed returns a vector of each text, by the embedder of the knowledge whose labels the pipeline elects; nil: there is
// no such knowledge or embedder.
func (g *Graph) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	known := g.answersFrom()
	if known == nil || !known.Embeds() {
		return nil, nil
	}
	return known.Embed(ctx, texts)
}

// answersFrom returns the knowledge whose labels the pipeline elects; nil: there is none.
func (g *Graph) answersFrom() *knowledge.Knowledge {
	if g.elect < 0 || g.retrieve < 0 {
		return nil
	}
	return g.knowledge[g.stages[g.retrieve].Retrieve.From]
}

// Decisions returns people's decisions about texts, if the pipeline elects labels of a knowledge
// and holds none of its entries out.
func (g *Graph) Decisions() reviewed.Decisions {
	if known := g.answersFrom(); known != nil && g.options.Holdout == nil {
		return known.Decided
	}
	return nil
}
