package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/relevance"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// Item is what a pipeline answers.
type Item struct {
	ID    string // empty: its number among the items, from 1
	Text  string // UTF-8, at most source.MaxRow bytes
	Label string // that is expected; empty: not known
	Meta  sdk.Meta
	Trace sdk.Trace // that it is a part of, such as sdk.TraceOf a context; zero: none
}

// Result is what became of an item, as a line of the JSONL that racflow run writes.
type Result = result.Result

// Candidate is an entry that was found for an item.
type Candidate = result.Candidate

// Row is the item as a row of an input: it checks what a reader of rows checks. A bad item fails alone.
func (i Item) Row(line int) source.Row {
	row := source.Row{Line: line, ID: i.ID, Text: i.Text, Label: i.Label, Meta: i.Meta, Trace: i.Trace}
	switch {
	case strings.TrimSpace(i.Text) == "":
		row.Err = errors.New("the text is empty")
	case len(i.Text) > source.MaxRow:
		row.Err = fmt.Errorf("the text is longer than %d bytes", source.MaxRow)
	case !utf8.ValidString(i.Text):
		row.Err = errors.New("the text is not UTF-8")
	}
	return row
}

// Run takes items through the pipeline, and yields results in their order, as they
// come. nil items are those of Options.Input or the file. An item that fails is a
// Result with Error set. The error that is yielded, last and with no result, says
// why the run ended early; every result before it is complete.
//
// Items are taken ahead of their results, by another goroutine. To break off ends
// what is under way.
func (p *Pipeline) Run(ctx context.Context, items iter.Seq[Item]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		results := make(chan Result)
		ended := make(chan error, 1)
		go func() {
			defer close(results)
			ended <- p.run(ctx, items, results)
		}()
		for r := range results {
			if !yield(r, nil) {
				cancel()
				for range results { // until nothing is under way any more
				}
				return
			}
		}
		if err := <-ended; err != nil {
			yield(Result{}, err)
		}
	}
}

func (p *Pipeline) run(ctx context.Context, items iter.Seq[Item], results chan<- Result) error {
	send := func(batch []outcome.Result) error {
		for _, one := range batch {
			select {
			case results <- result.Of(one, p.chosen.Cost):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	var totals outcome.Totals
	var err error
	if items == nil {
		var out *Outcome
		if out, err = p.Work(ctx, send, nil); out != nil {
			totals = out.Totals
		}
	} else {
		var r *run.Run
		if r, err = p.Start(ctx); err == nil {
			totals, err = r.Items(ctx, each(ctx, items), p.Counting(), send)
		}
	}
	if err == nil && totals.Left > 0 { // the other voters have no answers
		err = fmt.Errorf("%d items are not answered: %w", totals.Left, totals.Missing[0].First)
	}
	return err
}

// each reads items as rows are read. The items may be waiting for something when
// ctx ends: they are asked from a goroutine that nobody waits for.
func each(ctx context.Context, items iter.Seq[Item]) func() (source.Row, error) {
	rows := make(chan source.Row)
	go func() {
		defer close(rows)
		line := 0
		for item := range items {
			line++
			select {
			case rows <- item.Row(line):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() (source.Row, error) {
		select {
		case row, ok := <-rows:
			if !ok {
				return row, io.EOF
			}
			return row, nil
		case <-ctx.Done():
			return source.Row{}, ctx.Err()
		}
	}
}

// Answer takes one item through the pipeline. Where the item fails, the error is
// its Result's.
func (p *Pipeline) Answer(ctx context.Context, item Item) (Result, error) {
	one, err := p.AnswerRow(ctx, item.Row(1))
	if err != nil {
		return Result{}, err
	}
	r := result.Of(one, p.chosen.Cost)
	if r.Error != nil {
		return r, r.Error
	}
	return r, nil
}

// AnswerRow is Answer with all that the run knows of the item.
func (p *Pipeline) AnswerRow(ctx context.Context, row source.Row) (outcome.Result, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return outcome.Result{}, err
	}
	p.cover(r)
	var answered outcome.Result
	given := false
	totals, err := r.Items(ctx, func() (source.Row, error) {
		if given {
			return source.Row{}, io.EOF
		}
		given = true
		return row, nil
	}, p.Counting(), func(batch []outcome.Result) error {
		if len(batch) > 0 { // else the run breaks off
			answered = batch[0]
		}
		return nil
	})
	if err == nil && totals.Left > 0 { // the other voters have no answer
		err = totals.Missing[0].First
	}
	return answered, err
}

// Retrieve returns what the last retrieve or rerank stage leaves for an item, best
// first. No voter is asked.
func (p *Pipeline) Retrieve(ctx context.Context, item Item) ([]Candidate, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.Found(ctx, item.Row(1))
	if err != nil {
		return nil, err
	}
	return result.Candidates(found), nil
}

// Around returns a candidate that was found with the text of up to n chunks before and
// after it in its document; a row as it is.
func (p *Pipeline) Around(ctx context.Context, c sdk.Candidate, n int) (sdk.Candidate, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return c, err
	}
	return r.Around(ctx, c, n)
}

// Judge returns the words of an item that tell what was found for it apart, and where
// nothing but a search was asked, whether that is likely to answer it (package relevance).
// It takes a result with its lists (Options.Lists).
func (p *Pipeline) Judge(r outcome.Result) (*relevance.Terms, relevance.Judgement) {
	unknown := relevance.Judgement{Probability: math.NaN()}
	block := p.searched()
	if block == nil {
		return relevance.TermsOf(r.Text, "", nil), unknown
	}
	widest := r.Candidates
	for _, l := range r.Lists {
		if len(l.Candidates) > len(widest) {
			widest = l.Candidates
		}
	}
	terms := relevance.TermsOf(r.Text+" "+r.Answer, block.Analyzer, widest)
	if !r.RetrievalOnly {
		return terms, unknown
	}
	return terms, terms.Judge(block.Embed.Use, r.Candidates)
}
