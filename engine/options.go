package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/racflow/racflow/engine/again"
	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/spend"
	"github.com/racflow/racflow/engine/waiting"
)

// DefaultState is the state folder where Options names none. One of this name is for its
// owner alone, also where it was made wider before; of one with another name that is so of
// what racflow makes in it.
const DefaultState = ".racflow"

// Options are what a program adds to a pipeline file. Only Builtin is needed.
type Options struct {
	Builtin Builtin  // from Serve
	Plugins []string // folders of plugins that are being developed, beside those of the environment
	State   string   // folder that keeps knowledge, answers and runs between runs; empty: DefaultState

	Dir      string              // that relative paths in Vars, VarFiles and Input begin at; empty: the working directory
	Vars     map[string]string   // values of the file's variables, as HCL or bare text
	VarFiles []string            // files of variables; later ones win
	Set      []pipeline.Override // arguments of blocks
	Pipeline string              // the one to work with where the file holds several

	// Away and Getenv are for work on a file of another machine: where something lies on this one that
	// the file names (pipeline.Options.Away), and what it finds of the environment. nil: the file
	// is of this machine; os.LookupEnv.
	Away   func(path string) string
	Getenv func(name string) (string, bool)

	Input string // file of items in place of the input block's; "-": Stdin
	// Columns are those of the input's rows, by what they mean ("id", "text", "label" or "gold"), in
	// place of what the input block names. KnowledgeColumns are those of the knowledge's rows ("id",
	// "text", "label" or "context"), in place of what source blocks name.
	Columns, KnowledgeColumns map[string]string
	Limit                     int       // items; 0: all
	Stdin                     io.Reader // what "-" reads; nil: there is none

	// Journal keeps the results of Run over the input in the state folder as they are
	// reached, if that can be read again. Resume is the ID of a run that left items
	// unanswered, or Newest: its results come from there, and the others are added. What
	// its stages chose when they started, and its prices, count to its end.
	Journal bool
	Resume  string
	// Again is the ID of an earlier run over the same input, or Newest: Run takes its answers
	// where nothing that has changed can affect them (package again), and needs Journal.
	Again        string
	ResumeAnyway bool              // although the file, the input or the knowledge has changed
	Output       string            // absolute path of the file that results go to, so that it is known which run left it incomplete; empty: none
	Keep         journal.Keep      // of which items the journal has what was seen; empty: as the file says
	Command      *manifest.Command // is kept with a new run, without secrets; may be nil

	Services *Services // shared with other pipelines; nil: this one has its own

	// Spend is what may be spent on voters that call services, where that counts most: over
	// a file, which needs Journal, in two passes (package spend); of items that come one
	// after the other, until it is spent. The results of two passes have no Cost.
	Spend spend.Limit

	// Edition has the pipeline search knowledge that nobody changes meanwhile, also not another run
	// of the same file: generations beside those of runs. It is for a pipeline that answers for
	// long (package live).
	Edition bool

	// Remote answers the items of Work in the place of this machine's stages; nil: those do. Part is
	// the run of another process in which this one takes part, as its Remote; nil: it has its own.
	Remote Remote
	Part   *Part
	// Cluster says where Remote is, for the manifest of the run; a resumed run keeps the ID that it has
	// there. nil: nobody needs to know.
	Cluster *manifest.Cluster

	Lists bool // what each retrieve and rerank stage found has texts

	ballots bool // keep what voters returned, to hold elections again
	strict  bool // end early where a stage has to stop, rather than answer without it: figures are of one method

	// Debug is a stage that a debugger will look at, named as messages name it ("sample.mine";
	// that of a knowledge by its name, "embed.intents"): it is not confined and has no time
	// limits, and Events.Debugging is called before it is opened.
	Debug string

	Observe observe.Observer // hears of batches, calls and requests (package telemetry); nil: nobody listens

	Log    *slog.Logger // what stages and the engine log; nil: nothing
	Events Events
}

// Events are called with what happens meanwhile, by several goroutines at once.
// nil: nobody wants to know.
type Events struct {
	// Begun says that items are taken from now on.
	Begun func(Begun)
	// Answered is given results of the input as they come, a batch at a time.
	Answered func(batch []outcome.Result)
	// Progress says how far what takes long is: the items of the input, each pass over them
	// where it takes several (Options.Spend), the building of knowledge, what stages learn from
	// it, and what Tune does.
	Progress func(Progress)
	// Ended says what came of the input.
	Ended func(*Outcome)
	// Measuring says which variant of a pipeline Evaluate measures now.
	Measuring func(variant string)
	// Advice is a sentence about something that makes figures worth less.
	Advice func(string)
	// Findings are what is wrong for certain with the rows of the knowledge and the input, found
	// before a run or an evaluation.
	Findings func(doctor.Report)
	// Spent is what the calls of services came to when a workspace is closed whose
	// stages call some.
	Spent func(governor.Snapshot)
	// Warnings are diagnostics of a file that is used all the same.
	Warnings func(*DiagnosticsError)
	// Plugins are the programs of third parties that the pipeline which was opened starts, where
	// no lock says what one of them is, or the file keeps one from being confined.
	Plugins func([]*program.Program)
	// Knowledge is ready, and this was done for it.
	Knowledge func(build.Report)
	// Locked says that another process is building a knowledge.
	Locked func(name string, why error)
	// Waiting is given what a stage waits for that has answered nothing for a while
	// (package waiting).
	Waiting func(waiting.Report)
	// Debugging is given the id of the process of the stage that Options.Debug names, each time that
	// it has started. The stage is opened when it returns; an error gives it up.
	Debugging func(ctx context.Context, stage string, pid int) error
	// Later says what is waited for whose results come later, where its stage knows how far that
	// is.
	Later func(pending.Wait)
}

// waits passes on what results that come later are waited for.
func (e Events) waits(w pending.Wait) {
	switch {
	case w.Note != "" && e.Later != nil:
		e.Later(w)
	case w.Note == "" && e.Waiting != nil:
		e.Waiting(waiting.Report{Stage: w.Stage, Why: fmt.Sprintf("its results come later, and were asked for %s ago", w.For.Round(time.Second)), For: w.For})
	}
}

// Begun says with which journal a run begins.
type Begun struct {
	Pipeline *pipeline.Pipeline
	Run      string // its ID; empty: there is no journal
	Resumed  bool
	Answered int            // items that the journal has the answers of
	Again    *again.Terms   // which answers of Options.Again hold; nil: there is no such run
	Changed  int            // lines of the journal that were changed after they were written: their items are answered again
	Earlier  string         // the newest run of this file and input, where it ended early and is not resumed
	Removed  []runs.Removed // finished runs that are not kept any more
}

// OptionError says that one of the Options does not suit a file. Its text names the
// option as Options.NAME, as texts of the engine do.
type OptionError struct {
	Option string // the name of its field
	text   string
}

func (e *OptionError) Error() string { return e.text }

// optionError makes an OptionError; format has %[1]s where the option is named.
func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, append([]any{"Options." + option}, args...)...)}
}
