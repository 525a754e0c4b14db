package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// Run is an open run. Several goroutines may call its methods at once.
type Run struct {
	ctx     context.Context
	journal *journal.Journal
	totals  *journal.Totals
	gone    []string

	pipeline *workspace.Pipeline // nil: the file is gone
	replies  *cache.Cache        // nil: no reply is kept

	mu        sync.Mutex
	opened    map[string]*opened // by knowledge
	processes map[string]*process
	labels    []string
}

// Briefs yields every item of the run in input order, including items that were not reached. If the
// input is missing, it yields the items in the journal. An error comes last, with a nil Brief.
func (r *Run) Briefs(ctx context.Context) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for item, err := range r.items(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(briefOf(&item), nil) {
				return
			}
		}
	}
}

// Item returns all details of an item, by its ID or, failing that, by its line in the input. If
// several items have the ID, it returns the first.
func (r *Run) Item(ctx context.Context, id string) (*Item, error) {
	whole, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return &whole.Item, r.complete(ctx, []*kept{whole})
}

// find returns an item from the journal, without its details.
func (r *Run) find(ctx context.Context, id string) (*kept, error) {
	number, _ := strconv.Atoi(id)
	var found *journal.Item
	for item, err := range r.items(ctx) {
		if err != nil {
			return nil, err
		}
		if item.Row.ID == id {
			found = &item
			break
		}
		if item.Row.Line == number {
			found = &item
		}
	}
	if found == nil {
		return nil, fmt.Errorf("run %s has no item %q: it was not reached, or is called in another way", r.ID(), id)
	}
	return keptOf(found, briefOf(found)), nil
}

// items yields the items of the input with their results in the journal. If the input is missing,
// it yields the items in the journal.
func (r *Run) items(ctx context.Context) iter.Seq2[journal.Item, error] {
	return func(yield func(journal.Item, error) bool) {
		rows, err := r.rows()
		if err != nil {
			for item := range r.journal.Kept() {
				if err := ctx.Err(); err != nil {
					yield(journal.Item{}, err)
					return
				}
				if !yield(item, nil) {
					return
				}
			}
			return
		}
		defer rows.Close() //nolint:errcheck // it was only read
		next := func() (source.Row, error) {
			if err := ctx.Err(); err != nil {
				return source.Row{}, err
			}
			return rows.Next()
		}
		for item, err := range r.journal.Results(next) {
			if !yield(item, err) {
				return
			}
		}
	}
}

// reader reads rows of an input.
type reader interface {
	Next() (source.Row, error)
	io.Closer
}

var errNoInput = errors.New("the input is not there any more")

// rows opens the input. It reads the columns of the file, with metadata for prompts. If the file
// now names other columns than the run read, it reads the columns of the manifest.
func (r *Run) rows() (reader, error) {
	rows, err := r.journal.Manifest.Rows()
	if err != nil {
		return nil, errNoInput
	}
	if r.pipeline != nil && reflect.DeepEqual(r.pipeline.InputColumns(), r.journal.Manifest.Columns) {
		if as, err := r.pipeline.Rows(); err == nil {
			_ = rows.Close() // nothing was read
			return as, nil
		}
	}
	return rows, nil
}

func briefOf(item *journal.Item) *Brief {
	b := &Brief{Result: output.Of(item.Result), Line: item.Row.Line, Status: item.Status, Cost: item.Result.Costs, Seen: item.Seen != nil}
	for voter, u := range item.Result.Usages {
		if b.Usages == nil {
			b.Usages = map[string]Usage{}
		}
		b.Usages[voter] = Usage{Input: u.InputTokens, Cached: u.CachedTokens, Output: u.OutputTokens}
	}
	return b
}

// together is how many items are completed in one batch.
const together = 128

// Items yields the wanted items of the run in input order, with all details. An error comes last,
// with a nil Item.
func (r *Run) Items(ctx context.Context, want func(*Brief) bool) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		var batch []*kept
		give := func() bool {
			if err := r.complete(ctx, batch); err != nil {
				yield(nil, err)
				return false
			}
			for _, k := range batch {
				if !yield(&k.Item, nil) {
					return false
				}
			}
			batch = slices.Delete(batch, 0, len(batch))
			return true
		}
		for item, err := range r.items(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			brief := briefOf(&item)
			if !want(brief) {
				continue
			}
			if batch = append(batch, keptOf(&item, brief)); len(batch) == together && !give() {
				return
			}
		}
		give()
	}
}

// asBefore returns options that load a file as a run loaded it, only for inspection: no service is
// called.
func asBefore(o workspace.Options, m journal.Manifest) workspace.Options {
	o.Vars, o.Columns, o.KnowledgeColumns = maps.Clone(o.Vars), maps.Clone(o.Columns), maps.Clone(o.KnowledgeColumns)
	if o.Vars == nil {
		o.Vars = map[string]string{}
	}
	if o.Columns == nil {
		o.Columns = map[string]string{}
	}
	if o.KnowledgeColumns == nil {
		o.KnowledgeColumns = map[string]string{}
	}
	o.Pipeline, o.Input, o.Limit = m.Pipeline, m.Input.Path, m.Limit
	o.Journal, o.Resume, o.Services = false, "", &workspace.Services{Mode: governor.Offline}
	if ask := o.Trust; ask != nil && !m.Mine { // another user may have chosen the run's arguments
		o.Trust = func(r workspace.TrustRequest) error {
			for i := range r.Wants {
				r.Wants[i].Free = false
			}
			return ask(r)
		}
	}
	files := map[string]bool{}
	if m.Command != nil {
		o.Dir = m.Command.Dir
		for _, f := range m.Command.Flags {
			name, value, _ := strings.Cut(f.Value, "=")
			switch f.Name {
			case "column":
				o.Columns[name] = value
			case "knowledge-column":
				o.KnowledgeColumns[name] = value
			case "var-file":
				path := within(o.Dir, f.Value)
				if _, err := os.Stat(path); err == nil {
					files[f.Value] = true
					o.VarFiles = append(o.VarFiles, path)
				}
			case "set":
				o.Set = append(o.Set, pipeline.Override{Target: name, Value: value})
			}
		}
	}
	for _, v := range m.Variables {
		_, given := o.Vars[v.Name]
		if _, here := os.LookupEnv("RACFLOW_VAR_" + v.Name); given || v.From == "default" || files[v.From] || here && v.Value == redact.Placeholder {
			continue
		}
		o.Vars[v.Name] = v.Value
	}
	if m.Command != nil { // the flags have the exact texts, which maps and lists need
		for _, f := range m.Command.Flags {
			if name, value, ok := strings.Cut(f.Value, "="); f.Name == "var" && ok {
				o.Vars[name] = value
			}
		}
	}
	return o
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Open opens a run in a state folder (Options.State), by its ID or as workspace.Newest. It loads the file as
// the run did, with the run's variables and columns; for everything else, the options o apply. The run stays
// open until ctx ends, or until Close.
func Open(ctx context.Context, o workspace.Options, run string) (*Run, error) {
	if o.State == "" {
		o.State = workspace.DefaultState
	}
	kept := journal.RunsOf(o.State)
	if run == workspace.Newest {
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
		_ = rows.Close() // the rows are opened again for reading
	}
	if r.pipeline, err = workspace.Open(ctx, j.Manifest.File, asBefore(o, j.Manifest)); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), j.Close(nil))
		}
		r.pipeline = nil
		r.lose("texts of candidates and prompts: the file cannot be loaded as the run did: %v", err)
	}
	if r.replies, err = cache.Open(filepath.Join(o.State, workspace.CacheFolder), slog.New(slog.DiscardHandler)); err != nil {
		r.replies = nil
		r.lose("replies of services: %v", err)
	}
	return r, nil
}

func (r *Run) lose(format string, args ...any) {
	r.gone = append(r.gone, fmt.Sprintf(format, args...))
}

// Close ends the processes that the run has started.
func (r *Run) Close() {
	if r.pipeline != nil {
		r.pipeline.Close()
	}
	if r.replies != nil {
		_ = r.replies.Close() // it was only read
	}
	_ = r.journal.Close(nil) // unchanged
}

// ID returns the run's ID.
func (r *Run) ID() string { return r.journal.ID() }

// Manifest returns the manifest of the run.
func (r *Run) Manifest() journal.Manifest { return r.journal.Manifest }

// Definition returns the pipeline as it is in the file now; nil: the file is gone, and Gone says why.
func (r *Run) Definition() *pipeline.Pipeline {
	if r.pipeline == nil {
		return nil
	}
	return r.pipeline.Definition()
}

// Weights returns the voters' weights in the run's election.
func (r *Run) Weights() pipeline.Weights {
	var resolved map[string]any
	for _, s := range r.journal.Manifest.Stages {
		if strings.HasPrefix(s.Stage, "elect.") {
			resolved = s.Resolved
		}
	}
	return r.Definition().WeightsOf(resolved)
}

// Totals returns how the run ended; nil: it was cut off.
func (r *Run) Totals() *journal.Totals { return r.totals }

// Gone returns sentences that say which parts of the run as a whole are missing, and why.
func (r *Run) Gone() []string { return slices.Clone(r.gone) }

// Labels returns the labels of the searched knowledge, sorted. If the knowledge is missing, it
// returns the answered and expected labels in the journal.
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
	if r.journal.Manifest.Answers == journal.LabelAnswers {
		for item := range r.journal.Kept() {
			for _, set := range []string{item.Result.Answer, item.Row.Label} {
				for _, label := range r.journal.Manifest.LabelForm.Split(set) {
					known[label] = true
				}
			}
		}
	}
	r.labels = []string{}
	for label := range known {
		r.labels = append(r.labels, label)
	}
	slices.SortFunc(r.labels, cmp.Compare[string])
	return slices.Clone(r.labels)
}
