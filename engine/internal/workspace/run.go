package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Newest is the Options.Resume for the pipeline's newest run that is unfinished or has failed items.
const Newest = "newest"

// ChangedError says that a run cannot be resumed, since it would mix answers from before and after a
// change. Options.ResumeAnyway resumes the run nevertheless.
type ChangedError struct {
	Run     string
	Changed []string // what has changed
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %s cannot be resumed, because this has changed: %s", e.Run, strings.Join(e.Changed, "; "))
}

// Runs returns the runs in the state folder.
func (w *Workspace) Runs() journal.Runs { return journal.RunsOf(w.state) }

// journal opens the journal of a new run over the input. With Options.Resume it opens the journal of last,
// the run that p.resume found. It fills in begun.
func (p *Pipeline) journal(ctx context.Context, last journal.Manifest, begun *Begun) (*journal.Journal, error) {
	m, err := p.manifest(ctx)
	if err != nil {
		return nil, err
	}
	kept, o := p.workspace.Runs(), p.workspace.options
	set := p.chosen.Journal
	how := journal.Options{Sync: journal.Sync(set.Sync), Keep: cmp.Or(o.Keep, journal.Keep(set.Keep))}
	if o.Resume != "" {
		if changed := last.Differences(m); len(changed) > 0 && !o.ResumeAnyway {
			return nil, &ChangedError{last.ID, changed}
		}
		records, err := kept.Resume(last.ID, how)
		if err != nil {
			return nil, err
		}
		begun.Resumed, begun.Answered, begun.Changed = true, records.Known(), records.Changed
		return records, nil
	}
	if last, left := kept.Newest(m.File, m.Pipeline); left && last.Input.Path == m.Input.Path {
		if end := kept.End(last.ID); end == nil || !end.Complete {
			begun.Earlier = last.ID
		}
	}
	records, removed, err := kept.Begin(m, how, journal.Retention{Runs: set.Runs, Age: set.Age, Bytes: set.Bytes})
	begun.Removed = removed
	return records, err
}

// manifest describes what a run of the pipeline over the input depends on.
func (p *Pipeline) manifest(ctx context.Context) (journal.Manifest, error) {
	m, err := p.depends(ctx)
	if err != nil {
		return m, err
	}
	m.Limit, m.Output, m.Spend, m.Calibrating = p.workspace.options.Limit, p.workspace.options.Output, p.workspace.options.Spend, p.spent
	m.Share, m.Command, m.Mine = p.workspace.options.Share, p.command(), true
	if m.File, err = filepath.Abs(p.file.Path); err != nil {
		return m, err
	}
	if m.Input.Path = p.InputPath(); p.rereadable() {
		path, err := filepath.Abs(p.InputPath())
		if err != nil {
			return m, err
		}
		if m.Input, err = journal.LookAtFile(path); err != nil {
			return m, err
		}
	}
	m.Columns = p.InputColumns()
	return m, nil
}

// depends describes what a run depends on, apart from the input. It starts the stages.
func (p *Pipeline) depends(ctx context.Context) (journal.Manifest, error) {
	m := journal.Manifest{Version: Version()}
	if b := BuildInfo(); b.Program == "" { // otherwise the revision belongs to the program that contains racflow
		m.Revision = b.Revision
	}
	m.Define(p.file, p.chosen)
	for i := range m.Variables { // a variable that is not declared secret may hold the text of a secret
		m.Variables[i].Value = p.workspace.host.Secrets().Message(m.Variables[i].Value)
	}
	r, err := p.Start(ctx)
	if err != nil {
		return m, err
	}
	m.Answers, m.LabelForm, m.Renames = p.Answers(r.Labels()), p.chosen.LabelForm(), r.Graph().Renames()
	var labels [][]string
	for _, k := range r.Graph().Knowledge() {
		labels = append(labels, k.Labels)
	}
	m.Labels = journal.ListsDigest(labels)
	for _, g := range r.Generations() {
		m.Knowledge = append(m.Knowledge, journal.ManifestKnowledge(g))
	}
	stages := p.stages()
	for _, id := range r.Graph().Identities() {
		stage := journal.ManifestStage{Stage: id.Stage, Use: id.Use, Plugin: "racflow", Version: Version(), Fingerprint: id.Fingerprint, Learnt: id.Learnt, Resolved: id.Resolved}
		stage.Model = stages[id.Stage].Config.Model()
		if price := stages[id.Stage].Price; price != nil {
			kept := journal.ManifestPrice(*price)
			stage.Price = &kept
		}
		if from := stages[id.Stage].Program; from != nil {
			hash, err := from.Check()
			if err != nil {
				return m, err
			}
			stage.Plugin, stage.Version, stage.Program = from.Name, from.Version, &journal.ManifestProgram{Path: from.Path, Hash: hash, Origin: string(from.Origin)}
			if known, ok := p.workspace.host.Known(*from); ok {
				stage.Version = known.Version
			}
		}
		m.Stages = append(m.Stages, stage)
	}
	return m, nil
}

// InputColumns describes how the rows of the input are read.
func (p *Pipeline) InputColumns() *journal.ManifestColumns {
	in := p.input()
	return &journal.ManifestColumns{Form: in.Form, ID: in.ID, Text: in.Text, Label: in.Label, Labels: in.Labels}
}

// command returns the command of the run without secrets; nil: there is none.
func (p *Pipeline) command() *journal.ManifestCommand {
	given := p.workspace.options.Command
	if given == nil {
		return nil
	}
	kept, secrets := journal.ManifestCommand{Dir: given.Dir}, p.workspace.host.Secrets()
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

// Answers returns the kind of the pipeline's answers. labels are the labels of the searched
// knowledge.
func (p *Pipeline) Answers(labels []string) journal.AnswerKind {
	has := func(block string) bool {
		return slices.ContainsFunc(p.chosen.Stages, func(s *pipeline.Stage) bool { return s.Enabled && s.Block == block })
	}
	switch {
	case !has("elect"):
		return journal.PassageAnswers
	case has("retrieve") && len(labels) == 0:
		return journal.TextAnswers
	}
	return journal.LabelAnswers
}

// Item is an item for a pipeline to answer.
type Item struct {
	ID    string // empty: its number, from 1
	Text  string // UTF-8, at most source.MaxRow bytes
	Label string // the expected label; empty: unknown
	Meta  sdk.Meta
	Trace sdk.Trace // the item's trace, such as sdk.TraceOf a context; zero: none
}

// Result is an item's result, in the form of a JSONL line of racflow run.
type Result = result.Result

// Candidate is an entry retrieved for an item.
type Candidate = result.Candidate

// Row converts the item to a row of an input, with the checks of a reader of rows. An invalid item fails
// without affecting others.
func (i Item) Row(line int) source.Row {
	row := source.Row{Line: line, ID: i.ID, Text: i.Text, Label: sdk.LabelForm{}.Canonical(i.Label), Meta: i.Meta, Trace: i.Trace}
	switch {
	case strings.TrimSpace(i.Text) == "":
		row.Err = &source.RowError{Err: errors.New("the text is empty")}
	case len(i.Text) > source.MaxRow:
		row.Err = &source.RowError{Err: fmt.Errorf("the text is longer than %d bytes", source.MaxRow)}
	case !utf8.ValidString(i.Text):
		row.Err = &source.RowError{Err: errors.New("the text is not UTF-8")}
	}
	return row
}

// Run runs items through the pipeline, and yields their results in order, as they come. If items is nil,
// it reads the items of Options.Input or the file. An item that fails is a Result with Error set. If the
// run ends early, an error comes last, without a result; every result before it is complete.
//
// Another goroutine reads items ahead of their results. A loop that breaks off waits until no item is in
// progress.
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
				for range results { // wait until no item is in progress
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
			case results <- output.Of(one):
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
			totals, err = r.Items(ctx, each(ctx, items), nil, send)
		}
	}
	if err == nil && totals.Left > 0 { // a voter stopped, and the others have no answer for these items
		err = fmt.Errorf("%d items are not answered: %w", totals.Left, totals.Missing[0].First)
	}
	return err
}

// each returns a reader of items as rows. The reader returns when ctx ends, even while items blocks: a
// separate goroutine, for which nobody waits, iterates over the items.
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

// Answer runs one item through the pipeline. If the item fails, Answer returns the error of its Result.
func (p *Pipeline) Answer(ctx context.Context, item Item) (Result, error) {
	one, err := p.AnswerRow(ctx, item.Row(1))
	if err != nil {
		return Result{}, err
	}
	r := output.Of(one)
	if r.Error != nil {
		return r, r.Error
	}
	return r, nil
}

// AnswerRow is like Answer, but takes a row, and returns all that the run knows about it.
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
	}, nil, func(batch []outcome.Result) error {
		if len(batch) > 0 { // otherwise the run ends early
			answered = batch[0]
		}
		return nil
	})
	if err == nil && totals.Left > 0 { // a voter stopped, and the others have no answer
		err = totals.Missing[0].First
	}
	return answered, err
}

// Retrieve returns the list that the last retrieve or rerank stage returns for an item, best first. It
// asks no voter.
func (p *Pipeline) Retrieve(ctx context.Context, item Item) ([]Candidate, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.Found(ctx, item.Row(1))
	if err != nil {
		return nil, err
	}
	return output.Candidates(found), nil
}

// Terms weighs the words of an item and its answer: words in few of the item's retrieved passages weigh
// more. It needs a result with its lists (Options.Lists).
func (p *Pipeline) Terms(r outcome.Result) *eval.QuestionTerms {
	block := p.searched()
	if block == nil {
		return eval.QuestionTermsOf(r.Text, "", nil)
	}
	widest := r.Candidates
	for _, l := range r.Lists {
		if len(l.Candidates) > len(widest) {
			widest = l.Candidates
		}
	}
	return eval.QuestionTermsOf(r.Text+" "+r.Answer, block.Analyzer, widest)
}
