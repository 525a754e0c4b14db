package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/doctor/confident"
	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reviewed"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// Diagnosis is what Workspace.Diagnose found.
type Diagnosis struct {
	doctor.Report
	Knowledge []*doctor.Set // that was looked at, as doctor.Propose takes it
}

// Diagnose looks at the knowledge and the input of a file: of the pipeline that Options names,
// or of the file's only one; of a file without a pipeline, at all knowledge. Voters are asked
// about at most votes rows of each knowledge, none of them over the network; 0: about none.
func (w *Workspace) Diagnose(ctx context.Context, path string, votes int) (*Diagnosis, error) {
	p := &Pipeline{workspace: w}
	var err error
	if p.file, err = w.Load(path); err != nil {
		return nil, err
	}
	blocks := p.file.Knowledge
	if len(p.file.Pipelines) > 0 {
		if p.chosen, err = w.Choose(p.file); err != nil {
			return nil, err
		}
		blocks = p.chosen.Knowledge()
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s has no knowledge to look at", path)
	}
	d := &Diagnosis{}
	o := doctor.Options{}
	for _, block := range blocks {
		if block.Attached() {
			d.Skipped = append(d.Skipped, fmt.Sprintf("knowledge %q: it is a collection that somebody else makes, which racflow only reads: doctor looks at rows and documents of files", block.Name))
			continue
		}
		set, err := w.set(ctx, block)
		if err != nil {
			return nil, err
		}
		d.Knowledge = append(d.Knowledge, set)
		from := doctor.Source{Set: set}
		if !block.Embed.Info.Network {
			if block.Chunk == nil { // else what is embedded is shorter than the texts
				from.Embed = p.embedding(block)
			}
			if votes > 0 && block.Documents() == nil {
				from.Votes = func(ctx context.Context) ([]confident.Row, error) { return w.votes(ctx, path, block, votes) }
			}
		} else {
			d.Skipped = append(d.Skipped, fmt.Sprintf("knowledge %q: its embedder calls a service, so votes and cut texts were not looked at", block.Name))
		}
		o.Knowledge = append(o.Knowledge, from)
	}
	if p.chosen != nil && p.InputPath() != "" && p.rereadable() {
		if o.Input, err = p.inputSet(false); err != nil {
			return nil, err
		}
	}
	skipped := d.Skipped
	d.Report, err = doctor.Look(ctx, o)
	d.Skipped = append(skipped, d.Skipped...)
	return d, err
}

// set reads a knowledge.
func (w *Workspace) set(ctx context.Context, block *pipeline.Knowledge) (*doctor.Set, error) {
	name := fmt.Sprintf("knowledge %q", block.Name)
	if block.Documents() == nil {
		return readKnowledge(name, block, false)
	}
	folder, err := document.Open(*block.Documents())
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // it was only read
	files, err := folder.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", block.Main().Path, err)
	}
	var invalid []doctor.Place
	var texts iter.Seq2[string, string] = func(yield func(string, string) bool) {
		for _, f := range files {
			if ctx.Err() != nil {
				return
			}
			d, _, err := folder.Read(ctx, f.ID)
			if err = errors.Join(f.Err, err); err != nil {
				invalid = append(invalid, doctor.Place{File: f.ID, Note: err.Error()})
			} else if !yield(f.ID, d.Text) {
				return
			}
		}
	}
	set := doctor.OfDocuments(name, block.Main().Path, texts)
	set.Refuse(invalid...)
	return set, ctx.Err()
}

// readKnowledge reads the rows of a knowledge, with what people have decided about them.
func readKnowledge(name string, block *pipeline.Knowledge, quick bool) (*doctor.Set, error) {
	decided, errs := reviewed.Read(block.Reviewed())
	replaced := map[string]doctor.Row{}
	var added []doctor.Row
	for _, r := range decided {
		row := doctor.Row{ID: r.ID, Entry: r.ID, File: block.Reviewed(), Line: r.Line, Text: r.Text, Label: r.Label}
		switch {
		case r.Drops():
			replaced[r.Replaces] = doctor.Row{}
		case r.Replaces != "":
			replaced[r.Replaces] = row
		default:
			added = append(added, row)
		}
	}
	var all *doctor.Set
	entries := map[string]bool{}
	for _, s := range block.Sources {
		if s.Reviewed {
			continue
		}
		set, err := readSet(name, s, 0, quick && len(replaced) == 0, entries) // a quick look has no ids
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = set
		} else {
			all.Join(set)
		}
	}
	if len(replaced) > 0 {
		all.Revise(func(entry string) (doctor.Row, bool) {
			row, ok := replaced[entry]
			return row, ok
		})
	}
	all.Decide(added)
	for _, err := range errs {
		place := doctor.Place{File: block.Reviewed(), Note: err.Error()}
		if line := new(reviewed.LineError); errors.As(err, &line) {
			place.Line, place.Note = line.Line, line.Err.Error()
		}
		all.Refuse(place)
	}
	return all, nil
}

// readSet reads rows; limit 0: all.
func readSet(name string, s pipeline.Source, limit int, quick bool, entries map[string]bool) (*doctor.Set, error) {
	m := s.Mapping()
	m.Gold, m.Fields = "", !quick
	r, err := source.Open(s.Path, s.Form, m, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	return doctor.Read(name, s.Path, r, m, limit, quick, entries)
}

func (p *Pipeline) inputSet(quick bool) (*doctor.Set, error) {
	set, err := readSet("the input", p.input(), p.workspace.options.Limit, quick, map[string]bool{})
	if err == nil {
		for i := range set.Rows {
			set.Rows[i].Entry = "" // they are none of a knowledge
		}
	}
	return set, err
}

// embedding embeds passages as the knowledge's embedder does before it has learnt from them.
func (p *Pipeline) embedding(block *pipeline.Knowledge) func(context.Context, []string) ([][]float32, error) {
	var started stages.Embedder
	return func(ctx context.Context, texts []string) (_ [][]float32, err error) {
		if started == nil {
			if started, err = launch.Knowledge(block, p.launch).Embedder(ctx, nil, nil); err != nil {
				return nil, p.explain(err)
			}
		}
		return started.Embed(ctx, sdk.RolePassage, texts)
	}
}

// Leaked counts the input's rows with a label whose text a knowledge of rows has, as Diagnose
// compares them, and returns some of them. No stage is started.
func (p *Pipeline) Leaked(ctx context.Context) (some []doctor.Place, count int, err error) {
	input, err := p.inputSet(false)
	if err != nil {
		return nil, 0, err
	}
	rows := false
	for _, block := range p.chosen.Knowledge() {
		if block.Documents() != nil || block.Attached() {
			continue
		}
		rows = true
		set, err := p.workspace.set(ctx, block)
		if err != nil {
			return nil, 0, err
		}
		places, n, _ := doctor.Known(input, set)
		some, count = append(some, places...), count+n
	}
	if !rows {
		return nil, 0, errors.New("the knowledge is made of documents, or is a collection that somebody else makes: neither is compared with the items")
	}
	return some, count, nil
}

// glance is the quick look before a run. A knowledge or input that cannot be read has no findings here:
// the run says why.
func (p *Pipeline) glance(ctx context.Context) {
	events := p.workspace.options.Events
	if events.Findings == nil {
		return
	}
	o := doctor.Options{Quick: true}
	for _, block := range p.chosen.Knowledge() {
		if block.Attached() || block.Documents() != nil || slices.ContainsFunc(block.Sources, func(s pipeline.Source) bool { return !s.Reviewed && !source.Regular(s.Path) }) {
			continue
		}
		if set, err := readKnowledge(fmt.Sprintf("knowledge %q", block.Name), block, true); err == nil {
			o.Knowledge = append(o.Knowledge, doctor.Source{Set: set})
		}
	}
	if len(o.Knowledge) == 0 {
		return
	}
	if p.InputPath() != "" && p.rereadable() {
		if set, err := p.inputSet(true); err == nil {
			o.Input = set
		}
	}
	if report, err := doctor.Look(ctx, o); err == nil && len(report.Findings) > 0 {
		events.Findings(report)
	}
}
