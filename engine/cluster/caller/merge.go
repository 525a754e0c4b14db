package caller

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/run"
)

// answers yields what has become of all items in the order of the input: of those that workers
// were asked about, and of those whose results the caller had.
func (a *Attached) answers(yield func(run.Answers, error) bool) {
	asked := &stream{shelf: a.shelf, last: int(a.state.Total)}
	known := &stream{shelf: a.shelf, next: definition.KnownSeq, last: definition.KnownSeq + int(a.state.Known)}
	for {
		first, second := asked, known
		err := asked.fill(a.caller.work)
		if err == nil {
			err = known.fill(a.caller.work)
		}
		if err != nil {
			yield(run.Answers{}, err)
			return
		}
		if asked.line() > known.line() {
			first, second = known, asked
		}
		if first.line() == ended {
			return
		}
		if !yield(first.before(second.line()), nil) {
			return
		}
	}
}

// ended is the line behind all others.
const ended = int(^uint(0) >> 1)

// stream is batches whose items are in the order of the input.
type stream struct {
	shelf      *shelf
	next, last int // numbers: the one before the next batch, and the last one
	batch      run.Answers
	lines      []int // of the items of the batch
	from       int   // the first of them that was not yielded
}

// fill waits for the next batch where the last one has been yielded.
func (s *stream) fill(ctx context.Context) error {
	for s.from == len(s.lines) && s.next < s.last {
		s.next++
		data, worker, err := s.shelf.get(ctx, s.next)
		if err != nil {
			return err
		}
		rows, batch, err := packet.DecodeAnswers(data)
		if err != nil {
			return fmt.Errorf("the result of batch %d, by %s: %w", s.next, worker, err)
		}
		s.batch, s.lines, s.from = batch, make([]int, len(rows)), 0
		for i := range rows {
			s.lines[i] = rows[i].Line
		}
	}
	return nil
}

// line is that of the next item.
func (s *stream) line() int {
	if s.from == len(s.lines) {
		return ended
	}
	return s.lines[s.from]
}

// before takes the items before a line. What is known of the batch as a whole comes with its first ones.
func (s *stream) before(line int) run.Answers {
	from := s.from
	for s.from < len(s.lines) && s.lines[s.from] < line {
		s.from++
	}
	a := run.Answers{Results: s.batch.Results[from:s.from]}
	for at, err := range s.batch.Left {
		if at >= from && at < s.from {
			if a.Left == nil {
				a.Left = map[int]error{}
			}
			a.Left[at-from] = err
		}
	}
	if from == 0 {
		a.Halted, a.Ended, a.Distributions, a.Times = s.batch.Halted, s.batch.Ended, s.batch.Distributions, s.batch.Times
	}
	return a
}
