package run

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/fitted"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
)

// Options are what Open needs beside the pipeline.
type Options struct {
	stage.Options
	Launch    launch.Func
	Stdin     io.Reader
	Vectors   cache.VectorOptions          // of passages, from earlier builds
	Knowledge func(build.Report)           // is called for every knowledge that is ready; may be nil
	Progress  progress.Func                // of knowledge that is built, and of stages that learn from it
	Waiting   func(name string, why error) // is called when another process is building it; may be nil
	Samples   string                       // as knowledge.Options.Samples
	// Remote answers in the place of this machine's stages, which still search for what may be
	// taken from another run (Recaller); nil: the stages answer.
	Remote   Remote
	Spending Spending // with Remote, where a run may spend only so much; else nil
	// Stands are the generations that are searched, by knowledge, where another process has built
	// them for this run; nil: this one brings them up to date.
	Stands map[string]Generation
	// Edition has the run search generations that nobody changes (generation.Edition), for one that
	// answers for long.
	Edition bool
}

// Run is a pipeline that is ready for items.
type Run struct {
	pipeline *pipeline.Pipeline
	observe  observe.Observer
	graph    *stage.Graph
	batch    int  // items that travel together
	window   int  // batches under way at a time
	gathers  bool // a batch waits until it is full, or for the end of the input
	fitted   string
	remote   Remote   // nil: the stages answer
	spending Spending // nil: nobody bounds what voters spend

	mu      sync.Mutex
	told    []outcome.StageTime   // to other machines
	later   Later                 // nil: nobody asks
	records map[int]*stage.Record // by line of the input, where ballots are kept; else nil
}

// Later hears of the items, in the order of the input, that a service could not be asked about, before their results are
// given to a sink: they may be asked about again.
type Later func(line int)

// OnLater sets what hears of such items from now on; nil: nobody does.
func (r *Run) OnLater(l Later) { r.later = l }

// Open brings the pipeline's knowledge up to date and starts its stages.
func Open(ctx context.Context, p *pipeline.Pipeline, o Options) (*Run, error) {
	o.Fitting = o.Progress
	r := &Run{pipeline: p, observe: observe.Or(o.Observe), graph: stage.New(p, o.Options), fitted: o.Fitted, remote: o.Remote, spending: o.Spending}
	if o.Ballots {
		r.records = map[int]*stage.Record{}
	}
	r.measure()
	processes := make([]any, len(p.Stages))
	g, gctx := errgroup.WithContext(ctx)
	r.graph.Processes(func(i int, s *pipeline.Stage) {
		g.Go(func() (err error) {
			processes[i], err = o.Launch(gctx, launch.Request{Stage: s})
			return err
		})
	})
	g.Go(func() error { return r.openKnowledge(gctx, o) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return r, r.graph.Connect(ctx, processes, o.Launch)
}

// openKnowledge opens what the retrieve stages search, one after the other: building
// one knowledge takes the whole machine.
func (r *Run) openKnowledge(ctx context.Context, o Options) error {
	for _, block := range r.pipeline.Knowledge() {
		start := time.Now()
		k, err := knowledge.Open(ctx, block, launch.Knowledge(block, o.Launch), knowledge.Options{
			Stdin: o.Stdin, Vectors: o.Vectors, Waiting: o.Waiting, Pending: o.Pending, Waits: o.Waits, Progress: o.Progress,
			Edition: o.Edition, Samples: o.Samples, Stands: o.stands(block),
		})
		r.observe.Knowledge(block.Name, time.Since(start), err)
		if err != nil {
			return err
		}
		for _, g := range k.Report.Retired {
			if err := fitted.Remove(o.Fitted, g.Collection); err != nil {
				k.Report.Kept = append(k.Report.Kept, err)
			}
		}
		if err := r.graph.Know(block, k); err != nil {
			return err
		}
		if o.Knowledge != nil {
			o.Knowledge(k.Report)
		}
	}
	return nil
}

// stands is the generation of a block that another process has built; nil: none has.
func (o Options) stands(block *pipeline.Knowledge) *knowledge.Stand {
	g, ok := o.Stands[block.Name]
	if !ok || g.Attached {
		return nil
	}
	return &knowledge.Stand{Collection: g.Collection, Content: g.Content}
}

// Labels are those of the knowledge that the last retrieve stage searches.
func (r *Run) Labels() []string { return r.graph.Labels() }

// Found returns what the last retrieve or rerank stage leaves for an item, best first,
// with texts. No stage is called that this one does not need.
func (r *Run) Found(ctx context.Context, row source.Row) ([]sdk.Candidate, error) {
	found, errs := r.FoundAll(ctx, []source.Row{row})
	return found[0], errs[0]
}

// Around returns a candidate with the text of up to n chunks before and after it in its
// document.
func (r *Run) Around(ctx context.Context, c sdk.Candidate, n int) (sdk.Candidate, error) {
	return r.graph.Around(ctx, c, n)
}

// Graph is the stages of the run.
func (r *Run) Graph() *stage.Graph { return r.graph }

// Record is the item of a line of the input, as the run left it; nil where the run does
// not keep ballots.
func (r *Run) Record(line int) *stage.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[line]
}

// Take is Record for the last time: the run forgets the item, so that a long one need
// not hold all.
func (r *Run) Take(line int) *stage.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.records[line]
	delete(r.records, line)
	return rec
}

// Hold keeps others from removing the editions that the run searches, for some minutes (see
// generation.HoldEvery).
func (r *Run) Hold(ctx context.Context, holder string) error {
	for _, k := range r.graph.Knowledge() {
		if err := k.Hold(ctx, holder); err != nil {
			return err
		}
	}
	return nil
}

// Moved looks at the attached collections that the run searches, and reports whether one has to be opened
// anew (see knowledge.Moved).
func (r *Run) Moved(ctx context.Context) (moved bool, err error) {
	for _, k := range r.graph.Knowledge() {
		one, failed := k.Moved(ctx)
		moved, err = moved || one, errors.Join(err, failed)
	}
	return moved, err
}

// Leave ends what Hold began. With drop, what nobody else holds is removed.
func (r *Run) Leave(ctx context.Context, holder string, drop bool) error {
	var errs []error
	for _, k := range r.graph.Knowledge() {
		dropped, err := k.Leave(ctx, holder, drop)
		if dropped {
			collection, _ := k.Generation()
			err = errors.Join(err, fitted.Remove(r.fitted, collection))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Generation is the state of a knowledge that is searched.
type Generation struct {
	Name       string
	Collection string
	Content    string // hash of what its entries were made from
	Embedder   string // digest of the running embedder: with another one, searches would find other entries
	// Attached: somebody else makes it, so that one content may have other rows.
	Attached bool
}

// Generations returns those of all knowledge that is searched, in file order.
func (r *Run) Generations() []Generation {
	var all []Generation
	for i, k := range r.graph.Knowledge() {
		collection, content := k.Generation()
		all = append(all, Generation{r.pipeline.Knowledge()[i].Name, collection, content, k.Embedder(), k.Attached()})
	}
	return all
}
