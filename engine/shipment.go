package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/attached"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/show/plan"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// Elsewhere is a run that its caller has left (Pipeline.Detach), and that other machines answer.
type Elsewhere struct {
	Manifest journal.Manifest // its Cluster says where the run is
	Labels   []string         // those of the knowledge
	Keep     journal.Keep
	Items    int // number of items of the input
	// Answers yields the answers to all items in input order as they come, with all fields of the
	// rows that results have. An error comes last.
	Answers iter.Seq2[run.Answers, error]
	// End is called like Remote.End, when the results are written and the journal is closed.
	End func(ctx context.Context, err error) error
}

// Attach takes the results of a run elsewhere. It is like Work, but starts no stage, and needs
// neither the file nor the input here. It continues this workspace's journal of results that were
// taken earlier.
func (w *Workspace) Attach(ctx context.Context, from Elsewhere, write func([]outcome.Result) error, finish func(error) error) (*Outcome, error) {
	records, err := w.attached(from)
	if err != nil {
		return nil, err
	}
	start, out := time.Now(), &Outcome{Labels: from.Labels, Run: records.ID()}
	counter := eval.NewCounter(from.Labels...)
	cost, err := w.collect(ctx, from, records, out, counter, write)
	out.Totals.Elapsed = time.Since(start)
	if finish != nil {
		err = finish(err)
	}
	err = closeJournal(records, out.Totals, err)
	ended := err
	if ended == nil && (out.Totals.Left > 0 || out.Totals.Provisional > 0) { // a resumed run asks about them again
		ended = errors.New("some items lack an answer, or a voter")
	}
	err = errors.Join(err, from.End(ctx, ended))
	out.Evaluation = counter.Report(out.Totals)
	out.Evaluation.Cost = cost
	out.Evaluation.Dropped = eval.DroppedAnswers(out.Totals, &pipeline.Pipeline{}, from.Labels)
	for _, s := range from.Manifest.Stages { // nothing else says which voters are asked over the network
		if name, ok := strings.CutPrefix(s.Stage, "sample."); ok && s.Price != nil {
			askedOver(&out.Evaluation, out.Totals, name)
		}
	}
	if out.Err = err; w.options.Events.Ended != nil {
		w.options.Events.Ended(out)
	}
	return out, err
}

// collect takes the answers as they come, until all are there or one cannot be kept or written. It
// returns their cost.
func (w *Workspace) collect(ctx context.Context, from Elsewhere, records *journal.Journal, out *Outcome, counter *eval.Counter, write func([]outcome.Result) error) (cost float64, err error) {
	var counted tally
	var ended error
	for a, e := range from.Answers {
		if err = e; err == nil {
			err = ctx.Err()
		}
		if err != nil {
			break
		}
		batch := results(a)
		var fresh int
		if fresh, err = keepLacking(records, batch); err != nil {
			break
		}
		out.Totals.Earlier += len(batch) - fresh
		for _, one := range batch {
			out.Totals.Add(one)
			counter.Add(one)
			for _, c := range one.Costs {
				cost += c
			}
		}
		for _, why := range a.Left {
			out.Totals.AddLeft(outcome.FailureOf(why))
		}
		worked(&out.Totals, a)
		if ended == nil {
			ended = a.Ended
		}
		if w.options.Events.Answered != nil {
			w.options.Events.Answered(batch)
		}
		w.progress(counted.add(batch, terminal.ProgressStep{Doing: "answering", Total: int64(from.Items)}))
		if err = write(batch); err != nil {
			break
		}
	}
	if err == nil {
		err = ended
	}
	if got := out.Totals.Items + out.Totals.Left; err == nil && got != from.Items {
		err = fmt.Errorf("%d of the %d items have come back: results of the run were removed from the servers", got, from.Items)
	}
	return cost, err
}

// results returns the results of answers, except for rows that were left.
func results(a run.Answers) []outcome.Result {
	if len(a.Left) == 0 {
		return a.Results
	}
	var all []outcome.Result
	for i, one := range a.Results {
		if _, left := a.Left[i]; !left {
			all = append(all, one)
		}
	}
	return all
}

// attached returns the journal of a run elsewhere: the present one of this workspace, or a new one.
func (w *Workspace) attached(from Elsewhere) (*journal.Journal, error) {
	m := from.Manifest
	how := journal.Options{Keep: from.Keep}
	if m.Cluster == nil {
		return nil, errors.New("the manifest of the run does not say where it is")
	}
	if id, ok := w.Runs().Elsewhere(m.Cluster.Run); ok {
		return w.Runs().Resume(id, how)
	}
	records, _, err := w.Runs().Begin(m, how, journal.Retention{})
	return records, err
}

// worked adds the times of stages, and which stages had to stop.
func worked(t *outcome.Totals, a run.Answers) {
	for _, f := range a.Halted {
		outcome.Count(&t.Missing, f, 0)
	}
	for _, voter := range a.Distributions {
		if !slices.Contains(t.Distributions, voter) {
			t.Distributions = append(t.Distributions, voter)
		}
	}
	for _, s := range a.Times {
		at := slices.IndexFunc(t.Stages, func(have outcome.StageTime) bool { return have.Stage == s.Stage })
		if at < 0 {
			t.Stages = append(t.Stages, s)
			continue
		}
		t.Stages[at].Rows += s.Rows
		t.Stages[at].Busy += s.Busy
	}
}

// Part is another process's run in which this one takes part: it answers that process's Remote.
type Part struct {
	Manifest journal.Manifest
	Spend    spend.Limit // the run's limit, which decides about which items paid voters are asked
}

// DifferentError says that a pipeline differs from the run in which it should take part, so that
// its answers would differ.
type DifferentError struct {
	Differences []string // what differs here
}

func (e *DifferentError) Error() string {
	return "answers would differ from those of the run: " + strings.Join(e.Differences, "; ")
}

// Join prepares to take part in the run of Options.Part: it starts the stages, with what they chose
// when the run began, and opens the present knowledge without building it. A *DifferentError says
// that this process's answers would differ from the run's.
func (p *Pipeline) Join(ctx context.Context) error {
	part := p.workspace.options.Part
	p.recall(part.Manifest.Stages)
	if part.Spend.IsSet() {
		forecast, err := p.spendForecast(ctx, part.Spend)
		if err != nil {
			return p.explain(err)
		}
		p.asker = spend.NewAsker(spend.Options{Limit: part.Spend, Forecast: forecast, Cost: p.chosen.Cost})
	}
	now, err := p.depends(ctx)
	if err != nil {
		return err
	}
	now.Input, now.Limit = part.Manifest.Input, part.Manifest.Limit // this process has no input
	all := part.Manifest.Differences(now)
	if was := part.Manifest.Revision; was != "" && now.Revision != "" && was != now.Revision { // one version has many revisions
		all = append(all, fmt.Sprintf("racflow was built from revision %s, there from %s", now.Revision, was))
	}
	if now.Labels != part.Manifest.Labels {
		all = append(all, "the labels of the knowledge")
	}
	if len(all) > 0 {
		return &DifferentError{all}
	}
	return nil
}

// Take processes an order of the run of Options.Part. Several may be under way at a time. An error
// says that the order is not answered here, but may be elsewhere.
func (p *Pipeline) Take(ctx context.Context, o run.Order) (run.Answers, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return run.Answers{}, err
	}
	if p.asker == nil || o.Pass == run.Once {
		if o.Pass != run.Once {
			return run.Answers{}, fmt.Errorf("an order of pass %d in a run that takes one", o.Pass)
		}
		return r.Work(ctx, o.Rows)
	}
	lines := make([]int, len(o.Rows))
	for i, row := range o.Rows {
		lines[i] = row.Line
	}
	if err := p.asker.Begin(ctx, lines, o.Pass == run.Asking); err != nil {
		return run.Answers{}, err
	}
	a, err := r.Work(ctx, o.Rows)
	a.Bills = p.asker.End(lines)
	return a, err
}

// stands returns the generations of the other process's run; nil: this process takes part in none.
func (p *Part) stands() map[string]run.Generation {
	if p == nil {
		return nil
	}
	all := map[string]run.Generation{}
	for _, k := range p.Manifest.Knowledge {
		all[k.Name] = run.Generation(k)
	}
	return all
}

// Remote answers the items of a run on other machines (package remote). This process still reads
// the input, updates the knowledge, keeps the journal and writes the results.
type Remote interface {
	run.Remote
	// Begin is called before the first Answer, when the run is known. An error ends the run.
	Begin(ctx context.Context, b Beginning) error
	// End is called after the last Answer, when the results are written and the journal is closed.
	// err says why the run ended early; nil: it is complete. End is also called if Begin failed.
	End(ctx context.Context, err error) error
}

// Beginning describes a run to a Remote.
type Beginning struct {
	Pipeline *Pipeline
	Manifest journal.Manifest
	Labels   []string // those of the knowledge
	Resumed  bool     // an earlier part of the run has answered some items
	// Keep puts results into the journal that earlier parts of the run left elsewhere; their items are not asked
	// about again. It returns how many were new to the journal. nil: the run takes several passes, and cannot use
	// them.
	Keep func([]outcome.Result) (fresh int, err error)
	// Place records in the journal where the run is from now on; nil: there is no journal.
	Place func(journal.ManifestCluster) error
}

// begin describes the run to Options.Remote.
func (p *Pipeline) begin(ctx context.Context, records *journal.Journal, resumed, twice bool, labels []string) (err error) {
	remote := p.workspace.options.Remote
	if remote == nil {
		return nil
	}
	b := Beginning{Pipeline: p, Labels: labels, Resumed: resumed}
	if records == nil {
		if b.Manifest, err = p.manifest(ctx); err != nil {
			return err
		}
	} else {
		if b.Manifest, err = p.begun(ctx, records.Manifest); err != nil {
			return err
		}
		b.Place = func(at journal.ManifestCluster) error {
			records.Manifest.Cluster = &at
			return records.Manifest.Write(records.Folder(), true)
		}
	}
	if records != nil && resumed && !twice {
		records.Index() // an answer kept from now on is found when its row is read
		b.Keep = func(all []outcome.Result) (int, error) { return keepLacking(records, all) }
	}
	return remote.Begin(ctx, b)
}

// begun returns the manifest of a continued run: with Options.ResumeAnyway, a resumed run may
// depend on other things than when it began.
func (p *Pipeline) begun(ctx context.Context, kept journal.Manifest) (journal.Manifest, error) {
	now, err := p.depends(ctx)
	kept.Version, kept.Revision, kept.Parts, kept.Variables, kept.Rules = now.Version, now.Revision, now.Parts, now.Variables, now.Rules
	kept.Knowledge, kept.Labels, kept.Stages, kept.Answers = now.Knowledge, now.Labels, now.Stages, now.Answers
	return kept, err
}

// keepLacking adds results to a journal, except those already there, and returns how many it added.
func keepLacking(records *journal.Journal, all []outcome.Result) (int, error) {
	fresh := slices.DeleteFunc(slices.Clone(all), func(r outcome.Result) bool {
		_, has := records.Answered(source.Row{Line: r.Line, ID: r.ID})
		return has
	})
	return len(fresh), records.Keep(fresh)
}

// settle updates in a resumed run's manifest where other machines answer its items, if that has
// changed.
func settle(records *journal.Journal, now *journal.ManifestCluster, sync journal.Sync) error {
	m := &records.Manifest
	switch {
	case now == nil || m.Cluster != nil && m.Cluster.Servers == now.Servers:
		return nil
	case m.Cluster == nil:
		m.Cluster = now
	default:
		m.Cluster = &journal.ManifestCluster{Run: m.Cluster.Run, Servers: now.Servers}
	}
	return m.Write(records.Folder(), sync.Forces())
}

// passes tells other machines in which pass the run is.
type passes struct{ *spend.Spender }

func (s passes) Pass() run.Pass {
	if s.Asks() {
		return run.Asking
	}
	return run.Survey
}

// ShipFile is a file that another machine needs in its state folder to do the same work.
type ShipFile struct {
	Name  string // below the state folder, with slashes
	Path  string // where the file is now
	Fixed bool   // the file never changes, so it may be linked
}

// Shipment returns the files of the state folder that a worker needs: the searched generations, if
// their stores keep them in folders; what stages learned from them; samples of attached collections;
// and profiles of the models. The first call fixes the files: they do not change until the workspace
// is closed, whoever writes to the stores. It is an error if another process has changed a generation
// between the start of the pipeline and that call.
func (p *Pipeline) Shipment() ([]ShipFile, error) {
	p.shipping.Lock()
	defer p.shipping.Unlock()
	if p.shipped == nil {
		files, err := p.ship()
		if err != nil {
			return nil, err
		}
		p.shipped = files
	}
	return slices.Clone(p.shipped), nil
}

func (p *Pipeline) ship() ([]ShipFile, error) {
	ctx := p.workspace.ctx
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	s, err := p.newShipment()
	if err != nil {
		return nil, err
	}
	blocks, learnt := p.chosen.Knowledge(), map[string]bool{}
	for _, id := range r.Graph().Identities() {
		learnt[id.Learnt] = true
	}
	delete(learnt, "")
	for i, k := range r.Graph().Knowledge() {
		block := blocks[i]
		switch collection, _ := k.Generation(); {
		case k.Attached():
			err = s.sample(attached.Kept(p.workspace.samples(), block))
		case !block.Store.Info.Network:
			if err = s.collections(block, collection); err == nil {
				err = k.Unchanged(ctx)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("knowledge %q: take it to other machines: %w", block.Name, err)
		}
		from, _, _ := k.Learnt()
		for name := range learnt {
			if err := s.folder(path.Join("fitted", from, name), filepath.Join(p.workspace.fitted(), from, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("what stages learnt from knowledge %q: %w", block.Name, err)
			}
		}
	}
	if err := s.models(ctx, p); err != nil {
		return nil, err
	}
	slices.SortFunc(s.files, func(a, b ShipFile) int { return strings.Compare(a.Name, b.Name) })
	return append([]ShipFile{}, s.files...), nil // never nil: nil means not shipped yet
}

// shipmentsFolder has the files of shipments, below the state folder.
const shipmentsFolder = "shipments"

// abandoned is the age from which files of a shipment count as left behind by a killed process.
const abandoned = 24 * time.Hour

// shipment is a set of files that do not change.
type shipment struct {
	dir   string // has links and copies of files that others may change
	files []ShipFile
}

// newShipment makes an empty shipment, which exists until the workspace is closed.
func (p *Pipeline) newShipment() (*shipment, error) {
	w := p.workspace
	root := filepath.Join(w.state, shipmentsFolder)
	if err := disk.MakeBelow(w.state, root); err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
	dir, err := os.MkdirTemp(root, "") // only the owner may read it
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shipments = append(w.shipments, dir)
	return &shipment{dir: dir}, nil
}

// StoreFolder names the folder below a worker's state folder, with slashes, for the collections of a
// store whose folder the pipeline file names.
func StoreFolder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "stores/" + hex.EncodeToString(sum[:8])
}

// StorePaths returns the folders in a store's config; none: it uses the state folder or a server.
func StorePaths(store *pipeline.Stage) (folders []string) {
	if store.Info.Network {
		return nil
	}
	for _, path := range store.Paths() {
		if info, err := os.Stat(path); err != nil || info.IsDir() { // a missing folder will be made
			folders = append(folders, path)
		}
	}
	return folders
}

// collections adds a generation and the centroids of its labels. Of another store than local it adds
// everything in the store's folder.
func (s *shipment) collections(block *pipeline.Knowledge, collection string) error {
	name, dir := path.Join("knowledge", block.Name), filepath.Join(filepath.Dir(filepath.Dir(s.dir)), "knowledge", block.Name)
	named := StorePaths(block.Store)
	if len(named) > 0 {
		name, dir = StoreFolder(named[0]), named[0]
	}
	if !block.Store.Is("local") {
		err := s.folder(name, dir)
		if errors.Is(err, fs.ErrNotExist) && len(named) == 0 {
			return nil // the store keeps nothing in a folder
		}
		return err
	}
	for _, collection := range []string{collection, generation.Centroids(collection)} {
		if err := s.collection(name, dir, generation.FolderName(collection)); err != nil {
			return err
		}
	}
	return nil
}

// collection adds a folder of a collection of the store local.
func (s *shipment) collection(name, dir, folder string) error {
	name = path.Join(name, folder)
	to := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := disk.MakeBelow(s.dir, filepath.Dir(to)); err != nil {
		return err
	}
	files, err := generation.CopyFolder(filepath.Join(dir, folder), to)
	for _, file := range files {
		s.files = append(s.files, ShipFile{
			Name: path.Join(name, file), Path: filepath.Join(to, file), Fixed: strings.HasSuffix(file, generation.SegmentSuffix),
		})
	}
	return err
}

// folder adds all files of a folder, which others may change.
func (s *shipment) folder(name, dir string) error {
	return filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		inside, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		s.files = append(s.files, ShipFile{Name: path.Join(name, filepath.ToSlash(inside)), Path: at})
		return nil
	})
}

// models adds the profiles of the models that the pipeline asks.
func (s *shipment) models(ctx context.Context, p *Pipeline) error {
	profiles := p.workspace.options.Services.known()
	if profiles == nil {
		return nil
	}
	seen := map[string]bool{}
	return p.models(ctx, plan.Askings(p.chosen), p.looking, func(_ plan.Asking, m sdk.Model) error {
		file, err := profiles.File(m.Endpoint(), m.Name())
		if errors.Is(err, fs.ErrNotExist) || err == nil && seen[file] { // no profile yet, or already added for another stage
			return nil
		} else if err != nil {
			return err
		}
		seen[file] = true
		to := filepath.Join(s.dir, filepath.Base(file))
		s.files = append(s.files, ShipFile{Name: path.Join(ProfilesFolder, filepath.Base(file)), Path: to})
		return disk.LinkFile(file, to)
	})
}

// sample adds the files of a sample. A new sample replaces each file as a whole.
func (s *shipment) sample(files []string) error {
	for _, file := range files {
		to := filepath.Join(s.dir, filepath.Base(file))
		if err := disk.LinkFile(file, to); err != nil {
			return err
		}
		s.files = append(s.files, ShipFile{Name: path.Join("attached", filepath.Base(file)), Path: to, Fixed: true})
	}
	return nil
}
