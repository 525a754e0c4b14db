package generation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
)

// This file defines the running stages of a knowledge, starts them, and calls them with batches of
// rows. Calls stay within a stage's timeout, and are retried where that may help. A row that spoils a
// batch fails without affecting the others.
//
// It does not depend on the meaning of rows, and starts no process itself: an implementation of
// Starter does.

// Stages holds the running stages that make the entries of a block.
type Stages struct {
	Chunker   Chunker         // nil: a row or document is one entry
	Enrichers []Enricher      // one for each of Block.Enrichers(); nil: not running
	Embedder  Embedder        // nil: not running
	Resolved  json.RawMessage // of the embedder: see ResolvedConfig
}

// BatchBytes is roughly the most bytes of text in a call, which must fit in a message.
const BatchBytes = 8 << 20

// Caller calls a stage of a build with batches.
type Caller struct {
	Stage *pipeline.Stage
	Name  string                 // of the stage, as "embed.k"
	Waits *progress.WaitReporter // receives waits; may be nil
	Later retry.PendingWork      // of a stage that Pends, for the next batch; without Call
	// Probe asks a question that any stage of its kind can answer. Call uses Probe if the stage has
	// answered nothing. If Probe fails, too, the stage is the cause; otherwise the rows are.
	Probe    func(context.Context) error
	answered bool // the stage has answered a call
}

// Call calls the stage with the n rows of a batch, within its timeout. It retries where that may
// help, and divides a batch that a row spoils. It returns an error or nil for each row.
//
// If the stage is the cause, Call returns one error that ends the build. That is so if the stage
// answers nothing in this batch, and does not answer Probe. For a single row, it must also have
// answered nothing before. Without Probe, the stage would be blamed for a build of only invalid rows
// that earlier builds skipped.
func (c *Caller) Call(ctx context.Context, n int, call func(ctx context.Context, handle string, at []int) error) ([]error, error) {
	before, now := c.answered, false
	bounded := func(ctx context.Context, handle string, at []int) error {
		err := c.Stage.Patience().Bounded(ctx, len(at), func(ctx context.Context) error { return call(ctx, handle, at) })
		now = now || err == nil || errors.As(err, new(sdk.RowErrors))
		return err
	}
	do := func(ctx context.Context, at []int) error { return bounded(ctx, "", at) }
	if c.Stage.Info.Pends {
		c.Later.Call = bounded
		do = c.Later.Do
	}
	errs := retry.Work{Retries: c.Stage.Retries, Stage: c.Name, Waits: c.Waits, Call: do}.Do(ctx, n)
	c.answered = before || now
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, err := range errs {
		if err != nil && Passes(err) {
			return nil, err
		}
	}
	for _, err := range errs {
		if err != nil && !now && (n > 1 || !before) && !c.works(ctx) {
			return nil, cmp.Or(ctx.Err(), err)
		}
		now = true
	}
	return errs, nil
}

// works reports whether the stage answers Probe.
func (c *Caller) works(ctx context.Context) bool {
	if c.Stage.Info.Pends {
		return false // nobody would wait for the answer
	}
	err := retry.Work{Retries: c.Stage.Retries, Stage: c.Name, Waits: c.Waits, Call: func(ctx context.Context, _ []int) error {
		return c.Stage.Patience().Bounded(ctx, 1, c.Probe)
	}}.Do(ctx, 1)[0]
	return err == nil || errors.As(err, new(sdk.RowErrors))
}

// Passes reports whether an error is independent of the row, so that a later build may succeed.
func Passes(err error) bool {
	switch sdk.CodeOf(err) {
	case sdk.CodeTransient, sdk.CodeCancelled, sdk.CodeUnavailable, sdk.CodeStopped:
		return true
	case sdk.CodeDeadline:
		return !retry.TimedOut(err)
	}
	return false
}

// Spread puts the results for some rows of a batch in their places, and returns err. With an err
// other than sdk.RowErrors there are no results.
func Spread[T any](to []T, at []int, found []T, err error) error {
	if err != nil && !errors.As(err, new(sdk.RowErrors)) {
		return err
	}
	if len(found) != len(at) {
		return fmt.Errorf("it returned %d results for %d rows", len(found), len(at))
	}
	for i, n := range at {
		to[n] = found[i]
	}
	return err
}

// Pick returns the rows of a batch at the indexes at.
func Pick[T any](all []T, at []int) []T {
	some := make([]T, len(at))
	for i, n := range at {
		some[i] = all[n]
	}
	return some
}

// LaterResults tracks results of a build that come later.
type LaterResults struct {
	Handles *retry.Handles         // nil: such a result is an error
	Waits   *progress.WaitReporter // receives waits; may be nil

	mu        sync.Mutex
	collected []string // see retry.PendingWork
}

// Work describes the work of a stage on a batch, without its Call. name is the stage's name, such as
// "embed.k". row returns the texts of a row that the stage sees.
func (l *LaterResults) Work(name string, s *pipeline.Stage, process pipeline.RunningStage, row func(int) []string) retry.PendingWork {
	stage := pipeline.StageDigest(s, process)
	return retry.PendingWork{
		Handles: l.Handles, Stage: name,
		Key: func(i int) string { return retry.HandleKey(append([]string{stage}, row(i)...)...) },
		Collected: func(_ int, what string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.collected = append(l.collected, what)
		},
	}
}

// Settle forgets the handles of results that have come, once the build has committed them.
func (l *LaterResults) Settle() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	collected := l.collected
	if l.collected = nil; len(collected) == 0 { // perhaps there are no Handles
		return nil
	}
	return l.Handles.Settle(collected)
}

// Starter starts the stages of a knowledge block.
type Starter interface {
	// Chunker starts the chunker of a block that has one.
	Chunker(ctx context.Context) (Chunker, error)
	// Enricher starts one of the enrich stages of a block.
	Enricher(ctx context.Context, s *pipeline.Stage) (Enricher, error)
	// Embedder starts the embedder with its fitted state, or nil, and with the values that an earlier
	// embedder has resolved (see Resolved), as if the file gave them. It ends an embedder that the
	// same Starter started before.
	Embedder(ctx context.Context, state []byte, resolved json.RawMessage) (Embedder, error)
	Store(ctx context.Context) (Store, error)
}

// Chunker is a running chunk stage.
type Chunker interface {
	sdk.Chunker
	Fingerprint() string
}

// Enricher is a running enrich stage.
type Enricher interface {
	sdk.Enricher
	Fingerprint() string
}

// Embedder is a running embed stage.
type Embedder interface {
	sdk.Embedder
	sdk.Fitter
	Fits() bool // reports whether Fit must come before Embed
	// State is the fitted state, at most 64 KiB: each commit stores it with the vectors.
	State() ([]byte, error)
	Fingerprint() string
}

// Store is a running store stage.
type Store interface {
	Open(ctx context.Context, collection string, schema sdk.Schema) (sdk.Collection, error)
	Put(ctx context.Context, collection string, entries []sdk.Entry) error
	Delete(ctx context.Context, collection string, ids []string) error
	Commit(ctx context.Context, collection string, note []byte) error
	Get(ctx context.Context, collection string, ids []string) ([]sdk.Entry, error)
	Scan(ctx context.Context, collection string, s sdk.Scan) (sdk.Page, error)
	List(ctx context.Context) ([]sdk.Collection, error)
	Drop(ctx context.Context, collection string) error
	// Attach works like sdk.Attacher. It fails for a stage without sdk.Attaches.
	Attach(ctx context.Context) (sdk.Attached, error)
	sdk.Retriever
}

// ResolvedConfig returns the values that a stage has chosen for arguments left to it, by the
// processor, say. The result is a JSON object with sorted keys; nil: the stage chose none.
func ResolvedConfig(stage any) (json.RawMessage, error) {
	r, ok := stage.(sdk.Resolver)
	if !ok || len(r.Resolved()) == 0 {
		return nil, nil
	}
	return json.Marshal(r.Resolved())
}

// Start starts all stages that make entries.
func Start(ctx context.Context, block *pipeline.Knowledge, starter Starter) (s Stages, err error) {
	if s.Embedder, err = starter.Embedder(ctx, nil, nil); err == nil {
		s.Resolved, err = ResolvedConfig(s.Embedder)
	}
	if err == nil {
		err = s.start(ctx, block, starter, true)
	}
	return s, err
}

// StartLocal starts the stages that make texts without a service: the chunker, and the enrichers that
// call no service.
func StartLocal(ctx context.Context, block *pipeline.Knowledge, starter Starter) (s Stages, err error) {
	err = s.start(ctx, block, starter, false)
	return s, err
}

func (s *Stages) start(ctx context.Context, block *pipeline.Knowledge, starter Starter, network bool) (err error) {
	if block.Chunk != nil {
		if s.Chunker, err = starter.Chunker(ctx); err != nil {
			return err
		}
	}
	for _, e := range block.Enrichers() {
		var process Enricher
		if network || !e.Info.Network {
			if process, err = starter.Enricher(ctx, e); err != nil {
				return err
			}
		}
		s.Enrichers = append(s.Enrichers, process)
	}
	return nil
}

// ScanPage is the most entries of a page of a scan.
const ScanPage = 4096

// Scan calls f with every entry of a collection that s selects.
func Scan(ctx context.Context, store Store, collection string, s sdk.Scan, f func(sdk.Entry)) error {
	for page, err := range ScanPages(ctx, store, collection, s) {
		if err != nil {
			return err
		}
		for _, e := range page {
			f(e)
		}
	}
	return nil
}

// ScanPages yields the entries of a collection that s selects, in pages that fit in a message. It
// ends after an error.
func ScanPages(ctx context.Context, store Store, collection string, s sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) {
		for s := s; ; {
			s.Limit = ScanPage
			page, err := store.Scan(ctx, collection, s)
			if err != nil {
				yield(nil, fmt.Errorf("scan: %w", err))
				return
			}
			if !yield(page.Entries, nil) || page.Next == "" {
				return
			}
			s.After = page.Next
		}
	}
}
