package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// method does a stage's work on records and writes their outputs or, with a handle, collects results that
// came later. It returns sdk.RowErrors if single rows failed.
type method func(ctx context.Context, handle string, records []*Record) error

// call calls the stage in batches of its size, a few at a time. It returns an error or nil for each
// record.
func (s *stage) call(ctx context.Context, records []*Record) []error {
	errs := make([]error, len(records))
	var g errgroup.Group
	switch {
	case s.Gathers():
	case s.graph.gathers && s.Info.Network:
		g.SetLimit(most) // the slots are the real limit
	case s.graph.gathers:
		g.SetLimit(Window * max(s.Workers, 1)) // the batches of the input do not run side by side
	case !s.Info.Network && !s.Info.Pends: // otherwise the slots are the limit
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
	_ = g.Wait() // the functions return nil: every error belongs to a record
	return errs
}

const (
	// together is the default batch size of a stage if all items of the input travel together.
	together = 64
	// most limits the concurrent calls of a stage in the same case; its slots limit them further.
	most = 4096
	// gathered limits the bytes of items in one call of a stage that asks in batches. It is less
	// than a message can hold.
	gathered = wire.MaxMessage / 2
)

// size returns how many of the records go into the stage's next call.
func (s *stage) size(records []*Record) int {
	size := s.Batch
	switch {
	case s.Gathers():
		return s.heavy(records, min(cmp.Or(size, Gathered), len(records)))
	case size == 0 && s.whole != nil:
		size = 1 // each record may hold the whole knowledge
	case size == 0:
		size = s.Info.Batch
	}
	if size == 0 && s.graph.gathers {
		size = together
	}
	return min(cmp.Or(size, len(records)), len(records))
}

// heavy returns how many of the first n records fit into gathered bytes, at least 1.
func (s *stage) heavy(records []*Record, n int) int {
	bytes := 0
	for i, rec := range records[:n] {
		row, err := wire.EncodeBatch(sdk.Batch{Items: []sdk.Item{s.item(rec)}}, s.Info.Reads)
		if err != nil {
			continue // the record fails alone
		}
		if bytes += proto.Size(row); bytes > gathered && i > 0 {
			return i
		}
	}
	return n
}

// callWithRetries calls the stage, and repeats the call for records with temporary failures.
func (s *stage) callWithRetries(ctx context.Context, records []*Record, errs []error) {
	ask := func(ctx context.Context, handle string, at []int) error {
		some := make([]*Record, len(at))
		for i, n := range at {
			some[i] = records[n]
		}
		return s.invoke(ctx, handle, some)
	}
	call := func(ctx context.Context, at []int) error { return ask(ctx, "", at) }
	if s.Info.Pends {
		call = retry.PendingWork{
			Handles: s.graph.options.Pending, Stage: s.String(), Call: ask, Ended: s.ending.begun, Cause: s.ending.err,
			Key: func(i int) string { return s.key(records[i]) },
			Collected: func(i int, what string) {
				out := &records[i].outputs[s.index]
				out.collected = append(out.collected, what)
			},
		}.Do
	}
	w := retry.Work{
		Retries: s.Retries, Stage: s.String(), Waits: s.graph.options.Waits, Ended: s.ending.begun, Cause: s.ending.err, Call: s.noting(records, call),
		Again: func() { s.graph.options.Observe.Retried(s.graph.pipeline.Name, s.String()) },
	}
	copy(errs, w.Do(ctx, len(records)))
}

// key identifies an item for results that come later. It depends on everything that the stage sees
// of the item.
func (s *stage) key(rec *Record) string {
	item := s.item(rec)
	row, err := wire.EncodeBatch(sdk.Batch{Items: []sdk.Item{item}}, s.Info.Reads)
	var raw []byte
	if err == nil {
		raw, err = proto.MarshalOptions{Deterministic: true}.Marshal(row)
	}
	if err != nil {
		return retry.HandleKey(s.identity, item.ID, err.Error()) // such an item cannot be sent, either
	}
	return retry.HandleKey(s.identity, string(raw), strconv.Itoa(item.Drawn))
}

// Settle forgets the handles of items whose final results are stored. If an item failed or a voter is missing, the item
// is asked about again later, and its handles are used to collect the results.
func (g *Graph) Settle(results []outcome.Result) error {
	if g.options.Pending == nil {
		return nil
	}
	var collected []string
	for i := range results {
		if r := &results[i]; r.Failure == nil && len(r.Missing) == 0 {
			collected = append(collected, r.Collected...)
		}
	}
	return g.options.Pending.Settle(collected)
}

func (s *stage) invoke(ctx context.Context, handle string, records []*Record) error {
	if s.slots != nil { // before the call's time limit begins
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
	ctx, done := s.graph.options.Observe.Call(ctx, progress.StageCall{
		Pipeline: s.graph.pipeline.Name, Stage: s.String(), Use: s.Use, Model: s.Config.Model(), Kind: s.Kind, Rows: len(records),
	})
	err := s.Stage.Patience().Bounded(ctx, len(records), func(ctx context.Context) error { return s.method(ctx, handle, records) })
	done(progress.CallEnded(err))
	if cause := stopOf(err); cause != nil {
		s.graph.stop(s, cause)
	}
	s.busy.Add(int64(time.Since(start)))
	s.rows.Add(int64(len(records)))
	return err
}

// Gathered limits how many items travel together if a stage asks a service in batches. It is the
// size of the largest batch that services accept.
const Gathered = 50_000

// Gathers reports whether a stage asks a service in batches: all items of the input then travel
// together, up to Gathered.
func Gathers(p *pipeline.Pipeline) bool {
	for i, s := range p.Stages {
		if s.Enabled && p.Used(i) && (s.Gathers() || slices.ContainsFunc(s.Fallbacks, func(f pipeline.Fallback) bool { return f.Stage.Gathers() })) {
			return true
		}
	}
	return false
}

// Window is the number of batches in work at a time if all stages run on this machine: enough to
// keep every stage busy while the slowest works on another batch.
const Window = 4

// Calls returns the most concurrent calls of any one stage to its service; 0: no stage asks a
// service.
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

// slotsOf limits the concurrent calls of a stage. A network stage gets more slots than its service
// allows calls, so that the next call is ready when one ends, but not so many that calls spend
// their time waiting. The limit also prevents all batches from calling a local stage of the same
// pipeline at once.
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

// methodOf returns the method of a stage with this process.
func (s *stage) methodOf(process any) (method, error) {
	switch s.Kind {
	case "":
		return s.searcher(), nil
	case sdk.KindRerank:
		if p, ok := process.(sdk.Reranker); ok {
			return methodBy(s, process, p.Rerank, nil, s.rerank), nil
		}
	case sdk.KindPrompt:
		if p, ok := process.(sdk.Prompter); ok {
			return methodBy(s, process, p.Prompt, nil, func(rec *Record, v []sdk.Prompt) {
				s.whole.share(v)
				rec.outputs[s.index].prompts = v
			}), nil
		}
	case sdk.KindSample:
		if p, ok := process.(sdk.Sampler); ok {
			var collect func(context.Context, string, sdk.Batch) ([][]sdk.Sample, error)
			if c, ok := process.(sdk.SampleCollector); ok {
				collect = c.CollectSamples
			}
			return methodBy(s, process, p.Sample, collect, s.sample), nil
		}
	case sdk.KindElect:
		if p, ok := process.(sdk.Elector); ok {
			return methodBy(s, process, p.Elect, nil, s.decide), nil
		}
	}
	return nil, fmt.Errorf("%s: %q does not do the work of its kind", s, s.Use)
}

// methodBy returns a method that calls a plugin's stage with items and sets the value of each item.
func methodBy[T any](
	s *stage, process any, call func(context.Context, sdk.Batch) ([]T, error), collect func(context.Context, string, sdk.Batch) ([]T, error), set func(*Record, T),
) method {
	if d, ok := process.(sdk.Drawer); ok && s.Info.Reads.Has(sdk.ColumnRandom) {
		s.random = d.Random()
	}
	return func(ctx context.Context, handle string, records []*Record) error {
		b := sdk.Batch{Items: make([]sdk.Item, len(records))}
		for i, rec := range records {
			b.Items[i] = s.item(rec)
		}
		if s.knowledge != nil && s.Info.Reads.Has(sdk.ColumnLabels) {
			b.Labels, b.Described = s.knowledge.Labels, s.knowledge.Described
		}
		draws, err := s.draw(ctx, records)
		if err != nil {
			return err
		}
		for i := range draws {
			b.Items[i].Random = draws[i]
		}
		var values []T
		if collect != nil && handle != "" {
			values, err = collect(ctx, handle, b)
		} else {
			values, err = call(ctx, b)
		}
		var rows sdk.RowErrors
		if err != nil && !errors.As(err, &rows) {
			return err
		}
		if len(values) != len(records) {
			return fmt.Errorf("it returned %d results for %d items", len(values), len(records))
		}
		for i, rec := range records {
			if rows[i] == nil {
				set(rec, values[i])
			}
		}
		return err
	}
}

// draw draws the random examples for records; nil: the stage gets none.
func (s *stage) draw(ctx context.Context, records []*Record) ([][]sdk.Candidate, error) {
	if s.knowledge == nil || s.random.Count == 0 {
		return nil, nil
	}
	ids := make([]string, len(records))
	for i, rec := range records {
		ids[i] = cmp.Or(rec.Row.ID, rec.Row.Text) // not the line number, which changes when a line is added above
	}
	return s.knowledge.Random(ctx, ids, s.random, s.graph.options.Holdout.Of(s.knowledge))
}

// single splits answers that are sets of labels, for example votes of a voter for its neighbours' sets. A label gets
// the sum of the weights of the sets that contain it, at most 1; the heaviest label comes first. A set without labels
// becomes the answer that no label fits.
func single(f sdk.LabelForm, answers []sdk.Answer) []sdk.Answer {
	if !slices.ContainsFunc(answers, func(a sdk.Answer) bool { return a.Label != "" && len(f.Split(a.Label)) != 1 }) {
		return answers
	}
	var all []sdk.Answer
	for _, a := range answers {
		labels := f.Split(a.Label)
		if len(labels) == 0 { // no label fits
			labels = []string{""}
		}
		for _, label := range labels {
			at := slices.IndexFunc(all, func(b sdk.Answer) bool { return b.Label == label && b.Reason == a.Reason })
			if at < 0 {
				at = len(all)
				one := a
				one.Label, one.Weight = label, 0
				all = append(all, one)
			}
			all[at].Weight = min(all[at].Weight+a.Weight, 1)
		}
	}
	slices.SortStableFunc(all, func(a, b sdk.Answer) int { return cmp.Compare(b.Weight, a.Weight) })
	return all
}

// sample adds new samples of a voter to its earlier samples.
func (s *stage) sample(rec *Record, samples []sdk.Sample) {
	for i := range samples {
		samples[i].Voter = s.Name
		samples[i].Answers = single(s.graph.form, samples[i].Answers)
		if len(samples[i].Answers) > 1 {
			s.spread.Store(true)
		}
		for j := range samples[i].Answers { // overrides the plugin's own value
			samples[i].Answers[j].Accepted = samples[i].Answers[j].Reason == ""
		}
	}
	out := &rec.outputs[s.index]
	out.samples = append(out.samples, samples...)
}

// rerank sets the best candidates by a reranker's scores. Candidates keep their dense and lexical
// scores.
func (s *stage) rerank(rec *Record, ranked []sdk.Ranked) {
	above := rec.outputs[s.in.found].candidates
	best := make([]sdk.Candidate, min(len(ranked), s.TopK))
	for i := range best {
		best[i] = above[ranked[i].Candidate]
		best[i].Score = ranked[i].Score
	}
	out := &rec.outputs[s.index]
	out.candidates, out.reranked = best, true
}

// passOn passes on the candidates from above for records that the stage did not rerank, because its
// when rule does not hold or its failure is skipped. It passes on TopK candidates, or all
// candidates if they are a whole knowledge.
func (s *stage) passOn(records []*Record) {
	for _, rec := range records {
		out := &rec.outputs[s.index]
		if out.reranked || out.failure != nil || out.missing != nil || rec.failure(s.in.needs) != nil {
			continue
		}
		above := rec.outputs[s.in.found].candidates
		n := min(len(above), s.TopK)
		if s.whole != nil {
			n = len(above)
		}
		out.candidates = above[:n:n]
	}
}

// maxPrototypes limits the centroids per item that a voter sees: the softmax weights of the other
// centroids are too small to decide anything.
const maxPrototypes = 256

// search is the work of a retrieve stage: it searches the knowledge. If a stage reads centroids, it
// also searches the label centroids. If a stage reads vectors, it also embeds the items.
type search struct {
	*stage
	ranking    sdk.Ranking
	embedded   bool // a stage reads vectors
	prototypes bool // a stage reads centroids
}

// searcher returns the method of a retrieve stage.
func (s *stage) searcher() method {
	held := s.graph.options.Holdout
	if s.whole != nil {
		return s.whole.give(s.index, held.Of(s.knowledge))
	}
	c := search{stage: s, ranking: s.Retrieve.Ranking}
	for _, reader := range s.graph.stages {
		if reader != nil && (reader.index == s.index || reader.in.retrieve == s.index) {
			c.prototypes = c.prototypes || reader.Info.Reads.Has(sdk.ColumnPrototypes)
			c.embedded = c.embedded || c.prototypes || reader.Info.Reads.Has(sdk.ColumnVector)
			c.ranking.Texts = c.ranking.Texts || reader.Info.Reads.Has(sdk.ColumnCandidateTexts) || reader.rulesRead("candidate_texts")
		}
	}
	// Candidates need texts without an election, because they are then the answer, and with
	// Options.Lists, because people read the lists.
	c.ranking.Texts = c.ranking.Texts || s.graph.elect < 0 && held == nil || s.graph.options.Lists
	return c.find
}

// find searches the knowledge for records, without the entries that Options.Holdout excludes.
func (c search) find(ctx context.Context, _ string, records []*Record) error {
	held := c.graph.options.Holdout
	heldOut := held.Of(c.knowledge)
	queries := make([]sdk.Query, len(records))
	for i, rec := range records {
		c.ranking.Texts = c.ranking.Texts || rec.texts
		queries[i] = sdk.Query{Text: rec.Row.Text, Filter: rec.outputs[c.index].filter}
		if heldOut {
			queries[i].Filter, queries[i].Vector = held.Except(rec.id, queries[i].Filter), held.Query(rec.id)
		}
	}
	candidates, vectors, err := c.knowledge.Retrieve(ctx, c.ranking, queries)
	failed := sdk.RowErrors{}
	if err := knowledge.TakeRows(failed, err); err != nil {
		return err
	}
	vectors, nearest, err := c.embed(ctx, queries, vectors, failed)
	if err != nil {
		return err
	}
	for i, rec := range records {
		out := &rec.outputs[c.index]
		out.candidates = candidates[i]
		if vectors != nil {
			out.vector = vectors[i]
		}
		if nearest != nil {
			out.prototypes = nearest[i]
		}
		if heldOut && out.prototypes != nil {
			out.prototypes = held.Prototypes(rec.id, rec.Row.Label, out.vector, out.prototypes)
		}
	}
	if len(failed) > 0 {
		return failed
	}
	return nil
}

// embed returns the vectors of queries, and the centroids nearest to them; nil: no stage reads
// them. It reuses vectors from the search, and adds failed rows to failed.
func (c search) embed(ctx context.Context, queries []sdk.Query, vectors [][]float32, failed sdk.RowErrors) (_ [][]float32, nearest [][]sdk.Candidate, err error) {
	if c.embedded && vectors == nil && !c.rescue { // a fallback does not need an embedder that may have failed
		vectors, err = c.knowledge.VectorsOf(ctx, queries)
		if err := knowledge.TakeRows(failed, err); err != nil {
			return nil, nil, err
		}
	}
	if c.prototypes && vectors != nil {
		nearest, err = c.knowledge.Prototypes(ctx, vectors, maxPrototypes)
		if err := knowledge.TakeRows(failed, err); err != nil {
			return nil, nil, err
		}
	}
	return vectors, nearest, nil
}

// rulesRead reports whether any of the stage's rules reads a name.
func (s *stage) rulesRead(name string) bool {
	for _, f := range s.Fallbacks {
		if f.When.Reads(name) {
			return true
		}
	}
	return s.When.Reads(name) || s.Keep.Reads(name) || s.Accept.Reads(name) || s.Flag.Reads(name)
}

// trace records what happened to an item at a stage, besides the stage's output.
type trace struct {
	rules   []outcome.Rule
	retries []outcome.Retry
}

// maxRetries limits the causes per item and stage that are counted separately.
const maxRetries = 4

// note records that a rule of a stage decided something about the item.
func (r *Record) note(s *stage, rule outcome.Rule) {
	rule.Stage = s.name
	rules := &r.outputs[s.index].rules
	for i := range *rules {
		if old := &(*rules)[i]; old.Stage == rule.Stage && old.Rule == rule.Rule { // add up over resampled answers
			old.N, old.Of = old.N+rule.N, old.Of+rule.Of
			return
		}
	}
	*rules = append(*rules, rule)
}

// noted reports whether a rule of a stage has decided something about the item.
func (r *Record) noted(s *stage, rule string) bool {
	return slices.ContainsFunc(r.outputs[s.index].rules, func(old outcome.Rule) bool { return old.Stage == s.name && old.Rule == rule })
}

// retried records a repeated call of a stage about the item.
func (r *Record) retried(s *stage, why string) {
	all := &r.outputs[s.index].retries
	for i := range *all {
		if old := &(*all)[i]; old.Stage == s.name && (old.Why == why || i == maxRetries-1) {
			old.Times++
			return
		}
	}
	*all = append(*all, outcome.Retry{Stage: s.name, Why: why, Times: 1})
}

// noting wraps a call of the stage: for each repeated record it records the cause.
func (s *stage) noting(records []*Record, call func(context.Context, []int) error) func(context.Context, []int) error {
	var failed map[int]error // by position, from the last call
	return func(ctx context.Context, at []int) error {
		if failed != nil {
			for _, n := range at {
				if err := failed[n]; err != nil {
					records[n].retried(s, outcome.Why(err))
				}
			}
		}
		err := call(ctx, at)
		if err == nil {
			return nil
		}
		if failed == nil {
			failed = map[int]error{}
		}
		var rows sdk.RowErrors
		single := errors.As(err, &rows)
		for i, n := range at {
			if failed[n] = err; single {
				failed[n] = rows[i]
			}
		}
		return err
	}
}

// trace adds to a result the lists, rules and retries that led to it.
func (g *Graph) trace(rec *Record, result *outcome.Result) {
	lists := 0
	for _, s := range g.stages {
		if s != nil && (s.Retrieve != nil || s.Kind == sdk.KindRerank) {
			lists++
		}
	}
	result.Lists = make([]outcome.List, 0, lists)
	for i, s := range g.stages {
		if s == nil {
			continue
		}
		out := &rec.outputs[i]
		if s.Retrieve != nil || s.Kind == sdk.KindRerank {
			result.Lists = append(result.Lists, outcome.List{Stage: s.name, Candidates: out.candidates, Whole: s.whole.is(out.candidates)})
		}
		result.Rules, result.Retries = append(result.Rules, out.rules...), append(result.Retries, out.retries...)
		if f := out.skipped; f != nil && !out.refused {
			result.Rules = append(result.Rules, outcome.Rule{Stage: s.name, Rule: outcome.RuleOnError, Why: outcome.Why(f.Err)})
		}
	}
}
