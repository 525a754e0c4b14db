package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/document"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// Columns returns the columns of the input beside ids and texts, for formats of results that begin
// with them. If the file does not begin with the names of its columns, or with types set, it reads
// all rows. It opens an input that can be read only once, but reads none of its rows.
func (p *Pipeline) Columns(types bool) (result.Input, error) {
	rows, err := p.Rows()
	if err != nil {
		return result.Input{}, err
	}
	names, known := rows.Fields()
	if !p.rereadable() {
		p.opened = rows
		in := result.Input{Labels: true, Open: !known}
		in.Add(source.Row{Fields: unknown(names)})
		return in, nil
	}
	defer rows.Close() //nolint:errcheck // it was only read
	var in result.Input
	in.Add(source.Row{Fields: unknown(names)})
	for types || !known || !in.Labels {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in, err
		}
		in.Add(row)
	}
	return in, nil
}

// unknown returns fields without known values.
func unknown(names []string) []source.Field {
	all := make([]source.Field, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

// Reaches reports whether a run over the input can have at least n results. It assumes so for an
// input that can be read only once.
func (p *Pipeline) Reaches(n int64) (bool, error) {
	if !p.rereadable() {
		return true, nil
	}
	err := p.look(func(source.Row) bool {
		n--
		return n > 0
	})
	return n <= 0, err
}

// Rows reads the items of an input.
type Rows struct {
	*source.Reader
	limit int

	read  atomic.Int64 // number of rows
	ended atomic.Bool
}

// Next returns the next row; io.EOF after the last one, or after Options.Limit.
func (r *Rows) Next() (source.Row, error) {
	if r.limit > 0 && r.read.Load() >= int64(r.limit) {
		r.ended.Store(true)
		return source.Row{}, io.EOF
	}
	row, err := r.Reader.Next()
	if err == nil {
		r.read.Add(1)
	} else if errors.Is(err, io.EOF) {
		r.ended.Store(true)
	}
	return row, err
}

// Total returns the final number of rows. about: it is an estimate from the share of the files'
// bytes read so far. 0: unknown. Any goroutine may call it at any time.
func (r *Rows) Total() (rows int64, about bool) {
	rows = r.read.Load()
	if r.ended.Load() {
		return rows, false
	}
	bytes, size := r.Progress()
	if rows == 0 || bytes <= 0 || bytes >= size { // the last bytes have been read, but not their rows
		return int64(r.limit), false
	}
	rows = int64(float64(rows) * float64(size) / float64(bytes))
	if r.limit > 0 && rows >= int64(r.limit) {
		return int64(r.limit), false
	}
	return rows, true
}

// input returns the source of items, from Options or the file.
func (p *Pipeline) input() pipeline.Source {
	s := pipeline.Source{ID: "id", Text: "text", Label: "label"}
	if p.chosen.Input != nil {
		s = *p.chosen.Input
	}
	if path := p.workspace.options.Input; path != "" {
		s.Replace(path)
	}
	return s
}

// Rows opens the input.
func (p *Pipeline) Rows() (*Rows, error) {
	o, s := p.workspace.options, p.input()
	if s.Path == "" {
		return nil, optionError("Input", "pipeline %[2]q has no input block: name a file with %[1]s", p.chosen.Name)
	}
	if s.Path == "-" && o.Stdin == nil {
		return nil, errors.New("the input is standard input, and Options.Stdin has none")
	}
	if r := p.opened; r != nil {
		p.opened = nil
		return r, nil
	}
	m := s.Mapping()
	m.Fields = true
	r, err := source.Open(s.Path, s.Form, m, o.Stdin)
	if err != nil {
		return nil, err
	}
	return &Rows{Reader: r, limit: o.Limit}, nil
}

// InputPath returns the file of items, "-" for Options.Stdin; empty: there is none.
func (p *Pipeline) InputPath() string { return p.input().Path }

// rereadable reports whether the input can be read more than once. Standard input and pipes cannot.
// A missing file can: reading it reports the error.
func (p *Pipeline) rereadable() bool {
	path := p.InputPath()
	_, err := os.Stat(path)
	return path != "-" && (err != nil && !source.IsGlob(path) || source.Regular(path))
}

// searched returns the knowledge that the last retrieve stage searches; nil: there is none.
func (p *Pipeline) searched() (block *pipeline.Knowledge) {
	for _, s := range p.chosen.Stages {
		if s.Retrieve != nil && s.Enabled {
			block = s.Retrieve.From
		}
	}
	return block
}

// decided returns the decisions of people about items.
func (p *Pipeline) decided() reviewed.Decisions {
	block := p.searched()
	if block == nil {
		return nil
	}
	rows, _ := reviewed.Read(block.Reviewed()) // the build of the knowledge reports errors
	return reviewed.Of(rows)
}

// Reads returns the files that a run reads.
func (p *Pipeline) Reads() []string {
	all := []string{p.file.Path}
	read := func(path string) {
		if files, err := source.Files(path); err == nil {
			all = append(all, files...)
		}
	}
	read(p.InputPath())
	for _, k := range p.chosen.Knowledge() {
		for _, s := range k.Sources {
			if all = append(all, s.Path); s.Documents == nil && !s.Reviewed {
				read(s.Path)
			}
		}
	}
	return all
}

// Depends returns the files, beside the input, on whose content the answers depend. files are the
// pipeline file and those that its expressions read, files of variables, the lock of plugins, and
// files that arguments of stages name; rows are the sources of rows, which may be globs, and
// folders those of documents.
func (p *Pipeline) Depends() (files, rows []string, folders []document.Set) {
	add := func(path string) {
		if at, err := filepath.Abs(path); err == nil && path != "-" && !slices.Contains(files, at) {
			files = append(files, at)
		}
	}
	add(p.file.Path)
	add(plugin.LockBeside(p.file.Path))
	for _, path := range slices.Concat(p.workspace.options.VarFiles, p.file.Reads) {
		add(path)
	}
	named := func(s *pipeline.Stage) {
		for _, path := range pathsIn(s.Info.Arguments, s.Config.Public) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // excludes a store's folder, which changes
				add(path)
			}
		}
	}
	for _, s := range p.chosen.Stages {
		named(s)
		for _, f := range s.Fallbacks {
			named(f.Stage)
		}
	}
	for _, k := range p.chosen.Knowledge() {
		for _, s := range k.Stages() {
			named(s)
		}
		for _, from := range k.Sources {
			if from.Documents != nil {
				folders = append(folders, *from.Documents)
			} else if from.Path != "-" {
				rows = append(rows, from.Path)
			}
		}
	}
	return files, rows, folders
}

// DefaultState is the state folder where Options names none. A folder of this name is made
// accessible to its owner only, even if it existed with wider permissions. In a folder of another
// name, this applies only to what racflow makes in it.
const DefaultState = ".racflow"

// Options complement a pipeline file. Only Builtin is required.
type Options struct {
	Builtin Builtin  // from Serve
	Plugins []string // folders of plugins under development, beside those of the environment
	State   string   // folder that keeps knowledge, answers and runs between runs; empty: DefaultState

	Dir      string              // base of relative paths in Vars, VarFiles and Input; empty: the working directory
	Vars     map[string]string   // values of the file's variables, as HCL or bare text
	VarFiles []string            // files of variables; later ones win
	Set      []pipeline.Override // arguments of blocks
	Pipeline string              // name of the pipeline to use, if the file has several

	// Away and Getenv are for work on a file of another machine: Away turns a path in the file into
	// the path on this machine (pipeline.Options.Away), and Getenv replaces the environment. nil: the
	// file is of this machine; os.LookupEnv.
	Away   func(path string) string
	Getenv func(name string) (string, bool)

	Input string // file of items in place of the input block's; "-": Stdin
	// Columns maps meanings ("id", "text", "label" or "gold") to columns of the input's rows, in place
	// of those in the input block. KnowledgeColumns does so for the knowledge's rows ("id", "text",
	// "label" or "context"), in place of those in source blocks.
	Columns, KnowledgeColumns map[string]string
	Limit                     int       // most items; 0: all
	Stdin                     io.Reader // read for "-"; nil: there is none

	// Journal makes Run over an input that can be read again keep each result at once in the state
	// folder. Resume is the ID of a run that left items unanswered, or Newest: Run takes its results
	// and adds the others. The values that its stages chose when they started, and its prices, apply
	// to its end.
	Journal bool
	Resume  string
	// Again is the ID of an earlier run over the same input, or Newest: Run takes its answers if no
	// change can affect them (package journal). It needs Journal.
	Again        string
	ResumeAnyway bool                     // resume although the file, the input or the knowledge has changed
	Output       string                   // absolute path of the file of results, to know later which run left it incomplete; empty: none
	Keep         journal.Keep             // for which items the journal keeps what was seen; empty: as the file says
	Command      *journal.ManifestCommand // stored with a new run, without secrets; may be nil

	Services *Services // shared with other pipelines; nil: not shared

	// Spend limits spending on voters that call services, and spends it where it counts most: over a
	// file, which needs Journal, in two passes (package spend); on single items, one after the other,
	// until it is spent. The results of two passes have no Cost.
	Spend spend.Limit

	// Edition makes the pipeline search knowledge that never changes, not even by another run of the
	// same file: generations beside those of runs. It is for a pipeline that answers for a long time
	// (package live).
	Edition bool

	// Remote answers the items of Work in place of this machine's stages; nil: they answer. Part is the run of
	// another process in which this one takes part, as its Remote; nil: it has a run of its own.
	Remote Remote
	Part   *Part
	// Cluster describes Remote's cluster for the manifest of the run; a resumed run keeps its ID there.
	// nil: not recorded.
	Cluster *journal.ManifestCluster

	Lists bool // keep the texts of what each retrieve and rerank stage found

	ballots bool // keep the ballots of voters, to hold elections again
	strict  bool // end early when a stage has to stop, instead of answering without it: figures are of one method

	// Debug is the stage to debug, named as in messages ("sample.mine"; a stage of a knowledge by that
	// knowledge, "embed.intents"): it is not confined and has no time limits, and Events.Debugging is
	// called before it is opened.
	Debug string

	Observe outcome.Observer // observes batches, calls and requests (package telemetry); may be nil

	Log    *slog.Logger // of stages and the engine; nil: log nothing
	Events Events
}

// Events are callbacks, called by several goroutines at once. Each may be nil.
type Events struct {
	// Begun is called when the first items are about to be taken.
	Begun func(Begun)
	// Answered gets results of the input as they come, a batch at a time.
	Answered func(batch []outcome.Result)
	// Progress gets the progress of long work: the items of the input, each pass over them if it takes
	// several (Options.Spend), the building of knowledge, the learning of stages from it, and the work
	// of Tune.
	Progress func(Progress)
	// Ended gets the outcome for the input.
	Ended func(*Outcome)
	// Measuring gets the variant of a pipeline that Evaluate is about to measure.
	Measuring func(variant string)
	// Advice gets a sentence about something that makes figures worth less.
	Advice func(string)
	// Findings gets certain faults in the rows of the knowledge and the input, found before a run or
	// an evaluation.
	Findings func(doctor.Report)
	// Spent gets the total of all calls of services when a workspace is closed whose stages call some.
	Spent func(governor.Snapshot)
	// Warnings gets diagnostics of a file that is used all the same.
	Warnings func(*DiagnosticsError)
	// Plugins gets the third-party programs that the opened pipeline starts, if no lock fixes one of
	// them or the file exempts one from confinement.
	Plugins func([]*program.Program)
	// Knowledge gets the report of a knowledge that is ready.
	Knowledge func(knowledge.BuildReport)
	// Locked is called when another process is building a knowledge.
	Locked func(name string, why error)
	// Waiting gets a stage that has answered nothing for a while, and what it waits for (package
	// terminal).
	Waiting func(terminal.LongWait)
	// Debugging gets the process id of the stage in Options.Debug, each time that it has started. The
	// stage is opened when Debugging returns; an error gives it up.
	Debugging func(ctx context.Context, stage string, pid int) error
	// Later gets the progress of results that come later, if their stage knows it.
	Later func(retry.PendingWait)
}

// waits passes on waits for results that come later.
func (e Events) waits(w retry.PendingWait) {
	switch {
	case w.Note != "" && e.Later != nil:
		e.Later(w)
	case w.Note == "" && e.Waiting != nil:
		e.Waiting(terminal.LongWait{Stage: w.Stage, Why: fmt.Sprintf("its results come later, and were asked for %s ago", w.For.Round(time.Second)), For: w.For})
	}
}

// Begun describes the journal with which a run begins.
type Begun struct {
	Pipeline *pipeline.Pipeline
	Run      string // ID of the run; empty: there is no journal
	Resumed  bool
	Answered int                   // number of items that the journal has answers for
	Again    *journal.EarlierTerms // which answers of Options.Again hold; nil: there is no such run
	Changed  int                   // number of journal lines changed after they were written: their items are answered again
	Earlier  string                // the newest run of this file and input, if it ended early and is not resumed
	Removed  []journal.RemovedRun  // finished runs that were removed
}

// OptionError says that one of the Options does not suit a file. Its text names the option as
// Options.NAME, like all texts of the engine.
type OptionError struct {
	Option string // name of its field
	text   string
}

func (e *OptionError) Error() string { return e.text }

// optionError makes an OptionError; %[1]s in format is the option.
func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, append([]any{"Options." + option}, args...)...)}
}

// trial tries values of arguments on the items of the input, one target after another.
type trial struct {
	*Pipeline
	subject    tune.Subject
	metric     tune.Metric
	split      bool // some rows are reserved for a promise
	folds      tune.Folds
	set        []pipeline.Override // arguments set in every trial, including values of variables that were kept
	incomplete bool
}

// try tries the values of each target. A better value of a variable stays set for later targets,
// and is written; a better value of an argument does not, because the file would still have another
// one.
func (t *trial) try(ctx context.Context, targets []tune.ValueTarget) (all []tune.ValueTried, err error) {
	now := map[bool][]float64{} // scores of the current settings, by whether some voters are off
	for _, target := range targets {
		off := t.off(target)
		if now[off != nil] == nil {
			if now[off != nil], err = t.scores(ctx, "as it is", off); err != nil {
				return nil, err
			}
		}
		tried, scores := tune.ValueTried{ValueTarget: target, Values: []string{target.Now}}, [][]float64{now[off != nil]}
		for _, value := range target.Values {
			set := pipeline.Override{Target: target.Name, Value: value}
			same, err := t.same(off, set)
			if unsuitable := new(DiagnosticsError); same || target.Unnamed && errors.As(err, &unsuitable) {
				continue
			}
			if err != nil {
				return nil, err
			}
			of, err := t.scores(ctx, set.String(), append(slices.Clip(off), set))
			if err != nil {
				return nil, err
			}
			tried.Values, scores = append(tried.Values, value), append(scores, of)
		}
		tried.Choice = t.folds.Choose(scores)
		all = append(all, tried)
		if best, ok := tried.Best(); ok && target.Variable() != "" {
			t.set = overridden(t.set, []pipeline.Override{{Target: target.Name, Value: best}})
			now = map[bool][]float64{off != nil: scores[tried.Choice.Best]}
		}
	}
	return all, nil
}

// off turns off everything that varying a target does not need: all voters if lists are scored;
// else, if the target does not change what they are asked and others remain, voters that ask
// services or get only the doubtful items. nil: nothing.
func (t *trial) off(target tune.ValueTarget) []pipeline.Override {
	var off []pipeline.Override
	others := false
	for _, s := range t.chosen.Stages {
		votes := slices.Contains([]string{"prompt", "sample", "elect"}, s.Block)
		switch {
		case !s.Enabled || !votes:
		case t.metric.Searches() || s.Block == "sample" && (s.Info.Network || t.subject.Sends(s.Name)):
			off = append(off, pipeline.Override{Target: s.Block + "." + s.Name + ".enabled", Value: "false"})
		case s.Block == "sample":
			others = true
		}
	}
	if !t.metric.Searches() && (target.Calls() || !others) {
		return nil
	}
	return off
}

// same reports whether setting an argument leaves the pipeline as it is.
func (t *trial) same(off []pipeline.Override, set pipeline.Override) (bool, error) {
	parts := func(set []pipeline.Override) (map[string]string, error) {
		o := t.workspace.options
		file, diags, err := t.workspace.read(t.file.Path, o.Input, overridden(o.Set, slices.Concat(t.set, set)))
		if err != nil {
			return nil, err
		}
		if diags.HasErrors() {
			return nil, &DiagnosticsError{diags, file.Sources}
		}
		chosen, err := t.workspace.Choose(file)
		if err != nil {
			return nil, err
		}
		return pipeline.PartDigests(chosen), nil
	}
	before, err := parts(off)
	if err != nil {
		return false, err
	}
	after, err := parts(append(slices.Clip(off), set))
	return maps.Equal(before, after), err
}

// scores runs the pipeline with arguments set, and scores its items.
func (t *trial) scores(ctx context.Context, name string, set []pipeline.Override) ([]float64, error) {
	if events := t.workspace.options.Events; events.Measuring != nil {
		events.Measuring(name)
	}
	v, err := t.variant(ctx, slices.Concat(t.set, set), func(o *Options) {
		o.Lists = t.metric.Searches()
		report := o.Events.Progress
		o.Events.Begun, o.Events.Ended, o.Events.Knowledge = nil, nil, nil // they would be the same for every value
		o.Events.Answered = nil
		if report != nil {
			o.Events.Progress = func(s Progress) {
				if s.Doing == "answering" {
					s.Doing += " with " + name
				}
				report(s)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer v.Close()
	var results []outcome.Result
	out, err := v.Work(ctx, func(batch []outcome.Result) error {
		for _, r := range batch {
			if r.Decided == nil && t.metric.Row(source.Row{Label: r.Expected, Gold: r.Gold}) && !(t.split && tune.ReservedForPromise(r.Text)) {
				results = append(results, r)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	t.incomplete = t.incomplete || out.Incomplete()
	counter, scores := eval.NewCounter(out.Labels...), make([]float64, len(results))
	for i, r := range results {
		scores[i] = t.metric.Score(counter, r)
	}
	if n := len(t.folds.All()); len(scores) != n {
		return nil, fmt.Errorf("%d items were scored, and %d before: the input has changed meanwhile", len(scores), n)
	}
	return scores, nil
}
