package pipeline

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// File is a checked pipeline file: every name in it is known, every type fits
// and every rule compiles.
type File struct {
	Path      string
	Sources   map[string]*hcl.File // by file name, for printing diagnostics
	Variables []Variable           // in file order
	Limits    []*Limit
	Knowledge []*Knowledge
	Pipelines []*Pipeline

	loader *loader // has the values that expressions name
}

// Variable is a variable of the file with the value it got.
type Variable struct {
	Name, Doc string
	Value     string // as text; a secret reads "(secret)"
	From      string // "default", "-var", a file's name or an environment variable's
}

// Knowledge is a knowledge block: what a pipeline knows and how it is kept.
type Knowledge struct {
	Name     string
	Source   Source
	Chunk    *Stage   // cuts documents into entries; nil: a document is one entry
	Enrich   []*Stage // add to entries, in file order, disabled ones too
	Embed    *Stage
	Store    *Stage
	Analyzer string // of the lexical side
	Range    hcl.Range
}

// Stages returns the stages of the block that there are and that are enabled.
func (k *Knowledge) Stages() []*Stage {
	var all []*Stage
	if k.Chunk != nil {
		all = append(all, k.Chunk)
	}
	all = append(all, k.Enrichers()...)
	return append(all, k.Embed, k.Store)
}

// Enrichers returns the enrich stages that are enabled, in file order.
func (k *Knowledge) Enrichers() []*Stage {
	var all []*Stage
	for _, s := range k.Enrich {
		if s.Enabled {
			all = append(all, s)
		}
	}
	return all
}

// Source says where rows or documents come from and which of their columns mean what.
type Source struct {
	Path   string // absolute, or "-" for standard input
	Format string // tsv, csv or jsonl
	ID     string // column names; ID may be missing in the rows: they are numbered then
	Text   string
	Label  string
	// Context is the column of what situates the text, of a knowledge; Gold that
	// of the gold passages, of an input. Empty: none.
	Context, Gold string
	Meta          []string // columns kept as metadata; nil: all others
	// Documents says which files are read whole, instead of as rows, so that none
	// of the columns above counts; nil: the source holds rows.
	Documents *document.Set
	Range     hcl.Range
}

// Open opens a source of rows, or stdin where its path is "-".
func (s Source) Open(stdin io.Reader) (*source.Reader, error) {
	m := source.Mapping{ID: s.ID, Text: s.Text, Label: s.Label, Context: s.Context, Gold: s.Gold, Meta: s.Meta}
	return source.Open(s.Path, source.Format(s.Format), m, stdin)
}

// Pipeline is a pipeline block: what happens to each item of the input.
type Pipeline struct {
	Name   string
	Input  *Source  // nil: the file names none
	Stages []*Stage // in file order, disabled ones too
	Batch  int      // items per batch; 0: what suits the stages
	Budget Budget   // of one run
	Range  hcl.Range
}

// Knowledge returns what the pipeline's enabled retrieve stages search, each
// once, in file order.
func (p *Pipeline) Knowledge() []*Knowledge {
	var all []*Knowledge
	for _, s := range p.Stages {
		if s.Enabled && s.Retrieve != nil && !slices.Contains(all, s.Retrieve.From) {
			all = append(all, s.Retrieve.From)
		}
	}
	return all
}

// Limit is a limit block: how many calls may be under way and how many may
// begin within a minute, of all stages together that name it.
type Limit struct {
	Name        string
	Concurrency int // calls at a time
	Requests    int // per minute; 0: any number
	Tokens      int // per minute, in and out; 0: any number
	Range       hcl.Range
}

// Price is what a million tokens cost, in whatever money the file counts in.
type Price struct {
	Input, Cached, Output float64
}

// Of is what this usage costs.
func (p Price) Of(u sdk.Usage) float64 {
	cached := min(u.CachedTokens, u.InputTokens)
	return (float64(u.InputTokens-cached)*p.Input + float64(cached)*p.Cached + float64(u.OutputTokens)*p.Output) / 1e6
}

// Budget bounds what the calls of a run may cost.
type Budget struct {
	Cost   float64 // in the money of the prices; 0: any
	Tokens int64   // in and out; 0: any
}

// Stage is a block that does something: chunk, enrich, embed, store, retrieve, rerank, prompt,
// sample or elect.
type Stage struct {
	Block   string   // the block's type: "retrieve", "sample", ...
	Kind    sdk.Kind // of its plugin; empty for retrieve, which is the engine's own work
	Name    string   // the block's label; in a knowledge block its type
	Use     string   // the plugin stage; empty for retrieve
	Info    sdk.Stage
	Enabled bool
	Config  Config

	Retrieve *Retrieve // of a retrieve block
	// N is how many samples a sample block gives per item and, of a prompt
	// block, the most that a stage takes which reads its prompts.
	N     int
	Tries int // of a sample block: how often an item is asked until an answer is accepted
	TopK  int // of a rerank block: how many candidates it leaves at most

	// Of an enrich block: whether what it adds is embedded with the text, and
	// whether it is searched by BM25.
	Embedded, Lexical bool

	Limit *Limit // of a stage that calls services; nil: one for each of its endpoints
	Price *Price // what its calls cost; nil: nothing that is known

	When, Keep, Accept, Flag *rule.Rule // nil: not given
	Fallbacks                []Fallback

	Batch   int           // rows per call; 0: the stage's own preference
	Workers int           // calls at a time; 0: what suits the stage
	Retries int           // after a transient failure
	Timeout time.Duration // of one call; 0: what package retry says
	OnError OnError

	Range    hcl.Range // of the block's header
	UseRange hcl.Range
}

// Retrieve says how a retrieve block searches.
type Retrieve struct {
	From    *Knowledge
	Ranking sdk.Ranking
	Filter  *rule.Filter // which entries are searched; nil: all
	// Whole is asked once, when the run begins: where it holds, all entries are the
	// candidates of every item, and nothing is searched. nil: everything is searched.
	Whole *rule.Rule
}

// Fallback takes over the items for which its rule holds, after its stage
// failed on them or kept nothing. Its stage is the one it stands in with the
// arguments that the fallback block changes. Where it changes the mode of a
// search, it does not inherit keep, which may ask for a score that this mode
// does not give: it may have a keep of its own.
type Fallback struct {
	Name  string
	When  *rule.Rule
	Stage *Stage
}

// OnError says what happens to an item on which a stage failed for good.
type OnError string

// The choices of on_error.
const (
	FailItem OnError = "fail" // the item fails, with this stage and cause
	SkipItem OnError = "skip" // the stage's columns stay empty and the item goes on
)

// Config is the checked config of a stage.
type Config struct {
	// Open is the JSON object for the plugin, secrets included: it goes into
	// Configure of that stage and nowhere else.
	Open json.RawMessage
	// Public is the same object with "(secret)" for every secret: for plans,
	// reports and what a run records.
	Public json.RawMessage
	// Identity is Public without the arguments that do not change what comes out:
	// those that the plugin calls neutral, such as timeouts, and secret ones.
	Identity json.RawMessage
	// Secrets are the secret strings in Open and the secrets that they were
	// made from, sorted, so that they can be masked wherever a plugin might say
	// them.
	Secrets []string
	// Ranges are where arguments stand in the file.
	Ranges map[string]hcl.Range

	written map[string]written
}

// Catalog knows the stages that plugins offer.
type Catalog interface {
	// Stage returns the stage that a use expression names.
	Stage(kind sdk.Kind, use string) (sdk.Stage, bool)
	// Uses lists all names of a kind, for advice.
	Uses(kind sdk.Kind) []string
}

// Validator is a Catalog that can ask stages of other processes about a config, as
// sdk.Stage.Validate asks those of this one. It gets Config.Open, secrets included.
type Validator interface {
	Validate(kind sdk.Kind, use string, config []byte) error
}

// Explainer is a Catalog that can say why it does not offer a stage. Nil means
// that there is nothing to say beyond that.
type Explainer interface {
	Explain(use string) error
}
