package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Know adds a knowledge that the graph's retrieve stages search. It fails if a stage needs labels
// and the knowledge has none, or if the knowledge does not support a stage's search mode.
func (g *Graph) Know(block *pipeline.Knowledge, k *knowledge.Knowledge) error {
	for _, s := range g.stages {
		if s == nil || s.Retrieve == nil || s.Retrieve.From != block {
			continue
		}
		all := []*pipeline.Stage{s.Stage}
		for _, f := range s.Fallbacks {
			all = append(all, f.Stage)
		}
		for _, one := range all {
			if one.Retrieve == nil {
				continue
			}
			if err := k.CheckMode(one.Retrieve.Ranking.Mode); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	if len(k.Labels) == 0 {
		if err := g.checkLabels(block); err != nil {
			return err
		}
	}
	g.knowledge[block], g.labels[block] = k, rule.NewLabelSet(k.Labels)
	return nil
}

// Processes calls start for each stage that has a process and does not learn from knowledge, with
// its position in the pipeline.
func (g *Graph) Processes(start func(i int, s *pipeline.Stage)) {
	for i, s := range g.stages {
		if s != nil && s.Kind != "" && !s.Info.Fits {
			start(i, s.Stage)
		}
	}
}

// Connect sets the processes of the stages, by position in the pipeline. It starts the processes of
// fallbacks and of stages that learn. Call it after Know for all knowledge.
func (g *Graph) Connect(ctx context.Context, processes []any, start Launch) error {
	for i, s := range g.stages {
		if s == nil {
			continue
		}
		if err := g.connect(ctx, s, processes[i], start); err != nil {
			return err
		}
	}
	g.begin()
	return nil
}

func (g *Graph) begin() {
	for _, k := range g.knowledge {
		k.Begin(g.pipeline.Name, g.options.Observe)
	}
}

func (g *Graph) connect(ctx context.Context, s *stage, process any, start Launch) (err error) {
	if at := s.in.retrieve; at >= 0 {
		block := g.stages[at].Retrieve.From
		s.knowledge, s.labels, s.above = g.knowledge[block], g.labels[block], g.labels[block]
		s.whole = g.stages[at].whole
	}
	if s.Retrieve != nil {
		s.knowledge, s.labels = g.knowledge[s.Retrieve.From], g.labels[s.Retrieve.From]
		if s.whole, err = s.readWhole(ctx); err != nil {
			return err
		}
	}
	if err := s.open(ctx, process, start); err != nil {
		return err
	}
	for _, definition := range s.Fallbacks {
		f := &stage{
			Stage: definition.Stage, graph: g, name: s.name + ", fallback." + definition.Name, index: s.index, in: s.in, knowledge: s.knowledge, labels: s.labels, above: s.above,
			rescue: true, ending: newEnding(), slots: g.slotsOf(definition.Stage),
		}
		if f.Retrieve == nil { // a retrieve fallback searches instead
			f.whole = s.whole
		}
		if err := f.open(ctx, nil, start); err != nil {
			return err
		}
		s.fallbacks = append(s.fallbacks, f)
	}
	return nil
}

// open starts the process of a stage, unless it is given, and connects it. A stage that learns from
// its knowledge learns first. A retrieve stage has no process.
func (s *stage) open(ctx context.Context, process any, start Launch) (err error) {
	switch {
	case s.Kind == "" || process != nil:
	case !s.Info.Fits:
		process, err = start(ctx, LaunchRequest{Stage: s.Stage})
	case s.Block != "elect" && s.graph.options.Holdout.Of(s.knowledge):
		return s.fold(ctx, s.learning(start))
	default:
		process, err = s.startFitted(ctx, start)
	}
	if err != nil {
		return err
	}
	return s.connect(process)
}

// connect sets the process of a stage; nil: a retrieve stage has none.
func (s *stage) connect(process any) (err error) {
	s.process = process
	if f, ok := process.(sdk.Fingerprinter); ok && s.Kind != "" {
		s.fingerprint = f.Fingerprint()
		s.identity = pipeline.StageDigest(s.Stage, f) + s.learnt
		if s.knowledge != nil && s.Info.Reads&sdk.Of(sdk.ColumnLabels, sdk.ColumnRandom) != 0 {
			collection, content := s.knowledge.Generation()
			s.identity += collection + content
		}
	}
	if r, ok := process.(sdk.Resolver); ok && s.Kind != "" {
		s.resolved = r.Resolved()
	}
	s.method, err = s.methodOf(process)
	return err
}

// checkLabels refuses a knowledge without labels if a stage needs labels. Voters on prompts need
// none: they may answer questions from passages.
func (g *Graph) checkLabels(block *pipeline.Knowledge) error {
	if len(g.voters) == 0 {
		return nil
	}
	for _, s := range g.stages {
		if s == nil || s.in.retrieve < 0 || g.stages[s.in.retrieve].Retrieve.From != block {
			continue
		}
		var why string
		switch {
		case s.Info.Reads.Has(sdk.ColumnLabels):
			why = fmt.Sprintf("so %s (%s) has none to choose from", s, s.Use)
		case s.Kind == sdk.KindSample && !s.Info.Reads.Has(sdk.ColumnPrompts):
			why = fmt.Sprintf("so there is nothing to vote for, which %s (%s) does", s, s.Use)
		case s.Accept.Reads("labels") || s.Accept.Reads("candidate_labels"):
			why = fmt.Sprintf("so the accept rule of %s takes no answer", s)
		default:
			continue
		}
		from := "row of " + block.Main().Path
		advice := `name the column that holds it with label = "..." in the source block, or`
		switch {
		case block.Attached():
			from, advice = "entry of "+block.Collection(), `name the field that holds it with label = "..." in the config of its store, or`
		case block.Documents() != nil:
			from, advice = "document", "let it read rows with labels, or"
		}
		return fmt.Errorf(`knowledge %q: no %s has a label, %s; %s have questions answered from passages, by a prompt with use = "answer" and voters that read it`,
			block.Name, from, why, advice)
	}
	return nil
}

// Identity has everything that a stage's output depends on, besides its arguments.
type Identity struct {
	Stage       string // as "sample.knn", or "sample.llm, fallback.other"
	Use         string
	Fingerprint string         // empty: the plugin has none
	Learnt      string         // identifies what the stage learnt from its knowledge; empty: nothing
	Resolved    map[string]any // values that it chose for arguments that the file leaves to it
}

// Identities returns the Identity of every stage with a process, in file order.
func (g *Graph) Identities() []Identity {
	var all []Identity
	for _, s := range g.stages {
		if s == nil {
			continue
		}
		if s.Kind != "" {
			all = append(all, Identity{s.String(), s.Use, s.fingerprint, s.learnt, s.resolved})
		}
		for i, f := range s.fallbacks {
			if f.Kind != "" {
				all = append(all, Identity{s.String() + ", fallback." + s.Fallbacks[i].Name, f.Use, f.fingerprint, f.learnt, f.resolved})
			}
		}
	}
	return all
}

// Times returns the rows and time of each stage so far. Each searched knowledge has two entries:
// embedding and searching.
func (g *Graph) Times() []outcome.StageTime {
	var all []outcome.StageTime
	for _, block := range g.pipeline.Knowledge() {
		if k := g.knowledge[block]; k != nil {
			embeds, searches := k.Meters()
			rows, busy := embeds.Read()
			all = append(all, outcome.StageTime{Stage: "embed." + block.Embed.Use, Rows: rows, Busy: busy})
			rows, busy = searches.Read()
			all = append(all, outcome.StageTime{Stage: "search." + block.Store.Use, Rows: rows, Busy: busy})
		}
	}
	for _, s := range g.stages {
		if s != nil && s.Kind != "" {
			all = append(all, outcome.StageTime{Stage: s.String(), Rows: int(s.rows.Load()), Busy: time.Duration(s.busy.Load())})
		}
	}
	return all
}

// Distributions names the voters that returned distributions.
func (g *Graph) Distributions() []string {
	var all []string
	for _, v := range g.voters {
		if g.stages[v].spread.Load() {
			all = append(all, g.stages[v].Name)
		}
	}
	return all
}

// Callers names the voters that call services.
func (g *Graph) Callers() []string {
	var all []string
	for _, v := range g.voters {
		if g.stages[v].Info.Network {
			all = append(all, g.stages[v].Name)
		}
	}
	return all
}

// Step is the output of one stage for an item.
type Step struct {
	Stage      string          // as "sample.knn"
	Took       time.Duration   // of its batch
	Candidates []sdk.Candidate // of a retrieve or rerank stage, with texts
	Votes      []result.Vote   // of a voter
	Skipped    string          // why the stage has no output for the item; empty: it has one
}

// Follow sets a callback, which is called when a stage has finished the item. Several goroutines
// call it at once. Set it before the item starts.
func (r *Record) Follow(each func(Step)) { r.follow, r.texts = each, true }

// report calls the callbacks of records that the stage has finished.
func (s *stage) report(records []*Record, took time.Duration) {
	for _, rec := range records {
		if rec.follow == nil {
			continue
		}
		step, out := Step{Stage: s.String(), Took: took, Skipped: s.why(rec)}, &rec.outputs[s.index]
		if s.Retrieve != nil || s.Kind == sdk.KindRerank {
			step.Candidates = slices.Clone(out.candidates)
		}
		if s.Kind == sdk.KindSample {
			step.Votes = votes(clone(out.samples)) // a copy, because an election marks answers that it does not accept
		}
		rec.follow(step)
	}
}

// why returns why a stage has no output for an item; empty: it has one.
func (s *stage) why(rec *Record) string {
	out := &rec.outputs[s.index]
	switch above := rec.failure(s.in.needs); {
	case out.failure != nil:
		return out.failure.Error()
	case out.skipped != nil:
		return out.skipped.Error()
	case out.missing != nil:
		return out.missing.Error()
	case above != nil:
		return fmt.Sprintf("%s failed before", above.Stage)
	case out.idle:
		return "its when rule does not hold"
	case out.withheld:
		return "what may be spent does not go to this item"
	case s.idle():
		return "nothing reads what it writes any more"
	}
	return ""
}

// Run takes a batch through all stages.
func (g *Graph) Run(ctx context.Context, records []*Record) {
	g.run(ctx, records, func(int) bool { return true })
}

// run takes records through the wanted stages. Each starts as soon as the stages that it needs are
// done.
func (g *Graph) run(ctx context.Context, records []*Record, wanted func(stage int) bool) {
	var good []*Record
	for _, rec := range records {
		if rec.Unanswered() {
			good = append(good, rec)
		}
	}
	done := make([]chan struct{}, len(g.stages))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var wg sync.WaitGroup
	for i, s := range g.stages {
		if s == nil || !wanted(i) {
			close(done[i])
			continue
		}
		wg.Go(func() {
			defer close(done[i])
			for _, n := range s.in.needs {
				<-done[n]
			}
			if g.options.Ballots && i == g.elect {
				g.keepBallots(good)
			}
			start := time.Now()
			s.run(ctx, good)
			s.report(good, time.Since(start))
		})
	}
	wg.Wait()
}

// run takes a batch's records through one stage, in the order of the package documentation.
func (s *stage) run(ctx context.Context, records []*Record) {
	if s.Kind == sdk.KindRerank {
		defer s.passOn(records)
		if s.whole != nil {
			return
		}
	}
	if s.idle() {
		return
	}
	records = s.when(ctx, records)
	if s.Block == "elect" {
		// The election's own accept rule further narrows the answers that count.
		for _, rec := range records {
			if err := s.accept(ctx, rec, rec.samples(s.in.voters)); err != nil {
				rec.fail(s, err)
			}
		}
		records = slices.DeleteFunc(records, func(rec *Record) bool { return rec.outputs[s.index].failure != nil })
	}
	s.work(ctx, records)
	s.fallBack(ctx, records)
	for _, rec := range records {
		out := &rec.outputs[s.index]
		switch f := out.failure; {
		case stops(f), s.OnError == pipeline.FailItem && s.unavailable(f):
			*out = output{trace: out.trace, missing: f}
		case f != nil && s.OnError == pipeline.SkipItem:
			*out = output{trace: out.trace, skipped: f}
		case f != nil && s.mayAbstain(f):
			out.failure, out.skipped, out.refused = nil, f, true
		}
	}
}

// work calls the stage and applies the rules that follow. It asks again about items without an
// accepted answer, as often as resamples allow. A stopped stage does nothing.
func (s *stage) work(ctx context.Context, records []*Record) {
	if s.stopped.Load() {
		for _, rec := range records {
			rec.fail(s, s.ending.err())
		}
		return
	}
	if s.Retrieve != nil {
		records = s.filter(ctx, records)
	}
	if s.Kind == sdk.KindSample {
		defer func(all []*Record) {
			for _, rec := range all {
				rec.forgetTexts(s.index)
			}
		}(records)
	}
	for resampled := 0; ; resampled++ {
		if records = s.allowed(records); len(records) == 0 {
			return
		}
		var again []*Record
		for i, err := range s.call(ctx, records) {
			rec := records[i]
			if err == nil {
				err = s.applyRules(ctx, rec)
			}
			switch rejected := err == nil && rec.rejected(s.index); {
			case rejected && resampled < s.Resamples:
				rec.retried(s, "none of its answers was accepted")
				again = append(again, rec)
			case rejected && rec.takeUncited(s.index):
				err = s.applyRules(ctx, rec)
			}
			if err != nil {
				rec.fail(s, err)
			}
		}
		records = again
	}
}

// rejected reports whether a voter gave samples but no accepted answer. A voter without samples
// abstains, and would abstain again.
func (r *Record) rejected(stage int) bool {
	samples := r.outputs[stage].samples
	return len(samples) > 0 && !slices.ContainsFunc(samples, func(s sdk.Sample) bool {
		return slices.ContainsFunc(s.Answers, func(a sdk.Answer) bool { return a.Accepted })
	})
}

// fallBack passes each item that failed or has no candidates to the first fallback whose rule
// holds. It leaves out items for which the stage had to stop: after a fallback, the stage would
// never be asked about them again.
func (s *stage) fallBack(ctx context.Context, records []*Record) {
	taken := make([][]*Record, len(s.fallbacks))
	for _, rec := range records {
		out := &rec.outputs[s.index]
		if stops(out.failure) {
			continue
		}
		for i, f := range s.fallbacks {
			when := s.Fallbacks[i].When
			e := f.env(rec, when)
			if e.Failed = out.failure != nil; e.Failed {
				e.Error = out.failure.Err.Error()
			}
			ok, err := when.Eval(ctx, e)
			if err != nil {
				rec.fail(s, err)
				break
			}
			if ok {
				rec.note(s, outcome.Rule{Rule: outcome.RuleFallback, Name: s.Fallbacks[i].Name, Why: reasonOf(out)})
				taken[i] = append(taken[i], rec)
				break
			}
		}
	}
	for i, f := range s.fallbacks {
		for _, rec := range taken[i] {
			rec.outputs[s.index] = output{trace: rec.outputs[s.index].trace}
		}
		f.work(ctx, taken[i])
	}
}

// reasonOf returns why a fallback takes over.
func reasonOf(out *output) string {
	if out.failure != nil {
		return outcome.Why(out.failure.Err)
	}
	return ""
}

// whole returns all entries of a knowledge instead of searching. All items have the same unscored
// candidates, so their prompts begin alike: candidates and shared texts are held only once.
type whole struct {
	candidates []sdk.Candidate

	mu       sync.Mutex
	texts    map[string]string // message texts that many prompts share
	passages []string          // of the last prompt
}

// maxShared limits the shared texts. Without a limit, a stage whose prompts wrongly claim to share
// texts would fill the memory.
const maxShared = 16

// readWhole evaluates the whole rule of a stage; nil: the stage searches its knowledge.
func (s *stage) readWhole(ctx context.Context) (*whole, error) {
	if s.Retrieve.Whole == nil {
		return nil, nil
	}
	var env rule.Env
	var err error
	if s.Retrieve.Whole.Reads("knowledge") {
		if env.Knowledge, err = s.knowledge.Extent(ctx); err != nil {
			return nil, err
		}
	}
	holds, err := s.Retrieve.Whole.Eval(ctx, &env)
	if err != nil {
		return nil, fmt.Errorf("%s: whole: %w", s, err)
	}
	if !holds {
		return nil, nil
	}
	w := &whole{texts: map[string]string{}}
	if w.candidates, err = s.knowledge.All(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// give returns the method of a retrieve stage that returns its whole knowledge or, with others, all
// entries except the item's own row.
func (w *whole) give(stage int, others bool) method {
	return func(_ context.Context, _ string, records []*Record) error {
		for _, rec := range records {
			all := w.candidates
			if others {
				all = slices.DeleteFunc(slices.Clone(all), func(c sdk.Candidate) bool { return c.ID == rec.id })
			}
			rec.outputs[stage].candidates = all
		}
		return nil
	}
}

// is reports whether candidates are the unchanged list of the whole knowledge.
func (w *whole) is(candidates []sdk.Candidate) bool {
	return w != nil && len(candidates) > 0 && len(candidates) == len(w.candidates) && &candidates[0] == &w.candidates[0]
}

// abstains reports whether a stage would vote on unscored candidates. Such a vote would be
// meaningless, so the stage gets no candidates.
func (s *stage) abstains() bool {
	return s.whole != nil && s.Kind == sdk.KindSample && !s.Info.Reads.Has(sdk.ColumnPrompts)
}

// share makes prompts with equal texts share one copy, because each prompt from the wire has its
// own copy.
func (w *whole) share(prompts []sdk.Prompt) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range prompts {
		if len(w.passages) > 0 && slices.Equal(prompts[i].Passages, w.passages) {
			prompts[i].Passages = w.passages
		} else {
			w.passages = prompts[i].Passages
		}
		messages := prompts[i].Messages
		for j := range messages {
			if !messages[j].Shared {
				continue
			}
			text, ok := w.texts[messages[j].Text]
			if ok {
				messages[j].Text = text
			} else if len(w.texts) < maxShared {
				w.texts[messages[j].Text] = messages[j].Text
			}
		}
	}
}
