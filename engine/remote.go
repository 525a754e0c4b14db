package engine

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
)

// Remote answers the items of a run on other machines (package cluster). This process still reads
// the input, brings the knowledge up to date, keeps the journal and writes the results.
type Remote interface {
	run.Remote
	// Begin is called before the first Answer, once it is known what the run is. An error ends the
	// run.
	Begin(ctx context.Context, b Beginning) error
	// End is called after the last Answer, when the results are written and the journal is closed.
	// err says why the run ended early; nil: it is complete. It is called, too, where Begin failed.
	End(ctx context.Context, err error) error
}

// Beginning says what a run is.
type Beginning struct {
	Pipeline *Pipeline
	Manifest manifest.Manifest
	Labels   []string // of the knowledge
	Resumed  bool     // an earlier part of the run has answered items
	// Keep gives the journal results that earlier parts of the run left elsewhere; their items are
	// not asked about again. It says how many the journal did not have. nil: the run takes several passes, and has no
	// use for them.
	Keep func([]outcome.Result) (fresh int, err error)
	// Place notes in the journal where the run is, from now on; nil: there is no journal.
	Place func(manifest.Cluster) error
}

// begin tells Options.Remote what the run is.
func (p *Pipeline) begin(ctx context.Context, book *journal.Journal, resumed, twice bool, labels []string) (err error) {
	remote := p.workspace.options.Remote
	if remote == nil {
		return nil
	}
	b := Beginning{Pipeline: p, Labels: labels, Resumed: resumed}
	if book == nil {
		if b.Manifest, err = p.manifest(ctx); err != nil {
			return err
		}
	} else {
		if b.Manifest, err = p.begun(ctx, book.Manifest); err != nil {
			return err
		}
		b.Place = func(at manifest.Cluster) error {
			book.Manifest.Cluster = &at
			return book.Manifest.Write(book.Folder(), true)
		}
	}
	if book != nil && resumed && !twice {
		book.Index() // what is kept now is an answer when its row is read
		b.Keep = lacking(book)
	}
	return remote.Begin(ctx, b)
}

// begun is the manifest of a run as it goes on: what a resumed one depends on is not what it began
// with, where Options.ResumeAnyway lets it.
func (p *Pipeline) begun(ctx context.Context, kept manifest.Manifest) (manifest.Manifest, error) {
	now, err := p.depends(ctx)
	kept.Version, kept.Revision, kept.Parts, kept.Variables, kept.Rules = now.Version, now.Revision, now.Parts, now.Variables, now.Rules
	kept.Knowledge, kept.Labels, kept.Stages, kept.Answers = now.Knowledge, now.Labels, now.Stages, now.Answers
	return kept, err
}

// lacking keeps those results in a journal that it does not have.
func lacking(book *journal.Journal) func([]outcome.Result) (int, error) {
	return func(all []outcome.Result) (int, error) {
		fresh := slices.DeleteFunc(slices.Clone(all), func(r outcome.Result) bool {
			_, has := book.Answered(source.Row{Line: r.Line, ID: r.ID})
			return has
		})
		return len(fresh), book.Keep(fresh)
	}
}

// settle notes in the manifest of a resumed run where other machines answer its items, where that
// is not as it was when it began.
func settle(book *journal.Journal, now *manifest.Cluster, sync journal.Sync) error {
	m := &book.Manifest
	switch {
	case now == nil || m.Cluster != nil && m.Cluster.Servers == now.Servers:
		return nil
	case m.Cluster == nil:
		m.Cluster = now
	default:
		m.Cluster = &manifest.Cluster{Run: m.Cluster.Run, Servers: now.Servers}
	}
	return m.Write(book.Folder(), sync.Forces())
}

// passes tells other machines in which pass the run is.
type passes struct{ *spend.Spender }

func (s passes) Pass() run.Pass {
	if s.Asks() {
		return run.Asking
	}
	return run.Survey
}
