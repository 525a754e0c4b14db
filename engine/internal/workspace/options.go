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
	// Start starts a stage in place of a process; nil: each stage is a process. Only tests of this module can set it,
	// for stages in memory.
	Start   func(context.Context, host.Spec) (any, error)
	Plugins []string // folders of plugins in development; the environment can name more
	State   string   // folder that stores knowledge, answers and runs between runs; empty: DefaultState
	Cache   string   // folder that stores vectors and services' answers, which several workspaces may share; empty: State

	Dir      string              // base of relative paths in Vars, VarFiles and Input; empty: the working directory
	Vars     map[string]string   // values of the file's variables, as HCL or bare text
	VarFiles []string            // files of variables; later ones win
	Set      []pipeline.Override // new values of blocks' arguments
	Pipeline string              // the pipeline to use, if the file has several

	// Getenv looks up variables of the environment for the file; nil: os.LookupEnv.
	Getenv func(name string) (string, bool)

	Input string // file of items instead of the input block's; "-": Stdin
	// Columns names the columns of the input's rows by meaning ("id", "text", "label" or "gold"), in place of the input
	// block. KnowledgeColumns does the same for the knowledge's rows ("id", "text", "label" or "context"), in place of
	// the source blocks.
	Columns, KnowledgeColumns map[string]string
	Limit                     int       // items; 0: all
	Stdin                     io.Reader // content of "-"; nil: there is none
	// Share is the part of the first Limit items that this run answers. Workspace.OpenShares joins the runs. Share
	// needs Journal, and a rereadable input.
	Share journal.Share
	// WholeLimits applies limits and budgets in full to a share. Without it, a share gets its part of them, so that all
	// shares together stay within them. Both are inexact: no share knows what others have left.
	WholeLimits bool

	// Journal stores the results of Run in the state folder as they come, if the input is rereadable. Resume is the ID
	// of a run that left items unanswered, or Newest: the run takes the results in its journal, and adds the others. A
	// run keeps its prices, and the values that its stages chose when they started, to its end.
	Journal      bool
	Resume       string
	ResumeAnyway bool                     // resume even after a change of the file, the input or the knowledge
	Output       string                   // absolute path of the results file, to know later which run left it incomplete; empty: none
	Keep         journal.Keep             // items for which the journal keeps what was seen; empty: the file decides
	Command      *journal.ManifestCommand // stored with a new run, without secrets; may be nil

	Services *Services // shared with other pipelines; nil: not shared

	// Spend limits the usage of voters that call services. The usage goes to the items about which the other voters are
	// least sure, in two passes over a file (package spend). It needs Journal, and works only with Work. The results
	// have no Cost.
	Spend spend.Limit

	// Edition makes the pipeline search its own pinned copy of the knowledge, beside the index versions of runs. Nobody
	// else changes the copy, not even another run of the same file. It is for long-lived pipelines (package live).
	Edition bool

	// Likely makes elections list all labels with their probabilities, if they can, whatever the file says.
	// Pipeline.Shown keeps only what the file asks for. What elections learn does not depend on it.
	Likely bool

	// Folds splits the rows of the knowledge into this many parts, to measure without an input. The items are these
	// rows, and Evaluate answers each fold with a knowledge that lacks the fold. 0: the items come from the input.
	Folds int
	foldOptions

	expected []pipeline.Override // values that an expect block gives to variables; nil: no block does

	Lists bool // results include the texts that each retrieve and rerank stage found

	ballots bool // keep the voters' ballots, to repeat elections
	// uncalibrated keeps paid voters from being asked about held-out rows: Tune learns from its own rows.
	uncalibrated bool
	strict       bool // end early if a stage has to stop, instead of answering without it: all figures then describe one method

	// Debug names a stage to debug, as messages do ("sample.mine"; a stage of a knowledge by the knowledge's name,
	// "embed.intents"). The stage is not confined and has no time limits. Events.Debugging is called before the stage
	// is opened.
	Debug string

	// Trust decides whether a file from elsewhere may be used. It gets what the file wants beyond its folder, before
	// any of that happens. The call that loads the file returns its error. nil: everything is granted.
	Trust func(TrustRequest) error

	// MergeLabels decides whether two labels of existing knowledge become one. An earlier version of racflow
	// distinguished labels that differ only in blanks at their ends or in their Unicode form. nil: such labels are an
	// error.
	MergeLabels func(question string) bool

	Observe outcome.Observer // receives batches, calls and requests (package telemetry); nil: none

	Log    *slog.Logger // receives log records of stages and the engine; nil: no log
	Events Events
}

// Columns describes the columns of the input's rows beside id and text, for output formats that begin with the columns.
// It reads all rows if the file does not begin with its column names, or if types is set. If the input can be read only
// once, Columns opens it but reads no rows.
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

// inputOf is Pipeline.Columns for rereadable rows.
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

// unknown returns fields with unknown values.
func unknown(names []string) []result.Field {
	all := make([]result.Field, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

// reaches reports whether a run over the input can have at least n results. It returns true for an input that can be
// read only once, since its length is unknown.
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

// Next returns the next row of Options.Share, or io.EOF after the last row or after Options.Limit.
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

// Total returns how many rows the input will have had at its end; 0: unknown. about says that the number is an
// estimate, from the share of the files' bytes that the rows so far took. Any goroutine may call Total at any time.
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
	if rows == 0 || bytes <= 0 || bytes >= size { // the last bytes have been read, but not all rows in them
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

// Depends returns the files, beside the input, whose content affects the answers. files are the pipeline file and what
// its expressions read, files of variables, the lock of plugins, and files that arguments of stages name. rows are the
// sources of rows, which may be globs. folders are the sources of documents.
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
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // not the folder of a store, which changes
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

// DefaultState is the default state folder. Only its owner may use a folder of this name: wider permissions are
// narrowed. In a folder of another name, only what racflow creates there is restricted.
const DefaultState = ".racflow"

// TrustRequest asks whether a pipeline file may have what it wants beyond its folder.
type TrustRequest = trust.Request

// Events holds callbacks for what happens during the work. Several goroutines call them at the same time. A nil
// callback is not called.
type Events struct {
	// Begun reports that the run starts on its items.
	Begun func(Begun)
	// Answered receives results of the input as they come, in batches.
	Answered func(batch []outcome.Result)
	// Progress reports the progress of long work: the items of the input, each pass over them if there are several
	// (Options.Spend), the building of knowledge, what stages learn from it, and Tune.
	Progress func(Progress)
	// Ended receives the outcome of the input.
	Ended func(*Outcome)
	// Measuring receives the variant of a pipeline that Evaluate starts to measure.
	Measuring func(variant string)
	// Advice receives a sentence about something that makes figures less reliable.
	Advice func(string)
	// Findings receives certain errors in the rows of the knowledge and the input, found before a run or an evaluation.
	Findings func(doctor.Report)
	// Spent receives the cost of the calls to services, when a workspace whose stages call services is closed.
	Spent func(governor.Snapshot)
	// Warnings receives diagnostics of a file that is used nevertheless.
	Warnings func(*DiagnosticsError)
	// Plugins receives the opened pipeline's third-party programs that no lock identifies, or that the file exempts
	// from confinement.
	Plugins func([]*program.Program)
	// Knowledge receives a report about each update of a knowledge.
	Knowledge func(knowledge.BuildReport)
	// Locked reports that another process is building a knowledge.
	Locked func(name string, why error)
	// Waiting receives what a stage is waiting for, if the stage has answered nothing for a while (package terminal).
	Waiting func(progress.LongWait)
	// Debugging receives the process id of the stage that Options.Debug names, each time the stage has started. The
	// stage is opened when Debugging returns; after an error it is not opened.
	Debugging func(ctx context.Context, stage string, pid int) error
	// Later receives the state of a wait for results that come later, if the stage knows it.
	Later func(retry.PendingWait)
}

// waits reports the state of a wait for results that come later.
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
	Changed  int      // changed lines of the journal: their items are answered again
	Earlier  string   // the newest run of this file and input, if it ended early and this run does not resume it
	Removed  []string // IDs of finished runs that were removed
}

// OptionError says that an option does not suit a file. Its text names the option as Options.NAME, as all texts of the
// engine do.
type OptionError struct {
	Option string // field name
	Text   string
}

func (e *OptionError) Error() string { return e.Text }

// optionError makes an OptionError; %[1]s in format is replaced by the option's name.
func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, append([]any{"Options." + option}, args...)...)}
}
