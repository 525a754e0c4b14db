package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Options holds what a program adds to a pipeline file. Only Builtin is required.
type Options struct {
	Builtin Builtin // from Serve
	// Start starts a stage instead of a process of its own; nil: processes. Only tests of this module can set it: they have
	// stages in memory.
	Start   func(context.Context, host.Spec) (any, error)
	Plugins []string // folders of plugins in development, beside those that the environment names
	State   string   // folder that keeps knowledge, answers and runs between runs; empty: DefaultState
	Cache   string   // folder that keeps vectors and answers of services, which several workspaces may share; empty: State

	Dir      string              // base of relative paths in Vars, VarFiles and Input; empty: the working directory
	Vars     map[string]string   // values of the file's variables, as HCL or bare text
	VarFiles []string            // files of variables; later ones win
	Set      []pipeline.Override // new values of blocks' arguments
	Pipeline string              // the pipeline to use, if the file has several

	// Getenv looks up variables of the environment for the file; nil: os.LookupEnv.
	Getenv func(name string) (string, bool)

	Input string // file of items instead of the input block's; "-": Stdin
	// Columns names the columns of the input's rows, by meaning ("id", "text", "label" or "gold"),
	// instead of the input block. KnowledgeColumns names those of the knowledge's rows ("id",
	// "text", "label" or "context"), instead of the source blocks.
	Columns, KnowledgeColumns map[string]string
	Limit                     int       // items; 0: all
	Stdin                     io.Reader // content of "-"; nil: there is none
	// Share is the part of the items up to Limit that this run answers; Workspace.OpenShares puts the runs together.
	// It needs Journal, and an input that can be read again.
	Share journal.Share
	// WholeLimits leaves limits and budgets as they are for a share; else it gets its part of them, so that all shares
	// together keep to them. Neither is exact: no share knows what others have left.
	WholeLimits bool

	// Journal keeps the results of Run over the input in the state folder as they come, if the
	// input can be read again. Resume is the ID of a run that left items unanswered, or Newest: its
	// results are taken from its journal, and the others added. The run keeps to its end the prices
	// and what its stages chose when they started.
	Journal      bool
	Resume       string
	ResumeAnyway bool                     // resume even if the file, the input or the knowledge has changed
	Output       string                   // absolute path of the file of results, to know later which run left it incomplete; empty: none
	Keep         journal.Keep             // for which items the journal keeps what was seen; empty: the file says
	Command      *journal.ManifestCommand // kept with a new run, without secrets; may be nil

	Services *Services // shared with other pipelines; nil: not shared

	// Spend limits what voters that call services use, and spends it where the others are least sure, in
	// two passes over a file (package spend). It needs Journal, and is for Work only. The results have
	// no Cost.
	Spend spend.Limit

	// Edition makes the pipeline search its own copy of the knowledge, which nobody else changes,
	// not even another run of the same file: generations beside those of runs. It is for long-lived
	// pipelines (package live).
	Edition bool

	// Likely has elections list all labels with their probabilities, if they can, whatever the file says: Pipeline.Shown
	// leaves what it says. What elections learn does not depend on it.
	Likely bool

	// Folds splits the rows of the knowledge into so many parts, to measure without an input: the items are
	// these rows, and Evaluate answers those of each fold by a knowledge without them. 0: the input has the items.
	Folds int
	foldOptions

	expected []pipeline.Override // values that an expect block gives to variables; nil: none does

	Lists bool // results have texts for what each retrieve and rerank stage found

	ballots bool // keep what voters returned, to hold elections again
	// uncalibrated keeps paid voters from being asked about held-out rows: Tune learns from its own.
	uncalibrated bool
	strict       bool // end early if a stage has to stop, rather than answer without it, so that all figures are of one method

	// Debug is a stage to debug, named as in messages ("sample.mine"; a stage of a knowledge by the
	// knowledge's name, "embed.intents"): it is not confined and has no time limits, and
	// Events.Debugging is called before it is opened.
	Debug string

	// Trust decides whether a file may be used that was got from somewhere: it gets what the file wants beyond its
	// folder, before any of that happens, and its error is that of the call that loads the file. nil: all of it is
	// granted.
	Trust func(TrustRequest) error

	// MergeLabels decides whether two labels of existing knowledge become one label. An earlier version of racflow kept
	// labels apart that differ only in blanks at their ends or in their Unicode form. nil: such labels are an error.
	MergeLabels func(question string) bool

	Observe outcome.Observer // receives batches, calls and requests (package telemetry); nil: none

	Log    *slog.Logger // gets what stages and the engine log; nil: no log
	Events Events
}

// Columns says what the rows of the input have beside their ids and texts, for output formats that
// begin with the columns. It reads all rows if the file does not begin with the names of its
// columns, or if types is set. If the input can be read only once, it opens it but reads none of
// its rows.
func (p *Pipeline) Columns(types bool) (output.Input, error) {
	rows, err := p.Rows()
	if err != nil {
		return output.Input{}, err
	}
	if !p.rereadable() {
		names, known := rows.Fields()
		p.opened = rows
		in := output.Input{Labels: true, Form: p.chosen.LabelForm(), Open: !known}
		in.Add(source.Row{Fields: unknown(names)})
		return in, nil
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	return inputOf(rows, p.chosen.LabelForm(), types)
}

// inputOf is Pipeline.Columns for rows that can be read again.
func inputOf(rows *Rows, form sdk.LabelForm, types bool) (output.Input, error) {
	names, known := rows.Fields()
	in := output.Input{Form: form}
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

// unknown returns fields whose values are not known.
func unknown(names []string) []result.Field {
	all := make([]result.Field, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

// reaches reports whether a run over the input can have at least n results. It returns true for an
// input that can be read only once, since nobody knows.
func (p *Pipeline) reaches(n int64) (bool, error) {
	if !p.rereadable() {
		return true, nil
	}
	err := p.eachRow(func(source.Row) bool {
		n--
		return n > 0
	})
	return n <= 0, err
}

// Rows reads the items of an input.
type Rows struct {
	*source.Reader
	limit int
	share journal.Share

	read  atomic.Int64 // number of rows, of all shares
	ended atomic.Bool
}

// Next returns the next row of Options.Share; io.EOF after the last one, or after Options.Limit.
func (r *Rows) Next() (source.Row, error) {
	for {
		row, err := r.next()
		if err != nil || r.share.Has(int(r.read.Load())-1) {
			return row, err
		}
	}
}

func (r *Rows) next() (source.Row, error) {
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

// Total returns the number of rows when all are read. about: it is an estimate, from the share of the
// files' bytes that the rows so far took. 0: it is unknown. Any goroutine may call it at any time.
func (r *Rows) Total() (rows int64, about bool) {
	rows, about = r.total()
	if s := r.share; s.IsSet() {
		rows = (rows + int64(s.Of-s.Number)) / int64(s.Of)
	}
	return rows, about
}

// total is Total for all shares.
func (r *Rows) total() (rows int64, about bool) {
	rows = r.read.Load()
	if r.ended.Load() {
		return rows, false
	}
	bytes, size := r.Progress()
	if rows == 0 || bytes <= 0 || bytes >= size { // the last bytes have been read, but not all their rows
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
		s.Replace(disk.Find(path))
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
	if s.Rows != nil {
		return &Rows{Reader: source.OfRows(s.Path, s.Rows), limit: len(s.Rows)}, nil
	}
	m := s.Mapping()
	m.Fields = true
	r, err := source.Open(s.Path, s.Form, m, o.Stdin)
	if err != nil {
		return nil, err
	}
	return &Rows{Reader: r, limit: o.Limit, share: o.Share}, nil
}

// InputPath returns the file of items, "-" for Options.Stdin; empty: there is none.
func (p *Pipeline) InputPath() string { return p.input().Path }

// rereadable reports whether the input can be read more than once. Standard input and pipes cannot.
// A missing file counts as rereadable: reading it reports the error.
func (p *Pipeline) rereadable() bool {
	in := p.input()
	path := in.Path
	_, err := os.Stat(path)
	return in.Rows != nil || path != "-" && (err != nil && !source.IsGlob(path) || source.Regular(path))
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

// decided returns people's decisions about items.
func (p *Pipeline) decided() reviewed.Decisions {
	block := p.searched()
	if block == nil {
		return nil
	}
	rows, _ := reviewed.Read(block.Reviewed(), block.LabelForm()) // building the knowledge reports errors
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

// Depends returns the files, beside the input, whose content the answers depend on. files: the
// pipeline file and what its expressions read, files of variables, the lock of plugins, and files
// that arguments of stages name; rows: the sources of rows, which may be globs; folders: the
// sources of documents.
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
		for _, path := range s.Paths() {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // leaves out the folder of a store, which changes
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

// DefaultState is the default state folder. Only its owner may use a folder of this name: its
// rights are narrowed if they were wider. In a folder of another name, only what racflow makes in
// it is restricted.
const DefaultState = ".racflow"

// TrustRequest asks whether a pipeline file may have what it wants beyond its folder.
type TrustRequest = trust.Request

// Events holds callbacks for what happens during the work. Several goroutines call them at once. A
// nil callback is not called.
type Events struct {
	// Begun says that the run begins to take items.
	Begun func(Begun)
	// Answered gets results of the input as they come, a batch at a time.
	Answered func(batch []outcome.Result)
	// Progress reports how far long work is: the items of the input, each pass over them if there
	// are several (Options.Spend), the building of knowledge, what stages learn from it, and Tune.
	Progress func(Progress)
	// Ended gets the outcome of the input.
	Ended func(*Outcome)
	// Measuring gets the variant of a pipeline that Evaluate measures now.
	Measuring func(variant string)
	// Advice gets a sentence about something that makes figures less reliable.
	Advice func(string)
	// Findings gets what is certainly wrong with the rows of the knowledge and the input, found
	// before a run or an evaluation.
	Findings func(doctor.Report)
	// Spent gets the cost of the calls of services, when a workspace is closed whose stages call
	// some.
	Spent func(governor.Snapshot)
	// Warnings gets diagnostics of a file that is used nevertheless.
	Warnings func(*DiagnosticsError)
	// Plugins gets the third-party programs of the opened pipeline that no lock identifies, or that
	// the file exempts from confinement.
	Plugins func([]*program.Program)
	// Knowledge gets a report of the work to bring a knowledge up to date.
	Knowledge func(knowledge.BuildReport)
	// Locked reports that another process is building a knowledge.
	Locked func(name string, why error)
	// Waiting gets what a stage is waiting for, if it has answered nothing for a while (package
	// terminal).
	Waiting func(progress.LongWait)
	// Debugging gets the id of the process of the stage that Options.Debug names, each time it has
	// started. The stage is opened when Debugging returns; an error gives it up.
	Debugging func(ctx context.Context, stage string, pid int) error
	// Later gets the state of a wait for results that come later, if the stage knows how far they
	// are.
	Later func(retry.PendingWait)
}

// waits passes on the state of a wait for results that come later.
func (e Events) waits(w retry.PendingWait) {
	switch {
	case w.Note != "" && e.Later != nil:
		e.Later(w)
	case w.Note == "" && e.Waiting != nil:
		e.Waiting(progress.LongWait{Stage: w.Stage, Why: fmt.Sprintf("its results come later, and were asked for %s ago", w.For.Round(time.Second)), For: w.For})
	}
}

// Begun describes a run as it begins.
type Begun struct {
	Pipeline *pipeline.Pipeline
	Run      string // its ID; empty: it has no journal
	Resumed  bool
	Answered int      // items with answers in the journal
	Changed  int      // lines of the journal that were changed later: their items are answered again
	Earlier  string   // the newest run of this file and input, if it ended early and is not resumed
	Removed  []string // IDs of finished runs that are no longer kept
}

// OptionError says that an option does not suit a file. Its text names the option as Options.NAME,
// as all texts of the engine do.
type OptionError struct {
	Option string // field name
	Text   string
}

func (e *OptionError) Error() string { return e.Text }

// optionError makes an OptionError; %[1]s in format stands for the option's name.
func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, append([]any{"Options." + option}, args...)...)}
}
