package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/support"
)

// batch is a batch under way.
type batch struct {
	face    batchFace
	room    *semaphore.Weighted // in bytes
	lines   chan *line          // in order; closed at the end of the body
	work    sync.WaitGroup
	ended   error // why the body ended early; set before lines is closed
	written int
}

// batchFace defines how an interface of the server reads and answers the lines of a batch.
type batchFace struct {
	// read reads a line, with its number from 1, or the error that replaces the line. It returns a function that
	// answers the line with a value to be written as JSON. content is valid only until read returns.
	read func(content []byte, charset string, line int, err error) func(context.Context) any
	// end is the value of the last line of a batch that ends early.
	end func(*Problem) any
	// refuse returns the handler that answers a batch that cannot be read.
	refuse func(*Problem) http.Handler
}

// lineAnswer answers an item of a batch with a value to be written as JSON.
type lineAnswer func(ctx context.Context, p Pipeline, line int, item Item, err error) any

// itemBatch answers the items of a batch.
func (s *Server) itemBatch(w http.ResponseWriter, r *http.Request, answer lineAnswer) {
	p := s.pipelines.Named(r.PathValue("name"))
	if p == nil {
		unknown(r.PathValue("name")).ServeHTTP(w, r)
		return
	}
	if !p.Status().Ready {
		problemOf(r.Context(), workspace.Result{}, live.ErrStarting).ServeHTTP(w, r)
		return
	}
	s.batch(w, r, batchFace{
		read: func(content []byte, charset string, line int, err error) func(context.Context) any {
			var item Item
			if err == nil {
				err = decode(content, charset, &item)
			}
			return func(ctx context.Context) any { return answer(ctx, p, line, item, err) }
		},
		end: func(p *Problem) any {
			return result.Result{Votes: []result.Vote{}, Error: &result.Failure{Message: "the batch ended early: " + p.Detail}}
		},
		refuse: func(p *Problem) http.Handler { return p },
	})
}

// window limits the bytes of a batch's lines in work at the same time.
const window = 8 << 20

// batch answers the lines of a body in order, while it is still being read.
func (s *Server) batch(w http.ResponseWriter, r *http.Request, face batchFace) {
	body := bufio.NewReaderSize(r.Body, 64<<10)
	if _, err := body.Peek(1); errors.Is(err, rows.ErrEncoding) { // other errors recur at the next read
		face.refuse(unreadableBody(err)).ServeHTTP(w, r)
		return
	}
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // fails only for recorders of tests
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	b := &batch{face: face, room: semaphore.NewWeighted(window), lines: make(chan *line, s.options.Window)}
	_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	b.work.Go(func() { b.read(ctx, body, params["charset"]) })
	w.Header().Set("Content-Type", linesType)
	err := b.write(w, control)
	cancel()
	if err != nil {
		_ = control.SetReadDeadline(time.Now()) // the reader may be waiting for the client
	}
	b.work.Wait() // wait until no line is in work
	if err == nil {
		err = b.ended
	}
	switch {
	case err == nil:
		return
	case b.written == 0 && b.ended != nil:
		face.refuse(unreadableBody(err)).ServeHTTP(w, r)
		return
	}
	panic(http.ErrAbortHandler) // the answer is incomplete, and the client must notice that
}

// line is a line being answered.
type line struct {
	size int64
	done chan any // receives the answer
}

// read starts to answer each line of the body.
func (b *batch) read(ctx context.Context, body *bufio.Reader, charset string) {
	defer close(b.lines)
	in := rows.NewLines(body, '\n')
	for {
		content, err := in.Next()
		content = rows.TrimMark(content)
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, rows.ErrLineTooLong):
		case err != nil:
			b.ended = err
			return
		case len(bytes.TrimSpace(content)) == 0:
			continue
		}
		one := &line{size: int64(len(content)) + 1, done: make(chan any, 1)}
		if b.room.Acquire(ctx, one.size) != nil {
			b.ended = ctx.Err()
			return
		}
		answer := b.face.read(content, charset, in.Line(), err)
		b.work.Go(func() { one.done <- answer(ctx) })
		select {
		case b.lines <- one:
		case <-ctx.Done():
			b.ended = ctx.Err()
			return
		}
	}
}

// write writes answers. Before it waits for the next answer, it flushes the written answers.
func (b *batch) write(w io.Writer, control *http.ResponseController) error {
	out := bufio.NewWriterSize(w, 32<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	flush := func() error {
		if b.written == 0 {
			return nil
		}
		if err := out.Flush(); err != nil {
			return err
		}
		return control.Flush()
	}
	for {
		one, ok, err := next(b.lines, flush)
		if err != nil || !ok && b.ended == nil {
			return errors.Join(err, flush())
		}
		if !ok {
			if b.written > 0 {
				return errors.Join(enc.Encode(b.face.end(unreadableBody(b.ended))), flush())
			}
			return nil
		}
		value, _, err := next(one.done, flush)
		b.room.Release(one.size)
		if err != nil {
			return err
		}
		b.written++
		if err := enc.Encode(value); err != nil {
			return err
		}
	}
}

// next receives from a channel. If it has to wait, it calls flush first.
func next[T any](from <-chan T, flush func() error) (value T, ok bool, err error) {
	select {
	case value, ok = <-from:
		return value, ok, nil
	default:
	}
	if err = flush(); err == nil {
		value, ok = <-from
	}
	return value, ok, err
}

// decode decodes an item. Unknown fields are errors, as in a request for one item.
func decode(content []byte, charset string, item *Item) error {
	at, mistaken := mistake(content, charset)
	if errors.Is(mistaken, errNotUTF8) {
		return fmt.Errorf("the line is no item: column %d: %w", column(content, at), mistaken)
	}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var other *json.UnmarshalTypeError
	switch err := dec.Decode(item); {
	case errors.As(err, &other):
		return fmt.Errorf("the line is no item: it has %s where %s should be", other.Value, cmp.Or(other.Field, "the item"))
	case err == nil && mistaken != nil:
		return errors.New("the line is no item: something follows it; write one JSON object a line")
	case mistaken != nil:
		return fmt.Errorf("the line is no item: column %d: %w", column(content, at), mistaken)
	case err != nil:
		return fmt.Errorf("the line is no item: %w", err)
	}
	return nil
}

func (s *Server) answerLine(ctx context.Context, p Pipeline, line int, one Item, err error) any {
	item, r := one.item(line), workspace.Result{}
	if err == nil {
		r, err = patient(ctx, s, func(ctx context.Context) (workspace.Result, error) { return p.Answer(ctx, item) })
	}
	if err != nil {
		r = workspace.Result{ID: item.ID, Text: item.Text, Expected: item.Label, Votes: []result.Vote{}, Error: failure(err)}
	}
	if r.Error != nil {
		r.Error.Line = line
	}
	return r
}

func (s *Server) retrieveLine(ctx context.Context, p Pipeline, line int, one Item, err error) any {
	item := one.item(line)
	f := found{ID: item.ID, Candidates: []workspace.Candidate{}}
	if err == nil {
		f, err = patient(ctx, s, func(ctx context.Context) (found, error) { return retrieve(ctx, p, item) })
	}
	if err != nil {
		f.Error = failure(err)
		f.Error.Line = line
	}
	return f
}

// failure converts an error to its form in a result.
func failure(err error) *result.Failure {
	var failed *result.Failure
	var stage *outcome.Failure
	switch {
	case errors.As(err, &failed):
		copied := *failed
		return &copied
	case errors.As(err, &stage):
		return &result.Failure{Stage: stage.Stage, Message: stage.Err.Error()}
	}
	return &result.Failure{Message: err.Error()}
}

// patient retries while the pipeline's queue is full, because the client of a batch waits anyway.
func patient[T any](ctx context.Context, s *Server, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	delays := support.Backoff{First: 5 * time.Millisecond, Max: 500 * time.Millisecond}
	for failures := 1; ; failures++ {
		value, err := ask(ctx)
		if !errors.Is(err, live.ErrBusy) || support.SleepFor(ctx, delays.Delay(failures)) != nil {
			return value, err
		}
	}
}
