package docexpand

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
	"github.com/racflow/racflow/sdk"
)

const maxDocuments = 8 // worked on at a time

// Enrich implements sdk.Enricher.
func (e *enricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return e.CollectAdditions(ctx, "", passages)
}

// CollectAdditions implements sdk.EnrichCollector.
func (e *enricher) CollectAdditions(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	return chatmodel.Later(ctx, e.Model, handle, func(ctx context.Context) ([]sdk.Addition, error) { return e.enrich(ctx, passages) })
}

func (e *enricher) enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	w := &work{enricher: e, additions: make([]sdk.Addition, len(passages))}
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

// work is one call of Enrich.
type work struct {
	*enricher
	additions []sdk.Addition
	failed    api.Failed
}

// passage is a text with the rows that it is the text of.
type passage struct {
	title, text string
	rows        []int
	key         sdk.Key // of its terms
}

// document gets the terms of the passages in the rows from and up to to, which are of
// one document.
func (w *work) document(ctx context.Context, passages []sdk.Passage, from, to int) {
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
	var calls errgroup.Group // without a context: answers to other requests are still cached
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

// distinct returns the passages of a document that differ.
func (w *work) distinct(passages []sdk.Passage, from, to int) (distinct []*passage) {
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
		p.key = w.Key(question, "terms "+Revision, fmt.Sprint(w.config.Pack))
		known[text], distinct = p, append(distinct, p)
	}
	return distinct
}

func (w *work) fail(err error, passages ...*passage) {
	for _, p := range passages {
		w.failed.Add(err, p.rows...)
	}
}

// take gives a passage its terms.
func (w *work) take(p *passage, terms []string) {
	for _, row := range p.rows {
		w.additions[row].Terms = slices.Clone(terms)
	}
}

// recall takes cached terms and returns the other passages.
func (w *work) recall(ctx context.Context, passages []*passage) (missing []*passage, err error) {
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
		w.take(p, terms)
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

// together names the answer to a question about several passages.
func together(passages []*passage) sdk.Key {
	parts := []string{"together"}
	for _, p := range passages {
		parts = append(parts, string(p.key[:]))
	}
	return sdk.KeyOf(parts...)
}

// ask gets the terms of passages with one request, and those that its answer lacks with
// a request each.
func (w *work) ask(ctx context.Context, passages []*passage) {
	leave, err := w.Turn(ctx, keys(passages)...)
	if err != nil {
		w.fail(err, passages...)
		return
	}
	defer leave()
	missing, err := w.recall(ctx, passages) // an equal passage may have been asked about
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

// askTogether returns the passages whose terms the answer lacks.
func (w *work) askTogether(ctx context.Context, passages []*passage) (again []*passage, err error) {
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
		return passages, nil // one of them may be to blame, or they are too many
	}
	return again, err
}

func (w *work) askAlone(ctx context.Context, p *passage) error {
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

// store gives passages their terms and caches them.
func (w *work) store(ctx context.Context, passages []*passage, terms [][]string) {
	values := make([][]byte, len(passages))
	for i, p := range passages {
		w.take(p, terms[i])
		values[i] = api.Value(terms[i])
	}
	w.CachePut(ctx, keys(passages), values)
}
