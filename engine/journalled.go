package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// Newest stands for the ID of the newest run of a file and pipeline that left items
// unanswered.
const Newest = "newest"

// ChangedError says that a run cannot be resumed, since answers of before and after
// would stand side by side.
type ChangedError struct {
	Run     string
	Changed []string // what has changed
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %s cannot be resumed, because this has changed: %s", e.Run, strings.Join(e.Changed, "; "))
}

// Begin opens the journal of a new run over the input. before is the ID of the newest
// run of the same file and input, where that ended early; empty: none did.
func (p *Pipeline) Begin(ctx context.Context) (book *journal.Journal, before string, err error) {
	m, err := p.Manifest(ctx)
	if err != nil {
		return nil, "", err
	}
	runs := p.workspace.Runs()
	if last, left := runs.Newest(m.File, m.Pipeline); left && last.Input.Path == m.Input.Path {
		if end := runs.End(last.ID); end == nil || !end.Complete {
			before = last.ID
		}
	}
	book, err = runs.Begin(m)
	return book, before, err
}

// Resume opens the journal of a run that left items unanswered. It returns a
// *ChangedError where the file, the input or the knowledge has changed since, unless
// it is to be resumed anyway.
func (p *Pipeline) Resume(ctx context.Context, id string, anyway bool) (*journal.Journal, error) {
	m, err := p.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	runs := p.workspace.Runs()
	before, left := runs.Newest(m.File, m.Pipeline)
	switch {
	case id == Newest && !left:
		return nil, fmt.Errorf("no run of %s in %s left anything to do, but for those that another process is at work on", p.file.Path, filepath.Join(p.workspace.state, "runs"))
	case id != Newest:
		if before, err = runs.Manifest(id); err != nil {
			return nil, err
		}
		if before.File != m.File || before.Pipeline != m.Pipeline {
			return nil, fmt.Errorf("run %s is of pipeline %q in %s", before.ID, before.Pipeline, before.File)
		}
	}
	if changed := before.Differences(m); len(changed) > 0 && !anyway {
		return nil, &ChangedError{before.ID, changed}
	}
	return runs.Resume(before.ID)
}

// work takes rows through the pipeline, with a journal where Options ask for one.
func (p *Pipeline) work(ctx context.Context, next func() (source.Row, error), journalled bool, sink func([]run.Result) error) (run.Totals, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return run.Totals{}, err
	}
	if !journalled {
		return r.Items(ctx, next, sink)
	}
	var book *journal.Journal
	if id := p.workspace.options.Resume; id != "" {
		book, err = p.Resume(ctx, id, false)
	} else {
		book, _, err = p.Begin(ctx)
	}
	if err != nil {
		return run.Totals{}, err
	}
	totals, err := r.Journalled(ctx, next, book, sink)
	if closed := book.Close(journal.NewTotals(totals, err)); closed != nil {
		err = errors.Join(err, fmt.Errorf("journal of the run: %w", closed))
	}
	return totals, err
}
