package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/again"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/pipeline"
)

// Newest stands for the ID of the newest run of a file and pipeline that left items
// unanswered.
const Newest = "newest"

// ChangedError says that a run cannot be resumed, since answers of before and after
// would stand side by side. Options.ResumeAnyway resumes it all the same.
type ChangedError struct {
	Run     string
	Changed []string // what has changed
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %s cannot be resumed, because this has changed: %s", e.Run, strings.Join(e.Changed, "; "))
}

// Runs are those that are kept in the state folder.
func (w *Workspace) Runs() runs.Runs { return runs.Of(w.state) }

// journal opens the journal of a new run over the input or, with Options.Resume, of
// the one that p.resume has found. What is to be said of it is added to begun. recalled has the
// answers of another run, too; nil: there are none.
func (p *Pipeline) journal(ctx context.Context, last manifest.Manifest, begun *Begun) (book *journal.Journal, recalled *again.Journal, err error) {
	m, err := p.manifest(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.Again = last.Again
	if m.Again == "" && p.workspace.options.Again != "" {
		if m.Again, err = p.again(m); err != nil {
			return nil, nil, err
		}
	}
	var old *journal.Journal
	if m.Again != "" { // before it could be removed to make room for the new one
		if old, err = p.workspace.Runs().Open(m.Again); err != nil && last.ID == "" {
			return nil, nil, err
		}
		if err != nil {
			p.workspace.log.Warn("answers of another run cannot be taken any more", "error", err)
		}
	}
	book, err = p.book(m, last, begun)
	switch {
	case old == nil:
		return book, nil, err
	case err != nil:
		return nil, nil, errors.Join(err, old.Close(nil))
	}
	r, err := p.Start(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, old.Close(nil), book.Close(nil))
	}
	terms := again.TermsOf(old.Manifest, m, r.Graph().Searchable())
	begun.Again = &terms
	return book, again.Of(book, old, terms), nil
}

// again finds the run of Options.Again, which has to be over the same input.
func (p *Pipeline) again(m manifest.Manifest) (id string, err error) {
	kept, id := p.workspace.Runs(), p.workspace.options.Again
	if id == Newest {
		var any bool
		if id, any = kept.LastOf(m.File, m.Pipeline); !any {
			return "", fmt.Errorf("there is no run of %s in %s whose answers could be taken", p.file.Path, filepath.Join(p.workspace.state, "runs"))
		}
	}
	old, err := kept.Manifest(id)
	if err != nil {
		return "", err
	}
	return id, again.Same(old, m)
}

// book opens the journal itself.
func (p *Pipeline) book(m, last manifest.Manifest, begun *Begun) (*journal.Journal, error) {
	kept, o := p.workspace.Runs(), p.workspace.options
	set := p.chosen.Journal
	how := journal.Options{Sync: journal.Sync(set.Sync), Keep: cmp.Or(o.Keep, journal.Keep(set.Keep))}
	if o.Resume != "" {
		if changed := last.Differences(m); len(changed) > 0 && !o.ResumeAnyway {
			return nil, &ChangedError{last.ID, changed}
		}
		book, err := kept.Resume(last.ID, how)
		if err != nil {
			return nil, err
		}
		begun.Resumed, begun.Answered, begun.Changed = true, book.Known(), book.Changed
		if err := settle(book, m.Cluster, how.Sync); err != nil {
			return nil, errors.Join(err, book.Close(nil))
		}
		return book, nil
	}
	if last, left := kept.Newest(m.File, m.Pipeline); left && last.Input.Path == m.Input.Path {
		if end := kept.End(last.ID); end == nil || !end.Complete {
			begun.Earlier = last.ID
		}
	}
	book, removed, err := kept.Begin(m, how, runs.Retention{Runs: set.Runs, Age: set.Age, Bytes: set.Bytes})
	begun.Removed = removed
	return book, err
}

// manifest says what a run of the pipeline depends on. It starts the stages.
func (p *Pipeline) manifest(ctx context.Context) (manifest.Manifest, error) {
	m, err := p.depends(ctx)
	if err != nil {
		return m, err
	}
	m.Limit, m.Output, m.Spend = p.workspace.options.Limit, p.workspace.options.Output, p.workspace.options.Spend
	m.Command = p.command()
	if m.File, err = filepath.Abs(p.file.Path); err != nil {
		return m, err
	}
	m.Cluster = p.workspace.options.Cluster
	if m.Input.Path = p.InputPath(); p.rereadable() {
		path, err := filepath.Abs(p.InputPath())
		if err != nil {
			return m, err
		}
		if m.Input, err = manifest.NewFile(path); err != nil {
			return m, err
		}
	}
	m.Columns = p.InputColumns()
	return m, nil
}

// depends is the part of the manifest that has nothing of the input.
func (p *Pipeline) depends(ctx context.Context) (manifest.Manifest, error) {
	m := manifest.Manifest{Version: Version()}
	if b := BuildInfo(); b.Program == "" { // else the revision is that of another program
		m.Revision = b.Revision
	}
	m.Define(p.file, p.chosen)
	for i := range m.Variables { // what was given as a text may be a secret elsewhere
		m.Variables[i].Value = p.workspace.host.Secrets().Message(m.Variables[i].Value)
	}
	r, err := p.Start(ctx)
	if err != nil {
		return m, err
	}
	m.Answers = p.Answers(r.Labels())
	var labels [][]string
	for _, k := range r.Graph().Knowledge() {
		labels = append(labels, k.Labels)
	}
	m.Labels = manifest.Digest(labels)
	for _, g := range r.Generations() {
		m.Knowledge = append(m.Knowledge, manifest.Knowledge(g))
	}
	stages := p.stages()
	for _, id := range r.Graph().Identities() {
		stage := manifest.Stage{Stage: id.Stage, Use: id.Use, Plugin: "racflow", Version: Version(), Fingerprint: id.Fingerprint, Learnt: id.Learnt, Resolved: id.Resolved}
		stage.Model = stages[id.Stage].Config.Model()
		if price := stages[id.Stage].Price; price != nil {
			kept := manifest.Price(*price)
			stage.Price = &kept
		}
		if from := stages[id.Stage].Program; from != nil {
			hash, err := from.Check()
			if err != nil {
				return m, err
			}
			stage.Plugin, stage.Version, stage.Program = from.Name, from.Version, &manifest.Program{Path: from.Path, Hash: hash, Origin: string(from.Origin)}
			if known, ok := p.workspace.host.Known(*from); ok {
				stage.Version = known.Version
			}
		}
		m.Stages = append(m.Stages, stage)
	}
	return m, nil
}

// InputColumns says how the rows of the input are read.
func (p *Pipeline) InputColumns() *manifest.Columns {
	in := p.input()
	return &manifest.Columns{Form: in.Form, ID: in.ID, Text: in.Text, Label: in.Label}
}

// command is the command of the run without secrets; nil: it has none.
func (p *Pipeline) command() *manifest.Command {
	given := p.workspace.options.Command
	if given == nil {
		return nil
	}
	kept, secrets := manifest.Command{Dir: given.Dir, Apart: given.Apart}, p.workspace.host.Secrets()
	for _, f := range given.Flags {
		if secrets.Message(f.Value) == f.Value {
			kept.Flags = append(kept.Flags, f)
			continue
		}
		name, _, _ := strings.Cut(f.Value, "=")
		if f.Name != "var" {
			name = "--" + f.Name
		}
		kept.Withheld = append(kept.Withheld, name)
	}
	return &kept
}

// Answers says what the pipeline answers with, where these are the labels of what it
// searches.
func (p *Pipeline) Answers(labels []string) manifest.Answers {
	has := func(block string) bool {
		return slices.ContainsFunc(p.chosen.Stages, func(s *pipeline.Stage) bool { return s.Enabled && s.Block == block })
	}
	switch {
	case !has("elect"):
		return manifest.Passages
	case has("retrieve") && len(labels) == 0:
		return manifest.Texts
	}
	return manifest.Labels
}
