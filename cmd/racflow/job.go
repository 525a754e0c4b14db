package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// job is a pipeline with the items that it will work on: what run and eval
// have in common.
type job struct {
	*session
	flags *fileFlags
	limit int // of items; 0: none
	items *engine.Rows
	path  string // of the items
	ready *run.Run
	book  *journal.Journal // nil: results are not kept
}

// newJob loads a file, opens the input, brings the knowledge up to date and
// starts the stages. Before the input is opened, while nothing has cost anything,
// check may refuse; nil checks nothing.
func newJob(ctx context.Context, stdin io.Reader, flags *fileFlags, input *inputFlags, path string, check func(*job) error) (*job, error) {
	s, err := flags.start(ctx, path, input, stdin)
	if err != nil {
		return nil, err
	}
	j := &job{session: s, flags: flags, limit: input.limit, path: s.pipeline.InputPath()}
	if check != nil {
		err = check(j)
	}
	if err == nil {
		j.items, err = s.pipeline.Rows()
	}
	if err == nil {
		tellOff(s.pipeline.Definition())
		j.ready, err = s.pipeline.Start(ctx)
	}
	if err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

func (j *job) close() {
	if j.items != nil {
		_ = j.items.Close() // it was only read
	}
	j.session.close()
}

// run takes the items through the pipeline. The outcome is that of the items
// that sink got, also together with an error.
func (j *job) run(ctx context.Context, sink func([]run.Result) error) (*outcome, error) {
	s, done := j.session, 0
	s.progress.Restart()
	var book run.Journal
	if j.book != nil {
		book = j.book
	}
	totals, err := j.ready.Journalled(ctx, j.items.Next, book, func(batch []run.Result) error {
		done += len(batch)
		s.progress.Update("answered", done, j.limit)
		for _, result := range batch {
			if result.Failure != nil {
				s.tellFailure(result)
			}
		}
		return sink(batch)
	})
	s.progress.Clear()
	s.tellMoreFailures()
	for _, skipped := range totals.Skipped {
		fmt.Fprintf(os.Stderr, "%s: %s went on without it, the first because: %s\n", skipped.Stage, terminal.Plural(skipped.Items, "item"), terminal.Sanitize(skipped.First.Error()))
	}
	for _, d := range totals.Dropped() {
		fmt.Fprintf(os.Stderr, "warning: %s\n", report.Dropped(d, j.stage(d.Voter), j.ready.Labels()))
	}
	if j.flags.strict && sdk.CodeOf(err) == sdk.CodeStopped {
		err = fmt.Errorf("%w; there are no figures, because some would be of items without that stage; every answer so far is kept, and the same command asks for the rest, with more to spend or once the service is back", err)
	}
	return &outcome{totals, s.faults}, err
}

// stage describes the stage that does the work of a voter.
func (j *job) stage(voter string) sdk.Stage {
	for _, s := range j.pipeline.Definition().Stages {
		if s.Block == "sample" && s.Name == voter {
			return s.Info
		}
	}
	return sdk.Stage{}
}
