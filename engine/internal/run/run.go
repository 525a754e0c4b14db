package run

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Run is a pipeline that is ready for items.
type Run struct {
	pipeline *pipeline.Pipeline
	observe  outcome.Observer
	graph    *stage.Graph
	batch    int  // items per batch
	window   int  // batches in work at a time
	gathers  bool // a batch waits until it is full or the input ends
	fitted   string

	mu      sync.Mutex
	later   Later                 // nil: no callback
	records map[int]*stage.Record // by line of the input; nil: ballots are not kept
}

// linger is how long a batch waits for more rows after the first. It is short, so that a slow input is
// answered soon.
const linger = 20 * time.Millisecond

// read sends all rows, and closes the channel.
func read(ctx context.Context, next func() (source.Row, error), rows chan<- source.Row) error {
	defer close(rows)
	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case rows <- row:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gather makes a batch of the rows that are available or come soon. At the end of the input it
// returns no records.
func (r *Run) gather(ctx context.Context, rows <-chan source.Row) []*stage.Record {
	var records []*stage.Record
	var late <-chan time.Time
	for len(records) < r.batch {
		select {
		case row, ok := <-rows:
			if !ok {
				return records
			}
			records = append(records, r.graph.NewRecord(row))
			if late == nil && !r.gathers {
				late = time.After(linger)
			}
		case <-late:
			return records
		case <-r.graph.Ended():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return records
}

// Items takes all rows that next returns (io.EOF ends them) through the pipeline. It passes the
// results to sink in the order of the input, a batch at a time, from one goroutine. It ends early
// when next or sink fails or ctx is done; all results passed to sink by then are complete.
//
// Items skips rows that the journal has answers to, and keeps the outcome of the other rows in the
// journal; nil: there is no journal.
//
// Items does not call a stopped stage again (sdk.CodeStopped). If a stage's service cannot be asked
// about one item now (sdk.CodeUnavailable), the stage is still asked about the next items. The
// other voters answer the affected items, and Result.Missing names the missing stages. An item
// without an acceptable answer from the other voters is left unanswered. If the election needs the
// stage, the run ends early: items that do not need the stage are still answered, and Items returns
// the stage's error.
func (r *Run) Items(ctx context.Context, next func() (source.Row, error), journal Journal, sink func([]outcome.Result) error) (outcome.Totals, error) {
	start := time.Now()
	totals := outcome.Totals{Callers: r.graph.Callers()}
	g, ctx := errgroup.WithContext(ctx)
	rows := make(chan source.Row)
	readErr := make(chan error, 1)
	var inputErr error // returned after all rows read before it are answered
	// Nothing waits for this goroutine, because it may hang in reading standard input when
	// everything else has ended.
	go func() { readErr <- read(ctx, next, rows) }()
	queue := make(chan chan answered, r.window)
	var under sync.WaitGroup
	defer under.Wait() // the journal is complete when Items returns
	g.Go(func() error {
		defer close(queue)
		if err := r.dispatch(ctx, rows, journal, queue, &under); err != nil {
			return err
		}
		if r.graph.Err() == nil { // otherwise the reader is still at work
			inputErr = <-readErr
		}
		return nil
	})
	g.Go(func() error { return r.deliver(ctx, queue, &totals, sink) })
	err := g.Wait()
	if err == nil {
		if err = r.graph.Err(); err == nil {
			err = inputErr
		}
	}
	r.sum(&totals, start)
	return totals, err
}

// dispatch starts work on batches of rows, and queues their results in the order of the input. The
// capacity of queue limits the batches in work. It returns when the rows or the graph end.
func (r *Run) dispatch(ctx context.Context, rows <-chan source.Row, journal Journal, queue chan<- chan answered, under *sync.WaitGroup) error {
	for {
		records := r.gather(ctx, rows)
		if len(records) == 0 || r.graph.Err() != nil {
			return ctx.Err()
		}
		done := make(chan answered, 1)
		select {
		case queue <- done:
		case <-ctx.Done():
			return ctx.Err()
		}
		under.Go(func() { done <- r.answer(ctx, records, journal) })
	}
}

// deliver counts the results of batches and passes them to sink.
func (r *Run) deliver(ctx context.Context, queue <-chan chan answered, totals *outcome.Totals, sink func([]outcome.Result) error) error {
	for done := range queue {
		batch := <-done
		if ctx.Err() != nil {
			return ctx.Err() // the batch was cut short: its failures are not due to its items
		}
		if batch.err != nil {
			return batch.err
		}
		for _, result := range batch.results {
			totals.Add(result)
		}
		totals.Earlier += batch.earlier
		for _, l := range batch.left {
			totals.AddLeft(l.why)
		}
		for _, line := range batch.later {
			if r.later != nil {
				r.later(line)
			}
		}
		if err := sink(batch.results); err != nil {
			return err
		}
	}
	return nil
}

// Options are the inputs of Open besides the pipeline.
type Options struct {
	stage.Options
	Launch    stage.Launch
	Stdin     io.Reader
	Vectors   cache.VectorOptions          // of passages, from earlier builds
	Knowledge func(knowledge.BuildReport)  // called when a knowledge is ready; may be nil
	Progress  progress.Func                // of building knowledge, and of stages that learn from it
	Waiting   func(name string, why error) // called while another process builds the knowledge; may be nil
	Samples   string                       // as knowledge.Options.Samples
	// MergeLabels is as in knowledge.Options.
	MergeLabels func(question string) bool
	// Edition makes the run search generations that never change (generation.Edition), for a run
	// that serves for a long time.
	Edition bool
}

// Later is called for each item that a service could not be asked about, in the order of the input
// and before the sink gets the item's result. A later pass may ask again.
type Later func(line int)

// OnLater sets the callback for such items; nil: none.
func (r *Run) OnLater(l Later) { r.later = l }

// Open brings the pipeline's knowledge up to date and starts its stages.
func Open(ctx context.Context, p *pipeline.Pipeline, o Options) (*Run, error) {
	o.Fitting = o.Progress
	r := &Run{pipeline: p, observe: outcome.ObserverOr(o.Observe), graph: stage.New(p, o.Options), fitted: o.Fitted}
	if o.Ballots {
		r.records = map[int]*stage.Record{}
	}
	r.measure()
	processes := make([]any, len(p.Stages))
	g, gctx := errgroup.WithContext(ctx)
	r.graph.Processes(func(i int, s *pipeline.Stage) {
		g.Go(func() (err error) {
			processes[i], err = o.Launch(gctx, stage.LaunchRequest{Stage: s})
			return err
		})
	})
	g.Go(func() error { return r.openKnowledge(gctx, o) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return r, r.graph.Connect(ctx, processes, o.Launch)
}

// openKnowledge opens the knowledge that the retrieve stages search, one after the other, because
// building a knowledge takes the whole machine.
func (r *Run) openKnowledge(ctx context.Context, o Options) error {
	for _, block := range r.pipeline.Knowledge() {
		start := time.Now()
		k, err := knowledge.Open(ctx, block, stage.LaunchKnowledge(block, o.Launch), knowledge.Options{
			Stdin: o.Stdin, Vectors: o.Vectors, Waiting: o.Waiting, MergeLabels: o.MergeLabels, Pending: o.Pending, Waits: o.Waits, Progress: o.Progress,
			Edition: o.Edition, Samples: o.Samples,
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

// Labels returns the labels of the knowledge that the last retrieve stage searches.
func (r *Run) Labels() []string { return r.graph.Labels() }

// Found returns the candidates that the last retrieve or rerank stage leaves for an item, best
// first, with texts. It calls only the stages that this stage needs.
func (r *Run) Found(ctx context.Context, row source.Row) ([]sdk.Candidate, error) {
	found, errs := r.FoundAll(ctx, []source.Row{row})
	return found[0], errs[0]
}

// Graph returns the stages of the run.
func (r *Run) Graph() *stage.Graph { return r.graph }

// Record returns the record of the item on a line of the input; nil if the run keeps no ballots.
func (r *Run) Record(line int) *stage.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[line]
}

// Forget drops the record of a line, so that a long run need not hold all items.
func (r *Run) Forget(line int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, line)
}

// Hold prevents other processes from removing the editions that the run searches, for some minutes
// (see generation.HoldEvery).
func (r *Run) Hold(ctx context.Context, holder string) error {
	for _, k := range r.graph.Knowledge() {
		if err := k.Hold(ctx, holder); err != nil {
			return err
		}
	}
	return nil
}

// Moved checks the attached collections that the run searches, and reports whether one must be
// reopened (see knowledge.Moved).
func (r *Run) Moved(ctx context.Context) (moved bool, err error) {
	for _, k := range r.graph.Knowledge() {
		one, failed := k.Moved(ctx)
		moved, err = moved || one, errors.Join(err, failed)
	}
	return moved, err
}

// Leave ends Hold. With drop, it removes editions without another holder.
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

// Generation identifies the state of a knowledge that the run searches.
type Generation struct {
	Name       string
	Collection string
	Content    string // hash of its sources
	Embedder   string // digest of the running embedder: with another embedder, searches find other entries
	// Attached means that another program makes the generation, so that the same Content may have
	// other rows.
	Attached bool
}

// Generations returns the Generation of every knowledge searched, in file order.
func (r *Run) Generations() []Generation {
	var all []Generation
	for i, k := range r.graph.Knowledge() {
		collection, content := k.Generation()
		all = append(all, Generation{r.pipeline.Knowledge()[i].Name, collection, content, k.Embedder(), k.Attached()})
	}
	return all
}
