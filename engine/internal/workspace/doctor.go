package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

// Diagnosis is the result of Workspace.Diagnose.
type Diagnosis struct {
	doctor.Report
	Knowledge []*doctor.Set // the examined knowledge, for doctor.Propose
}

// Diagnose examines the knowledge and the input of a file, for the pipeline that Options names, or the only
// one. Without a pipeline, it examines all knowledge. It asks voters about at most votes rows of each
// knowledge, never over the network; 0 asks none.
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
			d.Skipped = append(d.Skipped, fmt.Sprintf("knowledge %q: it is a collection that another program makes, which racflow only reads: doctor looks at rows and documents of files", block.Name))
			continue
		}
		set, err := w.set(ctx, block)
		if err != nil {
			return nil, err
		}
		d.Knowledge = append(d.Knowledge, set)
		from := doctor.Source{Set: set}
		if block.LabelForm().Many && votes > 0 {
			d.Skipped = append(d.Skipped, fmt.Sprintf("knowledge %q: its rows have several labels, which were not checked by votes", block.Name))
		}
		if !block.Embed.Info.Network {
			if block.Chunk == nil { // else the embedded texts are shorter
				from.Embed = p.embedding(block)
			}
			if votes > 0 && block.Documents() == nil {
				from.Votes = func(ctx context.Context) ([]doctor.VotedRow, error) { return w.votes(ctx, path, block, votes) }
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

// voted averages the voters' distributions.
func voted(one outcome.Result) doctor.VotedRow {
	row := doctor.VotedRow{Text: one.Text, Label: one.Expected, Votes: map[string]float64{}}
	totals := map[string]float64{}
	for _, v := range one.Votes {
		totals[v.Voter] += v.Weight
	}
	for _, v := range one.Votes {
		row.Votes[v.Answer] += v.Weight / totals[v.Voter] / float64(len(totals))
	}
	return row
}

func (w *Workspace) set(ctx context.Context, block *pipeline.Knowledge) (*doctor.Set, error) {
	name := fmt.Sprintf("knowledge %q", block.Name)
	if block.Documents() == nil {
		return readKnowledge(name, block, false)
	}
	folder, err := document.Open(*block.Documents())
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // only read: no data can be lost
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

// readKnowledge reads the rows of a knowledge, with people's decisions about them.
func readKnowledge(name string, block *pipeline.Knowledge, quick bool) (*doctor.Set, error) {
	decided, errs := reviewed.Read(block.Reviewed(), block.LabelForm())
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
		if s.Reviewed || s.Describes != nil {
			continue
		}
		set, err := readSet(name, s, 0, quick && len(replaced) == 0, entries) // a quick look has no ids
		if err != nil {
			return nil, err
		}
		if whole := s; !quick && (s.Form.Part != [2]float64{} || s.Form.Where != [2]string{}) {
			whole.Form.Part, whole.Form.Where = [2]float64{}, [2]string{}
			rows, err := readSet(name, whole, 0, false, map[string]bool{})
			if err != nil {
				return nil, err
			}
			set.Hold(rows)
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
	if err := addTable(all, block); err != nil {
		return nil, err
	}
	for _, err := range errs {
		place := doctor.Place{File: block.Reviewed(), Note: err.Error()}
		if line := new(reviewed.LineError); errors.As(err, &line) {
			place.Line, place.Note = line.Line, line.Err.Error()
		}
		all.Refuse(place)
	}
	return all, nil
}

// addTable adds the labels of a table, with their descriptions.
func addTable(set *doctor.Set, block *pipeline.Knowledge) error {
	table, err := generation.ReadTable(block)
	if table == nil || err != nil {
		return err
	}
	set.Renames = table.Renames
	for _, at := range table.Invalid {
		set.Refuse(doctor.Place{File: at.Path, Line: at.Line, Note: at.Err.Error()})
	}
	set.Described = table.Labels()
	return nil
}

// readSet reads at most limit rows; 0: all.
func readSet(name string, s pipeline.Source, limit int, quick bool, entries map[string]bool) (*doctor.Set, error) {
	m := s.Mapping()
	m.Gold, m.Fields = "", !quick
	r, err := source.Open(s.Path, s.Form, m, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // only read: no data can be lost
	return doctor.Read(name, s.Path, r, m, limit, quick, entries)
}

func (p *Pipeline) inputSet(quick bool) (*doctor.Set, error) {
	set, err := readSet("the input", p.input(), p.workspace.options.Limit, quick, map[string]bool{})
	if err == nil {
		for i := range set.Rows {
			set.Rows[i].Entry = "" // input rows belong to no knowledge
		}
	}
	return set, err
}

// embedding embeds passages as the knowledge's embedder does before it has learned from them.
func (p *Pipeline) embedding(block *pipeline.Knowledge) func(context.Context, []string) ([][]float32, error) {
	var started generation.Embedder
	return func(ctx context.Context, texts []string) (_ [][]float32, err error) {
		if started == nil {
			if started, err = stage.LaunchKnowledge(block, p.launch).Embedder(ctx, nil, nil); err != nil {
				return nil, p.explain(err)
			}
		}
		return started.Embed(ctx, sdk.RolePassage, texts)
	}
}

// Leaked counts the input's labelled rows, and how many of them have a text that is also in a knowledge of
// rows. It compares texts as Diagnose does, and returns some of the leaked rows. It starts no stage.
func (p *Pipeline) Leaked(ctx context.Context) (some []doctor.Place, count, labelled int, err error) {
	input, err := p.inputSet(false)
	if err != nil {
		return nil, 0, 0, err
	}
	rows := false
	for _, block := range p.chosen.Knowledge() {
		if block.Documents() != nil || block.Attached() {
			continue
		}
		rows = true
		set, err := p.workspace.set(ctx, block)
		if err != nil {
			return nil, 0, 0, err
		}
		places, n, of := doctor.Known(input, set)
		some, count, labelled = append(some, places...), count+n, of
	}
	if !rows {
		return nil, 0, 0, errors.New("the knowledge is made of documents, or is a collection that another program makes: neither is compared with the items")
	}
	return some, count, labelled, nil
}

// glance takes a quick look before a run. It ignores a knowledge or input that cannot be read: the run
// reports why.
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
	if p.InputPath() != "" && p.rereadable() && p.folds == nil {
		if set, err := p.inputSet(true); err == nil {
			o.Input = set
		}
	}
	if report, err := doctor.Look(ctx, o); err == nil && len(report.Findings) > 0 {
		events.Findings(report)
	}
}

// Profiles returns the profiles of the models that were asked with this state folder.
func (w *Workspace) Profiles() ([]governor.KnownProfile, error) { return w.profiles().List() }

func (w *Workspace) profiles() *governor.Profiles {
	return governor.NewProfiles(filepath.Join(w.state, ProfilesFolder))
}

// Probe measures again what the models of the pipeline's stages accept, by some short calls. It measures
// the length of their answers by a few of the pipeline's own prompts. It stores the results for later plans
// and runs. stage, such as "sample.llm", selects one stage; empty selects all. A model that several stages
// use gets the short calls only once.
func (p *Pipeline) Probe(ctx context.Context, stage string) ([]plan.Model, error) {
	var chosen []plan.Asking
	for _, a := range plan.Askings(p.chosen) {
		if (stage == "" || a.Name == stage) && a.Stage.Program == nil {
			chosen = append(chosen, a)
		}
	}
	if len(chosen) == 0 && stage != "" {
		return nil, fmt.Errorf("no stage %s is on that asks a language model and comes with racflow", stage)
	}
	all, err := p.probe(ctx, chosen)
	if err == nil {
		err = p.askOwn(ctx, chosen)
	}
	return all, p.explain(errors.Join(err, p.workspace.fill(all)))
}

// askOwn asks stages a few of the pipeline's own prompts.
func (p *Pipeline) askOwn(ctx context.Context, all []plan.Asking) error {
	found, err := p.Plan(ctx)
	if err != nil {
		p.workspace.log.Warn("the pipeline's own prompts are not asked: they cannot be written", "error", err)
		return ctx.Err()
	}
	for _, a := range all {
		shared, err := p.share(a.Stage, a.Stage.Name)
		if err != nil {
			return err
		}
		err = p.withStage(ctx, a.Single(), shared, func(opened any) error { return found.AskOwn(ctx, a, opened) })
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	return nil
}

// fill adds the stored profiles to models.
func (w *Workspace) fill(all []plan.Model) error {
	kept, err := w.Profiles()
	for i, f := range all {
		for _, k := range kept {
			if k.Endpoint == f.Endpoint && k.Model == f.Name {
				all[i].Profile, all[i].File = k.Profile, k.File
			}
		}
	}
	return err
}

// ProbeModel is like Pipeline.Probe, for a model that no file names. config is the config (a JSON object)
// of a voter that would ask the model.
func (w *Workspace) ProbeModel(ctx context.Context, use string, config []byte) ([]plan.Model, error) {
	info, ok := w.catalog.Stage(sdk.KindSample, use)
	if !ok {
		return nil, fmt.Errorf("there is no sample stage %q", use)
	}
	stage := &pipeline.Stage{Block: "sample", Name: "model", Kind: sdk.KindSample, Use: use, Info: info, Config: pipeline.Config{Open: config}}
	p := &Pipeline{workspace: w, file: &pipeline.File{}}
	all, err := p.probe(ctx, []plan.Asking{{Stage: stage}})
	return all, errors.Join(err, w.fill(all))
}

func (p *Pipeline) probe(ctx context.Context, all []plan.Asking) (found []plan.Model, err error) {
	seen := map[string]bool{}
	host := func(a plan.Asking) (sdk.Host, error) { return p.share(a.Stage, a.Stage.Name) }
	err = p.models(ctx, all, host, func(a plan.Asking, m sdk.Model) error {
		key := m.Endpoint() + "\x00" + m.Name()
		if seen[key] {
			return nil
		}
		seen[key] = true
		raw, err := m.Probe(ctx)
		if err != nil {
			name, endpoint := a.Shown(m)
			return fmt.Errorf("%s at %s cannot be probed: %w", name, endpoint, err)
		}
		name, endpoint := a.Shown(m)
		found = append(found, plan.Model{Stage: a.Name, Endpoint: endpoint, Name: name, Profile: raw})
		return nil
	})
	return found, err
}

// known returns the profiles of the models that the pipeline's stages ask. It calls no service.
func (p *Pipeline) known(ctx context.Context) (all []plan.Model, err error) {
	err = p.models(ctx, plan.Askings(p.chosen), p.looking, func(a plan.Asking, m sdk.Model) error {
		raw, err := m.Profile(ctx)
		name, endpoint := a.Shown(m)
		all = append(all, plan.Model{Stage: a.Name, Endpoint: endpoint, Name: name, Profile: raw})
		return err
	})
	return all, err
}

// looking returns the host of a stage that only looks up what is known about its models.
func (p *Pipeline) looking(a plan.Asking) (sdk.Host, error) {
	return p.workspace.looker(a.Stage, knowing{models: true})
}

// models opens each built-in stage of all in this process, one after the other. It calls do with each model
// that a stage asks.
func (p *Pipeline) models(ctx context.Context, all []plan.Asking, host func(plan.Asking) (sdk.Host, error), do func(plan.Asking, sdk.Model) error) error {
	for _, a := range all {
		if a.Stage.Program != nil {
			continue
		}
		h, err := host(a)
		if err != nil {
			return err
		}
		err = p.withStage(ctx, a.Stage, h, func(opened any) error {
			prober, ok := opened.(sdk.Prober)
			if !ok {
				return nil
			}
			for _, m := range prober.Models() {
				if err := do(a, m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withStage opens a stage that comes with racflow in this process, for as long as do takes.
func (p *Pipeline) withStage(ctx context.Context, s *pipeline.Stage, h sdk.Host, do func(any) error) error {
	opened, err := p.openBuiltin(ctx, s, h)
	if err != nil {
		return err
	}
	if c, ok := opened.(io.Closer); ok {
		defer c.Close() //nolint:errcheck // closes idle connections
	}
	return do(opened)
}
