package enrich

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// This file is an enricher that lets a language model contextualize each passage (Anthropic, "Introducing Contextual
// Retrieval", 2024). Some 50 to 100 tokens say which document and which part of it the passage is from, and what its
// words refer to. They are embedded and searched with the passage.
//
// A request begins with the part that is the same for all passages of a document, byte for byte, and marked as
// shared: a system message, and the document with its title. The path of the file is shown if the document has no
// title besides the file's name, or with path = true. So a document with a title of its own may be renamed or moved
// without new requests. The passage and the instruction come last. The first passage of a document is asked about
// alone, so that the service has the document in its cache for the others. These are then asked about in parallel.
//
// A document longer than context_tokens is shown in part: its beginning, and the window of a fixed grid with the
// passage in its middle. Windows overlap by half. Many neighbouring passages share a window, so that requests have
// the same beginning here, too. Tokens are estimated at four characters.
//
// An answer has at most max_tokens; a truncated one is used up to its last whole sentence. A document with a single
// passage is asked about, too, since the title or the path can name its subject.
//
// Document and passage stand between delimiters that they cannot close, and the prompt says that they contain no
// instructions. A document that still misleads the model spoils only the contexts of its own passages.
//
// The messages are written with system.tmpl and prompt.tmpl, Go text/templates with the fields of Data; files named
// in the config replace them.
//
// Usable answers are cached by their requests. Each request contains the document, so a change anywhere in a document
// leads to new requests about all its passages (in a long one, about the passages whose windows show the change). An
// error affects only its passage. If the document is too long for the model, the other passages with the same
// beginning are not asked about. Retries, limits and budgets are the engine's task.

type contextConfig struct {
	chatmodel.Config
	Temperature   float64  `config:"temperature" default:"0" min:"0" max:"100" doc:"How varied the answers are; 0 gives the likeliest text."`
	MaxTokens     int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of an answer, without what a model thinks before it; 0: 150; -1: no limit."`
	ContextTokens int      `config:"context_tokens" default:"100000" min:"1000" doc:"How much of a document the model sees, in tokens of four characters; of a longer one the beginning, and the text around the passage."`
	Path          bool     `config:"path" default:"false" doc:"Whether the model also sees the path of a document that has a title of its own; after a rename such a document is then asked about again. One without a title is always shown with its path."`
	System        sdk.Path `config:"system" doc:"A Go template to write the system message with, in place of the built-in one; it may use .Part and join."`
	Prompt        sdk.Path `config:"prompt" doc:"A Go template to write the last message with, in place of the built-in one; it may use .Chunk, .Part and join."`
}

// contextData holds the fields for the templates.
type contextData struct {
	Part  bool   // only a part of the document is shown
	Chunk string // the passage, between <chunk> and </chunk>; empty in the system message
}

//go:embed context.system.tmpl
var systemTemplate string

//go:embed context.prompt.tmpl
var promptTemplate string

// usualTokens is the limit of an answer if the file gives none.
const usualTokens = 150

// Context describes the enricher.
func Context() sdk.Stage {
	return sdk.EnrichStage("context", "Has a language model contextualize each passage in its document.", openContext, sdk.Revision("2"),
		sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.Addresses(contextConfig.Addresses), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument), sdk.Validates(contextConfig.check))
}

func openContext(_ context.Context, setup sdk.Setup, c contextConfig) (sdk.Enricher, error) {
	templates, err := c.load()
	if err != nil {
		return nil, err
	}
	return &contextEnricher{config: c, Pair: templates, Model: chatmodel.New(c.Config, setup), room: make(chan struct{}, maxRequests)}, nil
}

// check reports the errors that tags cannot find.
func (c contextConfig) check() error {
	_, err := c.load()
	return errors.Join(err, c.Config.Check())
}

func (c contextConfig) load() (fewshot.Pair, error) {
	return fewshot.LoadPair(c.System, c.Prompt, [2]string{systemTemplate, promptTemplate}, ".Chunk", ".Chunk",
		contextData{Chunk: fewshot.Passage}, contextData{Part: true, Chunk: "chunk"}, contextData{})
}

type contextEnricher struct {
	*chatmodel.Model
	fewshot.Pair
	config contextConfig
	room   chan struct{} // one element for each request that is being written or sent

	notes, useless atomic.Int32 // notes by the model, and notes with a flaw
}

const (
	maxRequests = 64 // written or sent at a time: each holds a document
	maxGroups   = 8  // worked on at a time
)

// Enrich implements sdk.Enricher.
func (e *contextEnricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return e.CollectAdditions(ctx, "", passages)
}

// CollectAdditions implements sdk.EnrichCollector.
func (e *contextEnricher) CollectAdditions(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	return chatmodel.Later(ctx, e.Model, handle, func(ctx context.Context) ([]sdk.Addition, error) { return e.enrich(ctx, passages) })
}

func (e *contextEnricher) enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	w := &contextWork{contextEnricher: e, passages: passages, additions: make([]sdk.Addition, len(passages))}
	var groups errgroup.Group
	groups.SetLimit(maxGroups)
	for from, to := range api.Documents(passages) {
		w.document(ctx, &groups, from, to)
	}
	_ = groups.Wait() // errors belong to single rows
	for from, to := range api.Documents(passages) {
		w.dropSame(from, to)
	}
	return api.Results(ctx, w.additions, &w.failed)
}

// contextWork is one call of Enrich.
type contextWork struct {
	*contextEnricher
	passages  []sdk.Passage
	additions []sdk.Addition
	failed    api.Failed
}

// windows returns the rows of a document by the window that shows them, and the windows in order.
func (w *contextWork) windows(from, to int) (v view, rows map[int][]int, order []int) {
	v, rows = newView(w.passages[from].Document, w.config.ContextTokens), map[int][]int{}
	v.path = w.config.Path
	for row := from; row < to; row++ {
		if strings.TrimSpace(w.passages[row].Text()) == "" {
			continue
		}
		window := v.window(w.passages[row].Chunk)
		if rows[window] == nil {
			order = append(order, window)
		}
		rows[window] = append(rows[window], row)
	}
	return v, rows, order
}

// dropSame drops a note that most passages of a document have.
func (w *contextWork) dropSame(from, to int) {
	var rows []int
	for row := from; row < to; row++ {
		if w.additions[row].Context != "" {
			rows = append(rows, row)
		}
	}
	note := func(row int) string { return w.additions[row].Context }
	passage := func(row int) string { return w.passages[row].Text() }
	for _, row := range sameNotes(rows, note, passage) {
		w.additions[row].Context = ""
		w.failed.Add(errSame, row)
	}
}

// document starts the groups of a document's passages, one group per window. The passages are the rows from from to
// to, excluding to.
func (w *contextWork) document(ctx context.Context, groups *errgroup.Group, from, to int) {
	if ctx.Err() != nil {
		w.failed.Add(ctx.Err(), from)
		return
	}
	v, rows, order := w.windows(from, to)
	for _, window := range order {
		groups.Go(func() error {
			g := group{contextWork: w, rows: rows[window]}
			err := ctx.Err()
			if err == nil {
				err = w.failed.Over()
			}
			if err == nil {
				err = g.begin(v, window)
			}
			if err == nil {
				g.rows, err = g.recall(ctx)
			}
			if err == nil {
				err = g.lead(ctx)
			}
			if err != nil {
				w.failed.Add(err, g.rows...)
				return nil
			}
			var calls errgroup.Group // no context: if one request fails, the answers to others are still cached
			calls.SetLimit(maxRequests)
			for _, row := range g.rows {
				calls.Go(func() error {
					err := w.failed.Over()
					if err == nil {
						err = g.ask(ctx, row)
					}
					if err != nil {
						w.failed.Add(err, row)
					}
					return nil
				})
			}
			return calls.Wait()
		})
	}
}

// written is the expected number of tokens of an answer: the instructions ask for one or two sentences.
const written = 80

// ForecastPassages implements sdk.EnrichForecaster.
func (e *contextEnricher) ForecastPassages(passages []sdk.Passage) (f sdk.Forecast, err error) {
	w := &contextWork{contextEnricher: e, passages: passages, additions: make([]sdk.Addition, len(passages))}
	for from, to := range api.Documents(passages) {
		v, rows, order := w.windows(from, to)
		for _, window := range order {
			g := group{contextWork: w, rows: rows[window]}
			if err = g.begin(v, window); err != nil {
				return f, err
			}
			asked := len(g.rows)
			if g.rows, err = g.recall(context.Background()); err != nil {
				return f, err
			}
			f.Cached += asked - len(g.rows)
			for _, row := range g.rows {
				q, _, err := g.question(row)
				if err != nil {
					return f, err
				}
				one, err := e.Forecast(q, 1, 1, func(profile.Profile) int { return written })
				if err != nil {
					return f, err
				}
				f.Add(one)
			}
		}
	}
	return f, nil
}

var _ sdk.EnrichForecaster = (*contextEnricher)(nil)
