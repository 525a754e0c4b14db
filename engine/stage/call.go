package stage

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// call does the stage's work in batches of its size, a few at a time. It returns an
// error or nil for each record.
func (s *stage) call(ctx context.Context, records []*Record) []error {
	errs := make([]error, len(records))
	var g errgroup.Group
	switch {
	case s.Gathers():
	case s.graph.gathers && s.Info.Network:
		g.SetLimit(most) // its slots let few of them through
	case s.graph.gathers:
		g.SetLimit(Window * max(s.Workers, 1)) // for there are no batches side by side
	case !s.Info.Network && !s.Info.Pends: // there its slots are the limit
		g.SetLimit(max(s.Workers, 1))
	}
	for rest, failed := records, errs; len(rest) > 0; {
		n := s.size(rest)
		part, its := rest[:n], failed[:n]
		rest, failed = rest[n:], failed[n:]
		g.Go(func() error {
			s.callWithRetries(ctx, part, its)
			return nil
		})
	}
	_ = g.Wait() // its functions return nil: every error is a record's
	return errs
}

const (
	// together is how many items a stage without an opinion gets at a time where all
	// items of the input travel together.
	together = 64
	// most is how many calls of a stage wait for its slots at a time there.
	most = 4096
	// gathered is how many bytes of items a stage gets at a time that asks in batches: less
	// than a message holds.
	gathered = wire.MaxMessage / 2
)

// size is how many of the first records the stage's next call has.
func (s *stage) size(records []*Record) int {
	size := s.Batch
	switch {
	case s.Gathers():
		return s.heavy(records, min(cmp.Or(size, Gathered), len(records)))
	case size == 0 && s.whole != nil:
		size = 1 // each record may bring all of the knowledge
	case size == 0:
		size = s.Info.Batch
	}
	if size == 0 && s.graph.gathers {
		size = together
	}
	return min(cmp.Or(size, len(records)), len(records))
}

// heavy is how many of the first n records are gathered bytes together, but at least one.
func (s *stage) heavy(records []*Record, n int) int {
	bytes := 0
	for i, rec := range records[:n] {
		row, err := wire.EncodeBatch(sdk.Batch{Items: []sdk.Item{s.item(rec)}}, s.Info.Reads)
		if err != nil {
			continue // it fails alone
		}
		if bytes += proto.Size(row); bytes > gathered && i > 0 {
			return i
		}
	}
	return n
}

// callWithRetries invokes the stage, and again with the records that failed in a way
// that may pass.
func (s *stage) callWithRetries(ctx context.Context, records []*Record, errs []error) {
	call := func(ctx context.Context, at []int) error {
		some := make([]*Record, len(at))
		for i, n := range at {
			some[i] = records[n]
		}
		return s.invoke(ctx, some)
	}
	if s.Info.Pends {
		call = pending.Work{
			Book: s.graph.options.Pending, Stage: s.String(), Call: call, Ended: s.ending.begun, Cause: s.ending.err,
			Key: func(i int) string { return s.key(records[i]) },
			Collected: func(i int, key string) {
				out := &records[i].outputs[s.index]
				out.collected = append(out.collected, key)
			},
		}.Do
	}
	w := retry.Work{
		Retries: s.Retries, Stage: s.String(), Waits: s.graph.options.Waits, Ended: s.ending.begun, Cause: s.ending.err, Call: s.noting(records, call),
		Again: func() { s.graph.options.Observe.Retried(s.graph.pipeline.Name, s.String()) },
	}
	copy(errs, w.Do(ctx, len(records)))
}

// key identifies an item for results that come later: by all that the stage sees of it.
func (s *stage) key(rec *Record) string {
	item := s.item(rec)
	row, err := wire.EncodeBatch(sdk.Batch{Items: []sdk.Item{item}}, s.Info.Reads)
	var raw []byte
	if err == nil {
		raw, err = proto.MarshalOptions{Deterministic: true}.Marshal(row)
	}
	if err != nil {
		return pending.Key(s.identity, item.ID, err.Error()) // it cannot be sent, either
	}
	return pending.Key(s.identity, string(raw), strconv.Itoa(item.Drawn))
}

// Settle forgets the handles of items whose results are stored.
func (g *Graph) Settle(records []*Record) error {
	if g.options.Pending == nil {
		return nil
	}
	var keys []string
	for _, rec := range records {
		for _, out := range rec.outputs {
			keys = append(keys, out.collected...)
		}
	}
	return g.options.Pending.Settle(keys)
}

// invoke makes one call.
func (s *stage) invoke(ctx context.Context, records []*Record) error {
	if s.slots != nil { // before the time of the call begins
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuses := s.graph.options.Refuses; s.stopped.Load() && (refuses == nil || !refuses(s.Stage)) {
		return s.ending.err()
	}
	start := time.Now()
	ctx, done := s.graph.options.Observe.Call(ctx, observe.Call{
		Pipeline: s.graph.pipeline.Name, Stage: s.String(), Use: s.Use, Model: s.Config.Model(), Kind: s.Kind, Rows: len(records),
	})
	err := retry.Bounded(ctx, s.Stage, func(ctx context.Context) error { return s.method(ctx, records) })
	done(observe.Ended(err))
	if cause := stopOf(err); cause != nil {
		s.graph.stop(s, cause)
	}
	s.busy.Add(int64(time.Since(start)))
	s.rows.Add(int64(len(records)))
	return err
}

// Gathered is how many items travel together where a stage asks a service in batches: as
// many as such a batch takes.
const Gathered = 50_000

// Gathers reports whether a stage asks a service in batches: then all items of the input
// travel together, up to Gathered.
func Gathers(p *pipeline.Pipeline) bool {
	for i, s := range p.Stages {
		if s.Enabled && p.Used(i) && (s.Gathers() || slices.ContainsFunc(s.Fallbacks, func(f pipeline.Fallback) bool { return f.Stage.Gathers() })) {
			return true
		}
	}
	return false
}

// Window is how many batches are under way at a time where all stages work on this
// machine: enough to keep every stage busy while the slowest one works on another
// batch.
const Window = 4

// Calls is how many calls the stage that makes the most of its service may have under
// way at a time; 0: no stage asks a service.
func Calls(p *pipeline.Pipeline) int {
	most := 0
	for i, s := range p.Stages {
		if !s.Enabled || !p.Used(i) {
			continue
		}
		most = max(most, callsOf(s))
		for _, f := range s.Fallbacks {
			most = max(most, callsOf(f.Stage))
		}
	}
	return most
}

func callsOf(s *pipeline.Stage) int {
	switch {
	case !s.Info.Network:
		return 0
	case s.Workers > 0:
		return s.Workers
	}
	return s.Concurrency()
}

// slotsOf bounds the calls of a stage that are under way. A network stage has more
// than its service takes, so that the next one is ready when a call ends, yet not so
// many that they spend their time waiting. A local stage beside it would otherwise be
// called by every batch at once.
func (g *Graph) slotsOf(s *pipeline.Stage) chan struct{} {
	switch {
	case !g.network:
		return nil
	case !s.Info.Network:
		return make(chan struct{}, Window*max(s.Workers, 1))
	case s.Workers > 0:
		return make(chan struct{}, s.Workers)
	}
	return make(chan struct{}, min(2*s.Concurrency(), wire.Window))
}
