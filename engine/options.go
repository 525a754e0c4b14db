package engine

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// Options holds what a program adds to a pipeline file. Only Builtin is required.
type Options struct {
	Builtin Builtin  // from Serve
	Plugins []string // folders of plugins in development, beside those that the environment names
	State   string   // folder that keeps knowledge, answers and runs after a run; empty: .racflow
	Cache   string   // folder of the cache of vectors and service answers, which several programs may share; empty: State

	Dir      string            // base of relative paths in Vars, VarFiles and Input; empty: the working directory
	Vars     map[string]string // values of the file's variables, as HCL or bare text
	VarFiles []string          // files of variables; later ones win
	Set      []Override        // new values of blocks' arguments
	Pipeline string            // the pipeline to use, if the file has several

	// Getenv looks up variables of the environment for the file; nil: os.LookupEnv.
	Getenv func(name string) (string, bool)

	Input string // file of items instead of the input block's; "-": Stdin
	// Columns names the columns of the input's rows by their meaning ("id", "text", "label" or
	// "gold"), and replaces the names of the input block. KnowledgeColumns does the same for the rows
	// of the knowledge ("id", "text", "label" or "context"), and replaces the names of the source
	// blocks.
	Columns, KnowledgeColumns map[string]string
	Limit                     int       // items; 0: all
	Stdin                     io.Reader // content of "-"; nil: there is none

	// Journal writes the results of Run over the input to the state folder as they come, if the input
	// can be read again. Resume is Newest, or the ID of a run that left items unanswered: the results
	// in that run's journal are reused, and the missing ones added. To its end, a run keeps the prices
	// of its start and the values that its stages chose then.
	Journal      bool
	Resume       string
	ResumeAnyway bool // resume even if the file, the input or the knowledge has changed

	Services *Services // shared with other pipelines; nil: not shared

	// Trust decides whether a file that another person wrote may be used. It gets everything that the file
	// wants beyond its folder, before any of that happens. The call that loads the file returns
	// Trust's error. nil: everything is granted.
	Trust func(TrustRequest) error

	Log    *slog.Logger // gets what stages and the engine log; nil: no log
	Events Events
}

// Newest stands for the ID of the newest run of a file and pipeline that left items unanswered.
const Newest = "newest"

// Override is a new value of an argument of the file.
type Override struct {
	Target string // STAGE.ARGUMENT, as for racflow run --set
	Value  string // an HCL expression or a text
}

// Services is the state that calls of services share: limits, budget, and what was learnt about
// models. The zero value is ready. Pipelines that share a Services keep to the same limit.
type Services struct{ inside workspace.Services }

// TrustRequest asks whether a pipeline file may have what it wants beyond its folder.
type TrustRequest struct {
	Path   string // of the file
	Folder string // absolute
	Wants  []Want
}

// Want is one thing that a file wants beyond its folder.
type Want struct {
	Kind string // "hosts", "secrets", "files" or "plugins"
	Text string // "gives api.example.com the secret KEY"
	Free bool   // nobody has to grant it
}

// Events holds callbacks for what happens during the work. Several goroutines call them at once. A
// nil callback is not called.
type Events struct {
	// Progress reports how far a long piece of work is: answering the input, building a knowledge, or
	// training a stage on it.
	Progress func(Progress)
	// Waiting reports what a stage is waiting for, if the stage has answered nothing for a while.
	Waiting func(Waiting)
	// Warnings gets diagnostics of a file that is used nevertheless.
	Warnings func(*DiagnosticsError)
	// Advice gets a sentence about something that makes figures less reliable.
	Advice func(string)
}

// Progress reports how far a piece of work is.
type Progress struct {
	Doing string // "answering", "embedding", ...
	Name  string // the object of the work, such as a knowledge; may be empty
	Unit  string // of Done and Total, such as "item" or "byte"
	Done  int64
	Total int64 // 0: unknown
	About bool  // Total is an estimate from how much of a file has been read

	Passages int64   // so far, if a knowledge is built from documents
	Flagged  int64   // among the items done
	Failed   int64   // among the items done
	Paid     float64 // cost of calls of services so far, in the currency of the prices
}

// Waiting says what calls of a stage wait for.
type Waiting struct {
	Stage string // "sample.llm"
	Calls int    // how many wait; 0: unknown
	Why   string
	For   time.Duration // how long the stage has been silent
	Again time.Duration // until the next try; 0: unknown
}

// DiagnosticsError says what is wrong with a file, and where.
// hcl.NewDiagnosticTextWriter prints it, with the lines from Sources.
type DiagnosticsError struct {
	Diagnostics hcl.Diagnostics
	Sources     map[string]*hcl.File // by name
}

// Error returns a line for each diagnostic: FILE:LINE:COLUMN: summary: detail.
func (e *DiagnosticsError) Error() string { return (*workspace.DiagnosticsError)(e).Error() }

// OptionError says that an option does not suit a file.
type OptionError struct {
	Option string // field name
	Text   string // names the option as Options.NAME
}

func (e *OptionError) Error() string { return e.Text }

// ChangedError says that a run cannot be resumed, since it would mix answers from before and after
// a change. Options.ResumeAnyway resumes it nevertheless.
type ChangedError struct {
	Run     string
	Changed []string // what has changed
}

func (e *ChangedError) Error() string { return (*workspace.ChangedError)(e).Error() }

// own turns an error of package workspace into one of this package.
func own(err error) error {
	if diagnostics, ok := errors.AsType[*workspace.DiagnosticsError](err); ok {
		return (*DiagnosticsError)(diagnostics)
	}
	if option, ok := errors.AsType[*workspace.OptionError](err); ok {
		return (*OptionError)(option)
	}
	if changed, ok := errors.AsType[*workspace.ChangedError](err); ok {
		return (*ChangedError)(changed)
	}
	return err
}

// inside returns the options as package workspace has them.
func (o Options) inside() workspace.Options {
	w := workspace.Options{
		Builtin: o.Builtin.stages, Plugins: o.Plugins, State: o.State, Cache: o.Cache,
		Dir: o.Dir, Vars: o.Vars, VarFiles: o.VarFiles, Pipeline: o.Pipeline, Getenv: o.Getenv,
		Input: o.Input, Columns: o.Columns, KnowledgeColumns: o.KnowledgeColumns, Limit: o.Limit, Stdin: o.Stdin,
		Journal: o.Journal, Resume: o.Resume, ResumeAnyway: o.ResumeAnyway,
		Log: o.Log, Events: o.Events.inside(),
	}
	for _, s := range o.Set {
		w.Set = append(w.Set, pipeline.Override(s))
	}
	if o.Services != nil {
		w.Services = &o.Services.inside
	}
	if o.Trust != nil {
		w.Trust = func(r workspace.TrustRequest) error {
			request := TrustRequest{Path: r.Path, Folder: r.Folder}
			for _, want := range r.Wants {
				request.Wants = append(request.Wants, Want{string(want.Kind), want.Text, want.Free})
			}
			return o.Trust(request)
		}
	}
	return w
}

func (e Events) inside() workspace.Events {
	w := workspace.Events{Advice: e.Advice}
	if e.Progress != nil {
		w.Progress = func(s progress.Step) { e.Progress(Progress(s)) }
	}
	if e.Waiting != nil {
		w.Waiting = func(l progress.LongWait) { e.Waiting(Waiting(l)) }
	}
	if e.Warnings != nil {
		w.Warnings = func(d *workspace.DiagnosticsError) { e.Warnings((*DiagnosticsError)(d)) }
	}
	return w
}
