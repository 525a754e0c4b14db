package knowledge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// This file adds the results of enrichers to the passages of documents: context, which says where a passage
// stands, and terms.
//
// Neither changes the text of an entry. Both go into its context, after the source's own context; the embedded
// text stands between context and terms. Each enrich block says whether BM25 searches its additions and
// whether they are embedded. Additions that BM25 does not search become metadata under the block's name.
//
// Enrichers get whole documents, do not see each other's additions, and run concurrently. An enricher that
// calls services gets one document per call; its limit determines the number of concurrent calls. Documents
// keep their order: a document that finishes early waits. Enrichers hold up to four times the documents that
// they work on, fewer if the texts are long.
//
// An enricher may ask a service in batches (batch = true). Then groups have up to 50,000 passages or 32 MiB of
// text. Four groups are held, since the service takes hours for a batch of any size. The other enrichers get
// such a group in parts.
//
// If the addition of a single passage fails, the passage stays unenriched, and one build asks about it once.
// If a service is down or the budget is spent, the build ends (endedError).
//
// Each block has one enricher. enrich_ask.go gives it documents in groups and asks for the additions of each.

// maxContext is how many bytes of an entry's context every store accepts. A longer context is cut after the
// last whole word that fits; terms are cut first.
const maxContext = 60_000

// Add puts the additions of enrichers into the entries of a document. It returns the contexts to embed in
// place of the entries' own contexts; nil if there are no enrichers.
func (all Enrichers) Add(entries []sdk.Entry, added []additions) (contexts []string) {
	if len(all) == 0 {
		return nil
	}
	contexts = make([]string, len(entries))
	for i := range entries {
		e := &entries[i]
		searched := parts{lines: strings.Split(e.Context, "\n")}
		embedded := parts{lines: searched.lines}
		for n, found := range added {
			stage, a := all[n].stage, found.passages[i]
			if stage.Lexical {
				searched.add(a)
			} else {
				e.Meta = with(e.Meta, stage, a)
			}
			if stage.Embedded {
				embedded.add(a)
			}
		}
		e.Context, contexts[i] = searched.join(), embedded.join()
	}
	return contexts
}

// parts holds the lines and terms of a context.
type parts struct{ lines, terms []string }

func (p *parts) add(a sdk.Addition) {
	p.lines = append(p.lines[:len(p.lines):len(p.lines)], a.Context)
	p.terms = append(p.terms, a.Terms...)
}

func (p *parts) join() string { return bounded(sdk.JoinContext(p.lines, p.terms)) }

// with adds unsearched additions to metadata, under the name of the enrich block.
func with(meta sdk.Meta, s *pipeline.Stage, a sdk.Addition) sdk.Meta {
	lines := a.Terms
	if a.Context != "" {
		lines = slices.Concat([]string{a.Context}, a.Terms)
	}
	if len(lines) == 0 {
		return meta
	}
	if meta = maps.Clone(meta); meta == nil {
		meta = sdk.Meta{}
	}
	meta[s.Name] = bounded(strings.Join(lines, "\n"))
	return meta
}

// bounded cuts a context to maxContext bytes.
func bounded(text string) string {
	if len(text) <= maxContext {
		return text
	}
	end := maxContext
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexFunc(text[:end], unicode.IsSpace); space > 0 {
		end = space
	}
	return strings.TrimSuffix(strings.TrimRightFunc(text[:end], unicode.IsSpace), "\n"+sdk.Delimiter)
}

// Enrichers are the enrichers of a knowledge, in the order of their blocks. They serve one build, with all its
// tries.
type Enrichers []*enricher

// enricher asks for the additions of one enrich block.
type enricher struct {
	stage   *pipeline.Stage
	process generation.Enricher // nil: a plan, which asks and adds nothing
	slots   chan struct{}       // one for each call in progress
	later   *generation.LaterResults

	failed sync.Map // errors of passages without an addition, by failedPassage

	mu   sync.Mutex
	asks Asks // in a plan: the questions to the enricher

	forecaster sdk.EnrichForecaster // in a plan: forecasts its use of a service; nil: it cannot
}

// failedPassage names a passage without an addition. If the embedder has to learn first, a build reads
// documents twice, but asks about such a passage only once. The next build asks again.
type failedPassage struct {
	document, hash string
	chunk          int
}

// Forecasters forecast the calls of stages that a plan does not ask.
type Forecasters map[*pipeline.Stage]sdk.EnrichForecaster

// newEnrichers returns the enrichers of a block, with the processes of generation.Start. Without processes, it
// asks none of them, and counts the questions to them.
func newEnrichers(block *pipeline.Knowledge, processes []generation.Enricher, later *generation.LaterResults) Enrichers {
	var all Enrichers
	if later == nil {
		later = &generation.LaterResults{}
	}
	for i, s := range block.Enrichers() {
		e := &enricher{stage: s, slots: make(chan struct{}, slotsOf(s)), asks: Asks{Stage: s}, later: later}
		if processes != nil {
			e.process = processes[i]
		}
		all = append(all, e)
	}
	return all
}

// estimate adds forecasters to the enrichers that a plan does not ask.
func (all Enrichers) estimate(by Forecasters) Enrichers {
	for _, e := range all {
		if e.forecaster = by[e.stage]; e.forecaster != nil {
			e.asks.Forecast = &sdk.Forecast{}
		}
	}
	return all
}

// slotsOf returns how many calls of an enrich stage may run at a time.
func slotsOf(s *pipeline.Stage) int {
	switch {
	case s.Workers > 0:
		return s.Workers
	case !s.Info.Network:
		return 1
	}
	return min(s.Concurrency(), wire.Window)
}

// Asks counts the questions to an enrich stage that calls a service.
type Asks struct {
	Stage      *pipeline.Stage
	Passages   int
	Characters int           // of the passages, each with its document if the stage sends the document
	Forecast   *sdk.Forecast // the stage's own forecast; nil: it makes none
	First      []sdk.Passage // with Forecast: up to firstPassages of the first document, to see how the stage answers
}

const firstPassages = 3

// asks returns what services would be asked about the documents so far.
func (all Enrichers) asks() (asks []Asks) {
	for _, e := range all {
		if e.process == nil && e.stage.Info.Network {
			asks = append(asks, e.asks)
		}
	}
	return asks
}

// count adds documents to the questions to a service.
func (e *enricher) count(documents []generation.Document) error {
	if !e.stage.Info.Network {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range documents {
		e.asks.Passages += len(d.Chunks)
		if e.stage.Info.Reads.Has(sdk.ColumnText) {
			e.asks.Characters += len(d.Chunks) * utf8.RuneCountInString(d.Text)
		}
		for _, c := range d.Chunks {
			e.asks.Characters += utf8.RuneCountInString(c.In(d.Text))
		}
		if e.forecaster == nil {
			continue
		}
		passages := d.Passages()
		if e.asks.First == nil {
			e.asks.First = passages[:min(len(passages), firstPassages)]
		}
		f, err := e.forecaster.ForecastPassages(passages)
		if err != nil {
			return e.named(err)
		}
		e.asks.Forecast.Add(f)
	}
	return nil
}

// checkNames reports a block whose additions would replace metadata of the source.
func (all Enrichers) checkNames(meta sdk.Meta) error {
	for _, e := range all {
		if _, taken := meta[e.stage.Name]; taken && !e.stage.Lexical {
			return fmt.Errorf("enrich.%s: with lexical = false additions are kept as metadata under the block's name, and the source has a column %q; give the block another name", e.stage.Name, e.stage.Name)
		}
	}
	return nil
}

// named adds the enricher's name to an error, unless its process has done so.
func (e *enricher) named(err error) error {
	if by := "enrich." + e.stage.Name + ": "; !strings.HasPrefix(err.Error(), by) {
		return fmt.Errorf("%s%w", by, err)
	}
	return err
}

// unenriched returns how many passages of a document lack an addition, and the number and the error
// of the first.
func (all Enrichers) unenriched(d generation.Document, added []additions) (count, first int, why error) {
	for i := range d.Chunks {
		for n, a := range added {
			if a.failed[i] == nil {
				continue
			}
			if count++; why == nil {
				first, why = i, all[n].named(a.failed[i])
			}
			break
		}
	}
	return count, first, why
}

// group is a run of documents that enrichers work on together.
type group struct {
	documents []generation.Document
	passages  int
	bytes     int           // of their texts
	room      int64         // its share of generation.BatchBytes
	made      [][]additions // by enricher, then by document
	err       error
	done      chan struct{}
}

// start lets all enrichers work on a group concurrently. Each enricher starts once it has begun with the group
// before. begun has a channel for each enricher, closed when the enricher begins; start replaces these
// channels by the group's own. An enricher that cannot continue calls end.
func (g *group) start(ctx, ended context.Context, enrichers Enrichers, begun []chan struct{}, end context.CancelCauseFunc) {
	g.made, g.done = make([][]additions, len(enrichers)), make(chan struct{})
	var all errgroup.Group
	for i, e := range enrichers {
		now := make(chan struct{})
		t := turn{before: begun[i], taken: sync.OnceFunc(func() { close(now) }), ended: ended, end: end}
		begun[i] = now
		all.Go(func() (err error) {
			g.made[i], err = e.enrich(ctx, t, g.documents)
			return err
		})
	}
	go func() {
		defer close(g.done)
		g.err = all.Wait()
	}()
}

// turn makes an enricher begin with groups in the order of documents. After the build has ended, the enricher
// begins with no group.
type turn struct {
	before <-chan struct{} // closed once the enricher has begun with the group before; nil: there is none
	taken  func()          // says that the enricher has begun; may be called again
	ended  context.Context // done once the build has ended; its cause says why
	end    context.CancelCauseFunc
}

// acquire waits for the turn and for a slot, which the caller then holds.
func (t turn) acquire(ctx context.Context, slots chan struct{}) error {
	if t.before != nil {
		<-t.before // does not block for long, even if the build ends
	}
	select {
	case slots <- struct{}{}:
	case <-t.ended.Done():
		return context.Cause(t.ended)
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.ended.Err() != nil {
		<-slots
		return context.Cause(t.ended)
	}
	t.taken()
	return nil
}

func (g *group) each(f func(generation.Document, []additions) error) error {
	for i, d := range g.documents {
		added := make([]additions, len(g.made))
		for n := range g.made {
			added[n] = g.made[n][i]
		}
		if err := f(d, added); err != nil {
			return err
		}
	}
	return nil
}
