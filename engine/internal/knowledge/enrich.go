package knowledge

import (
	"bytes"
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

// This file lets the enrichers of a knowledge add to the passages of its
// documents: context, which says where a passage stands, and terms.
//
// Neither touches the text of an entry. They go into its context, the source's own
// first, and the text is embedded between them; each enrich block says whether its
// additions are searched by BM25 (if not, they are metadata under its name) and
// whether they are embedded.
//
// Enrichers get whole documents, do not see each other's additions, and work at the
// same time; those that call services get one document per call and as many calls as
// their limit lets through. The order of documents is kept: those that are ready
// before their turn wait. Up to four times as many as are worked on are held, fewer
// where their texts are long.
//
// Where one asks a service in batches (batch = true), they get up to 50,000 passages or 32 MiB of
// texts together, and four times that is held: the service takes hours for a batch, however
// much it holds. The others get these in parts then.
//
// A passage whose addition fails alone stays unenriched. One build asks
// about it once, however often it comes by. A service that is down, or a budget that is
// spent, ends the build (EndedError).
//
// An enricher stands for a block; enrich_ask.go takes documents through them in groups and asks for the additions of each.

// maxContext is the most bytes of an entry's context that every store takes. A
// longer one is cut after its last whole word, the terms first.
const maxContext = 60_000

// Add puts what enrichers add to the passages of a document into its entries. It
// returns the contexts that are embedded in place of theirs; nil where nothing
// enriches.
func (all Enrichers) Add(entries []sdk.Entry, added []Additions) (contexts []string) {
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

// parts are those of a context.
type parts struct{ lines, terms []string }

func (p *parts) add(a sdk.Addition) {
	p.lines = append(p.lines[:len(p.lines):len(p.lines)], a.Context)
	p.terms = append(p.terms, a.Terms...)
}

func (p *parts) join() string { return bounded(sdk.JoinContext(p.lines, p.terms)) }

// with adds to metadata, under the name of its block, what is not searched.
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

// bounded cuts a context to what stores take.
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

// Enrichers are those of a knowledge, in the order of their blocks. They remember what
// failed, so they serve one build, with all its tries.
type Enrichers []*enricher

// enricher adds to passages what one enrich block finds.
type enricher struct {
	stage   *pipeline.Stage
	process generation.Enricher // nil: it is not asked, and adds nothing
	slots   chan struct{}       // of calls under way
	later   *generation.LaterResults

	mu     sync.Mutex
	failed map[string]failure // by the document's id
	first  error              // of failed: there may be as many as passages
	asks   Asks               // of one that is not asked

	forecaster sdk.EnrichForecaster // of one that is not asked; nil: it does not say
}

// Forecasters say what stages would take that are not asked.
type Forecasters map[*pipeline.Stage]sdk.EnrichForecaster

// NewEnrichers makes the enrichers of a block of what generation.Start has started; nil asks none
// of them, and counts what they would be asked.
func NewEnrichers(block *pipeline.Knowledge, processes []generation.Enricher, later *generation.LaterResults) Enrichers {
	var all Enrichers
	if later == nil {
		later = &generation.LaterResults{}
	}
	for i, s := range block.Enrichers() {
		e := &enricher{stage: s, slots: make(chan struct{}, slotsOf(s)), failed: map[string]failure{}, asks: Asks{Stage: s}, later: later}
		if processes != nil {
			e.process = processes[i]
		}
		all = append(all, e)
	}
	return all
}

// Foresee has the enrichers that are not asked say what they would take.
func (all Enrichers) Foresee(by Forecasters) Enrichers {
	for _, e := range all {
		if e.forecaster = by[e.stage]; e.forecaster != nil {
			e.asks.Forecast = &sdk.Forecast{}
		}
	}
	return all
}

// slotsOf is how many calls of an enrich stage are under way at a time.
func slotsOf(s *pipeline.Stage) int {
	switch {
	case s.Workers > 0:
		return s.Workers
	case !s.Info.Network:
		return 1
	}
	return min(s.Concurrency(), wire.Window)
}

// Asks is what an enrich stage that calls a service would be asked.
type Asks struct {
	Stage      *pipeline.Stage
	Passages   int
	Characters int           // of the passages, each with its document where the stage shows that
	Forecast   *sdk.Forecast // what it says of these; nil: it says nothing
}

// Asks returns what services would be asked about the documents that came by.
func (all Enrichers) Asks() (asks []Asks) {
	for _, e := range all {
		if e.process == nil && e.stage.Info.Network {
			asks = append(asks, e.asks)
		}
	}
	return asks
}

// count notes what a service would be asked.
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
		f, err := e.forecaster.ForecastPassages(d.Passages())
		if err != nil {
			return e.named(err)
		}
		e.asks.Forecast.Add(f)
	}
	return nil
}

// CheckNames reports a block whose additions would take the place of metadata that
// the source has.
func (all Enrichers) CheckNames(meta sdk.Meta) error {
	for _, e := range all {
		if _, taken := meta[e.stage.Name]; taken && !e.stage.Lexical {
			return fmt.Errorf("enrich.%s: with lexical = false additions are kept as metadata under the block's name, and the source has a column %q; give the block another name", e.stage.Name, e.stage.Name)
		}
	}
	return nil
}

// named names the enricher in an error, unless its process has.
func (e *enricher) named(err error) error {
	if by := "enrich." + e.stage.Name + ": "; !strings.HasPrefix(err.Error(), by) {
		return fmt.Errorf("%s%w", by, err)
	}
	return err
}

// failure is the passages of a document of which an enricher has no addition, though
// it was asked. A build that comes by them once more, since the embedder has to learn
// from all entries first or since the store's process ended, does not ask about them
// again; the next build does.
type failure struct {
	hash    []byte // of the document's content
	numbers []int  // ascending
}

// remember remembers the passages of a document that failed.
func (e *enricher) remember(d generation.Document, failed map[int]error) {
	if len(failed) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	numbers := slices.Sorted(maps.Keys(failed))
	if e.first == nil {
		e.first = failed[numbers[0]]
	}
	e.failed[d.ID] = failure{d.Hash, numbers}
}

// remembered returns the numbers of a document's passages that failed, ascending, and
// the error to report for them.
func (e *enricher) remembered(d generation.Document) (numbers []int, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.failed[d.ID]; bytes.Equal(f.hash, d.Hash) {
		return f.numbers, e.first
	}
	return nil, nil
}

// Unenriched returns how many passages of a document lack an addition, and the number
// and the error of the first.
func (all Enrichers) Unenriched(d generation.Document, added []Additions) (count, first int, why error) {
	for n, a := range added {
		all[n].remember(d, a.failed)
	}
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

// group is what one call of an enricher is about.
type group struct {
	documents []generation.Document
	passages  int
	bytes     int           // of their texts
	room      int64         // that it takes
	made      [][]Additions // by enricher, then by document
	err       error
	done      chan struct{}
}

// start lets all enrichers work on a group at the same time, each once it has begun
// with the group before. It replaces begun, which has a channel for each enricher
// that is closed then. An enricher that cannot continue calls end.
func (g *group) start(ctx, ended context.Context, enrichers Enrichers, begun []chan struct{}, end context.CancelCauseFunc) {
	g.made, g.done = make([][]Additions, len(enrichers)), make(chan struct{})
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

// turn is when an enricher begins with a group: in the order of documents, and not
// once the build has ended.
type turn struct {
	before <-chan struct{} // closed once it has begun with the group before; nil: there is none
	taken  func()          // it has begun; may be called again
	ended  context.Context // its cause says why nothing is begun any more
	end    context.CancelCauseFunc
}

// take waits for the turn and for one of the slots, which the caller then has.
func (t turn) take(ctx context.Context, slots chan struct{}) error {
	if t.before != nil {
		<-t.before // it is soon over, whatever ends
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

// each calls f with the documents of a group.
func (g *group) each(f func(generation.Document, []Additions) error) error {
	for i, d := range g.documents {
		added := make([]Additions, len(g.made))
		for n := range g.made {
			added[n] = g.made[n][i]
		}
		if err := f(d, added); err != nil {
			return err
		}
	}
	return nil
}
