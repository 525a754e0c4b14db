package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/pipeline"
)

// Run is a run that is open. Its methods may be called by several goroutines at once.
type Run struct {
	ctx     context.Context
	journal *journal.Journal
	totals  *journal.Totals
	gone    []string

	pipeline *engine.Pipeline // nil: the file is gone
	replies  *cache.Cache     // nil: no reply is kept

	mu        sync.Mutex
	opened    map[string]*opened // by knowledge
	processes map[string]*process
	labels    []string
}

// Open opens a run of a state folder (Options.State), by its ID or as engine.Newest, the
// newest of all. The file is loaded as the run loaded it, with its variables and columns; of the options,
// those that the run does not say are used. The run is open until ctx ends, or Close.
func Open(ctx context.Context, o engine.Options, run string) (*Run, error) {
	if o.State == "" {
		o.State = engine.DefaultState
	}
	kept := runs.Of(o.State)
	if run == engine.Newest {
		var any bool
		if run, any = kept.Last(); !any {
			return nil, fmt.Errorf("no run is kept in %s", o.State)
		}
	}
	j, err := kept.Open(run)
	if err != nil {
		return nil, err
	}
	r := &Run{ctx: ctx, journal: j, totals: kept.End(run), opened: map[string]*opened{}, processes: map[string]*process{}}
	if j.Changed > 0 {
		r.lose("%d lines of the journal were changed after they were written: their items count as not reached", j.Changed)
	}
	if rows, err := j.Manifest.Rows(); err != nil {
		r.lose("the texts of the items: %v", err)
	} else {
		_ = rows.Close() // it is opened again when it is read
	}
	if r.pipeline, err = engine.Open(ctx, j.Manifest.File, asBefore(o, j.Manifest)); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), j.Close(nil))
		}
		r.pipeline = nil
		r.lose("texts of candidates and prompts: the file cannot be loaded as the run did: %v", err)
	}
	if r.replies, err = cache.Open(filepath.Join(o.State, engine.CacheFolder), slog.New(slog.DiscardHandler)); err != nil {
		r.replies = nil
		r.lose("replies of services: %v", err)
	}
	return r, nil
}

func (r *Run) lose(format string, args ...any) {
	r.gone = append(r.gone, fmt.Sprintf(format, args...))
}

// Close ends what the run has started.
func (r *Run) Close() {
	if r.pipeline != nil {
		r.pipeline.Close()
	}
	if r.replies != nil {
		_ = r.replies.Close() // it was only read
	}
	_ = r.journal.Close(nil) // as it was
}

// ID names the run.
func (r *Run) ID() string { return r.journal.ID() }

// Manifest is what was run.
func (r *Run) Manifest() manifest.Manifest { return r.journal.Manifest }

// Definition is the pipeline as the file says it now; nil: the file is gone, as Gone says.
func (r *Run) Definition() *pipeline.Pipeline {
	if r.pipeline == nil {
		return nil
	}
	return r.pipeline.Definition()
}

// Weights are those of the voters in the run's election.
func (r *Run) Weights() pipeline.Weights {
	var resolved map[string]any
	for _, s := range r.journal.Manifest.Stages {
		if strings.HasPrefix(s.Stage, "elect.") {
			resolved = s.Resolved
		}
	}
	return r.Definition().WeightsOf(resolved)
}

// Totals are how the run ended; nil: it was cut off.
func (r *Run) Totals() *journal.Totals { return r.totals }

// Gone says what of the run as a whole is not there any more, and why: sentences.
func (r *Run) Gone() []string { return slices.Clone(r.gone) }

// Labels are those of the knowledge that was searched, sorted. Where that is gone, they
// are those that the journal has as answers or as expected.
func (r *Run) Labels() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.labels != nil {
		return slices.Clone(r.labels)
	}
	known := map[string]bool{}
	for _, of := range slices.Backward(r.journal.Manifest.Knowledge) {
		k, err := r.knowledge(of)
		if err != nil {
			continue
		}
		if labels, err := k.labels(r.ctx); err == nil && len(labels) > 0 {
			r.labels = labels
			return slices.Clone(labels)
		}
	}
	if r.journal.Manifest.Answers == manifest.Labels {
		for item := range r.journal.Kept() {
			known[item.Result.Answer], known[item.Row.Label] = true, true
		}
	}
	r.labels = []string{}
	for label := range known {
		if label != "" {
			r.labels = append(r.labels, label)
		}
	}
	slices.SortFunc(r.labels, cmp.Compare[string])
	return slices.Clone(r.labels)
}
