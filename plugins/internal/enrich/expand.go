package enrich

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// This file lets a language model write terms for each passage, for the enrichers keywords and questions. Terms are
// words or sentences that people may search for if they want the passage (document expansion).
//
// A request contains a passage and the document's title, never the document. With pack it contains several numbered
// passages of one document. batch_size passages of a document are processed at a time. The passages of a pack are
// from one batch. If the answer lacks a passage, the model is asked about it alone.
//
// Models give lists in many forms, whatever the prompt asks for. For a single passage all of these are read: lists
// with numbers or bullets, lines, commas, JSON; inside a code fence, after an introduction, or truncated. For several
// passages, models return the requested object. Quotes and emphasis are removed from terms. Of terms that differ only
// in case one is kept. A passage gets at most n terms, none longer than its kind allows.
//
// The cache key of a passage's terms consists of the request about this passage alone, and of pack. It ignores the
// other passages of the pack. So after a change in a document, only changed passages are asked about.
//
// Titles and passages stand between delimiters that they cannot close. A passage that still misleads the model spoils
// its own terms; with pack, it also spoils the terms of the other passages in the pack. An error affects only its
// passage. Retries, limits and budgets are the engine's task.

// ExpandConfig is embedded in the configs of the enrichers.
type ExpandConfig struct {
	chatmodel.Config
	Temperature float64  `config:"temperature" default:"0" min:"0" max:"100" doc:"How varied the answers are; 0 gives the likeliest text."`
	MaxTokens   int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of the answer for one passage, without what a model thinks before it; 0: enough for n; -1: no limit."`
	BatchSize   int      `config:"batch_size" affects_output:"false" default:"8" min:"1" doc:"How many passages of a document are asked about at a time."`
	Pack        int      `config:"pack" default:"1" min:"1" max:"100" doc:"How many passages of a batch are asked about in one request."`
	System      sdk.Path `config:"system" doc:"A Go template to write the system message with, in place of the built-in one; it may use .N and join."`
	Prompt      sdk.Path `config:"prompt" doc:"A Go template to write the user's message with, in place of the built-in one; it may use .N, .Title, .Texts, .Packed and join."`
}

// expansion holds the differences between the enrichers.
type expansion struct {
	Name           string // of the terms; a model may write it before them
	System, Prompt string // the built-in templates
	Sentences      bool   // terms are questions, one on a line; otherwise a line may hold several, with commas
	Tokens         int    // generous number of tokens of a term
	Characters     int    // of the longest term
}

// expandData holds the fields for the templates.
type expandData struct {
	N      int      // number of terms of a passage
	Title  string   // of the document, between <title> and </title>; empty: it has none. Always empty in the system message
	Texts  []string // the passages: one between <chunk> and </chunk>, or several between <chunk 1> and </chunk 1> and so on. None in the system message
	Packed bool     // the answer should be a JSON object from the number of a passage to a list of its terms
}

const (
	titleTag = "title"
	maxTitle = 300 // characters
)

var expandDelimiters = syntax.NewDelimiters(titleTag, chunkTag)

// New opens an enricher that adds n terms of a kind to each passage. The config must be valid (checkExpansion).
func New(k expansion, c ExpandConfig, n int, setup sdk.Setup) (sdk.Enricher, error) {
	templates, err := load(k, c, n)
	if err != nil {
		return nil, err
	}
	return &expandEnricher{kind: k, config: c, n: n, Pair: templates, Model: chatmodel.New(c.Config, setup)}, nil
}

// checkExpansion reports the errors that tags cannot find, as sdk.ArgumentErrors.
func checkExpansion(k expansion, c ExpandConfig, n int) error {
	var errs api.Errors
	errs.Require(c.Pack <= c.BatchSize, "pack", "it must be at most batch_size: the passages of a request are of one batch")
	_, err := load(k, c, n)
	return errors.Join(errs.Err(), err, c.Config.Check())
}

func load(k expansion, c ExpandConfig, n int) (fewshot.Pair, error) {
	return fewshot.LoadPair(c.System, c.Prompt, [2]string{k.System, k.Prompt}, ".Texts", `join .Texts "\n"`,
		expandData{N: n, Texts: []string{fewshot.Passage}}, expandData{}, expandData{N: n, Title: "title", Texts: []string{"text", "text"}, Packed: true})
}

type expandEnricher struct {
	*chatmodel.Model
	fewshot.Pair
	kind   expansion
	config ExpandConfig
	n      int
}

// expandRevision is the revision of the stages that ask for terms. Raise it whenever the code asks or reads
// answers differently. A changed template needs no new revision.
const expandRevision = "1"

// question asks for the terms of texts. With packed, it asks for the terms of each text separately.
func (e *expandEnricher) question(title string, texts []string, packed bool) (dialect.Request, error) {
	d := expandData{N: e.n, Packed: packed}
	system, err := e.System.Write(d)
	if err != nil {
		return dialect.Request{}, err
	}
	if title != "" {
		d.Title = expandDelimiters.Wrap(titleTag, title)
	}
	for i, text := range texts {
		tag := chunkTag
		if packed {
			tag = fmt.Sprint(chunkTag, " ", i+1)
		}
		d.Texts = append(d.Texts, expandDelimiters.Wrap(tag, text))
	}
	user, err := e.Prompt.Write(d)
	r := e.Request(e.config.MaxTokens, e.n*e.kind.Tokens+40)
	r.MaxTokens *= len(texts)
	r.Temperature, r.Messages = &e.config.Temperature, []sdk.Message{
		{Role: sdk.MessageSystem, Text: system, Shared: true},
		{Role: sdk.MessageUser, Text: user},
	}
	return r, err
}

const maxDocuments = 8 // worked on at a time

// Enrich implements sdk.Enricher.
func (e *expandEnricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return e.CollectAdditions(ctx, "", passages)
}

// CollectAdditions implements sdk.EnrichCollector.
func (e *expandEnricher) CollectAdditions(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	return chatmodel.Later(ctx, e.Model, handle, func(ctx context.Context) ([]sdk.Addition, error) { return e.enrich(ctx, passages) })
}

func (e *expandEnricher) enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	w := &expandWork{expandEnricher: e, additions: make([]sdk.Addition, len(passages))}
	var groups errgroup.Group
	groups.SetLimit(maxDocuments)
	for from, to := range api.Documents(passages) {
		groups.Go(func() error {
			w.document(ctx, passages, from, to)
			return nil
		})
	}
	_ = groups.Wait()
	return api.Results(ctx, w.additions, &w.failed)
}

// expandWork is one call of Enrich.
type expandWork struct {
	*expandEnricher
	additions []sdk.Addition
	failed    api.Failed
}

// passage is a text with all rows that have this text.
type passage struct {
	title, text string
	rows        []int
	key         sdk.Key // of its terms
}

// document adds terms to passages of one document: the rows from from to to, excluding to.
func (w *expandWork) document(ctx context.Context, passages []sdk.Passage, from, to int) {
	if ctx.Err() != nil {
		w.fail(ctx.Err(), &passage{rows: []int{from}})
		return
	}
	distinct := w.distinct(passages, from, to)
	missing, err := w.recall(ctx, distinct)
	if err != nil {
		w.fail(err, distinct...)
		return
	}
	var calls errgroup.Group // no context: if one request fails, the answers to others are still cached
	calls.SetLimit((w.config.BatchSize + w.config.Pack - 1) / w.config.Pack)
	for batch := range slices.Chunk(missing, w.config.BatchSize) {
		for pack := range slices.Chunk(batch, w.config.Pack) {
			calls.Go(func() error {
				if err := w.failed.Over(); err != nil {
					w.fail(err, pack...)
				} else {
					w.ask(ctx, pack)
				}
				return nil
			})
		}
	}
	_ = calls.Wait()
}

// distinct returns the different passages of a document.
func (w *expandWork) distinct(passages []sdk.Passage, from, to int) (distinct []*passage) {
	title, _ := passages[from].Document.Meta["title"].(string)
	title = fewshot.Clip(fewshot.OneLine(title), maxTitle)
	known := map[string]*passage{}
	for row := from; row < to; row++ {
		text := passages[row].Text()
		if strings.TrimSpace(text) == "" {
			continue
		}
		if p := known[text]; p != nil {
			p.rows = append(p.rows, row)
			continue
		}
		p := &passage{title: title, text: text, rows: []int{row}}
		question, err := w.question(title, []string{text}, false) // not stored: a document may have many
		if err != nil {
			w.fail(err, p)
			continue
		}
		p.key = w.Key(question, "terms "+expandRevision, fmt.Sprint(w.config.Pack))
		known[text], distinct = p, append(distinct, p)
	}
	return distinct
}

func (w *expandWork) fail(err error, passages ...*passage) {
	for _, p := range passages {
		w.failed.Add(err, p.rows...)
	}
}

// addTerms adds terms to a passage.
func (w *expandWork) addTerms(p *passage, terms []string) {
	for _, row := range p.rows {
		w.additions[row].Terms = slices.Clone(terms)
	}
}

// recall uses cached terms and returns the other passages.
func (w *expandWork) recall(ctx context.Context, passages []*passage) (missing []*passage, err error) {
	found, err := w.CacheGet(ctx, keys(passages))
	if err != nil {
		return nil, err
	}
	for i, p := range passages {
		var terms []string
		if found[i] == nil || json.Unmarshal(found[i], &terms) != nil || len(terms) == 0 {
			missing = append(missing, p)
			continue
		}
		w.addTerms(p, terms)
	}
	return missing, nil
}

func keys(passages []*passage) []sdk.Key {
	all := make([]sdk.Key, len(passages))
	for i, p := range passages {
		all[i] = p.key
	}
	return all
}

// together returns the key of the answer about several passages.
func together(passages []*passage) sdk.Key {
	parts := []string{"together"}
	for _, p := range passages {
		parts = append(parts, string(p.key[:]))
	}
	return sdk.KeyOf(parts...)
}

// ask gets the terms of passages with one request. If the answer lacks some, it sends a request for each of these.
func (w *expandWork) ask(ctx context.Context, passages []*passage) {
	leave, err := w.Turn(ctx, keys(passages)...)
	if err != nil {
		w.fail(err, passages...)
		return
	}
	defer leave()
	missing, err := w.recall(ctx, passages) // an equal passage may have been answered meanwhile
	if err != nil {
		w.fail(err, passages...)
		return
	}
	if len(missing) > 1 {
		var again []*passage
		if again, err = w.askTogether(ctx, missing); err != nil {
			w.fail(err, missing...)
			return
		}
		missing = again
	}
	for _, p := range missing {
		if err := w.askAlone(ctx, p); err != nil {
			w.fail(err, p)
		}
	}
}

// askTogether returns the passages that the answer lacks.
func (w *expandWork) askTogether(ctx context.Context, passages []*passage) (again []*passage, err error) {
	texts := make([]string, len(passages))
	for i, p := range passages {
		texts[i] = p.text
	}
	q, err := w.question(passages[0].title, texts, true)
	if err != nil {
		return nil, err
	}
	answered := false
	err = w.Send(api.For(ctx, together(passages)), q, func(reply dialect.Reply, _ dialect.Request) error {
		answered = true
		text, err := reply.Choices[0].Written()
		if err != nil {
			return err
		}
		var found []*passage
		var terms [][]string
		for i, part := range w.kind.packed(text, len(passages)) {
			if part = w.kind.clean(part, w.n); len(part) == 0 {
				again = append(again, passages[i])
				continue
			}
			found, terms = append(found, passages[i]), append(terms, part)
		}
		w.store(ctx, found, terms)
		return nil
	})
	if err != nil && (answered && sdk.CodeOf(err) == sdk.CodeInvalid || api.BadRequest(err)) {
		return passages, nil // one of them may be the cause, or they are too many
	}
	return again, err
}

func (w *expandWork) askAlone(ctx context.Context, p *passage) error {
	q, err := w.question(p.title, []string{p.text}, false)
	if err != nil {
		return err
	}
	return w.Send(api.For(ctx, p.key), q, func(reply dialect.Reply, _ dialect.Request) error {
		r := reply.Choices[0]
		text, err := r.Written()
		if err != nil {
			return err
		}
		terms := w.kind.clean(w.kind.list(text, r.Cut()), w.n)
		switch {
		case len(terms) == 0 && r.Cut():
			return sdk.Invalid(errors.New(dialect.TooLong))
		case len(terms) == 0:
			return sdk.Invalid(fmt.Errorf("the model's answer holds no %s", w.kind.Name))
		}
		w.store(ctx, []*passage{p}, [][]string{terms})
		return nil
	})
}

// store adds terms to passages and caches them.
func (w *expandWork) store(ctx context.Context, passages []*passage, terms [][]string) {
	values := make([][]byte, len(passages))
	for i, p := range passages {
		w.addTerms(p, terms[i])
		values[i] = api.Value(terms[i])
	}
	w.CachePut(ctx, keys(passages), values)
}

// generous is the ratio of expansion.Tokens to the usual number of tokens of a term.
const generous = 3

// ForecastPassages implements sdk.EnrichForecaster.
func (e *expandEnricher) ForecastPassages(passages []sdk.Passage) (f sdk.Forecast, err error) {
	w := &expandWork{expandEnricher: e, additions: make([]sdk.Addition, len(passages))}
	for from, to := range api.Documents(passages) {
		distinct := w.distinct(passages, from, to)
		missing, err := w.recall(context.Background(), distinct)
		if err != nil {
			return f, err
		}
		f.Cached += len(distinct) - len(missing)
		for batch := range slices.Chunk(missing, e.config.BatchSize) {
			for pack := range slices.Chunk(batch, e.config.Pack) {
				one, err := e.forecast(pack)
				if err != nil {
					return f, err
				}
				f.Add(one)
			}
		}
	}
	return f, nil
}

// forecast estimates the tokens and requests for passages that share one request. The upper bound assumes that the
// answer covers none of them, so that a request for each passage follows.
func (e *expandEnricher) forecast(pack []*passage) (f sdk.Forecast, err error) {
	each := e.n * e.kind.Tokens / generous
	if len(pack) > 1 {
		texts := make([]string, len(pack))
		for i, p := range pack {
			texts[i] = p.text
		}
		q, err := e.question(pack[0].title, texts, true)
		if err == nil {
			f, err = e.Forecast(q, 1, 1, func(profile.Profile) int { return each * len(pack) })
		}
		if err != nil {
			return f, err
		}
	}
	for _, p := range pack {
		q, err := e.question(p.title, []string{p.text}, false)
		if err != nil {
			return f, err
		}
		one, err := e.Forecast(q, 1, 1, func(profile.Profile) int { return each })
		if err != nil {
			return f, err
		}
		if len(pack) > 1 {
			one.Requests, one.Likely, one.Answers = 0, sdk.Usage{}, 0
		}
		f.Add(one)
	}
	f.Answers = len(pack)
	return f, nil
}

var _ sdk.EnrichForecaster = (*expandEnricher)(nil)
