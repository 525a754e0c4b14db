package pipeline

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge/document"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// File is a checked pipeline file: every name in it is known, every type fits
// and every rule compiles.
type File struct {
	Path      string
	Sources   map[string]*hcl.File // by file name, for printing diagnostics
	Variables []Variable           // in file order
	Required  []plugin.Requirement
	Reads     []string // files, absolute, whose content expressions take
	// Environment is what expressions take of the environment, also where it has no such variable.
	Environment []Environment
	Limits      []*Limit
	Cache       Cache
	Knowledge   []*Knowledge
	Pipelines   []*Pipeline

	loader *loader // has the values that expressions name
}

// Environment is a variable of the environment that a file reads.
type Environment struct {
	Name   string
	Secret bool // with secret(), not with env()
	Set    bool // the environment has it
	Off    bool // a stage reads it that is off, and may miss it
	// Default is what the file has in its place, where that is used.
	Default string
}

// Cache is a cache block: bounds of what the state folder keeps. Results do not depend on it.
type Cache struct {
	Vectors int64         // bytes, of passages; 0: none are kept
	Answers int64         // bytes, of services; 0: any
	Age     time.Duration // of either; 0: any
}

// Variable is a variable of the file with the value it got.
type Variable struct {
	Name, Doc string
	Value     string // as text; a secret reads "(secret)"
	From      string // "default", "-var", a file's name or an environment variable's
}

// Knowledge is a knowledge block: what a pipeline knows and how it is kept.
type Knowledge struct {
	Name     string    `identity:"-,its collections are called by it"`
	Sources  []Source  `identity:"knowledge"` // of rows several; the one that is reviewed is the last; none of an attached collection
	Chunk    *Stage    `identity:"knowledge"` // cuts documents into entries; nil: a document is one entry
	Enrich   []*Stage  `identity:"knowledge"` // add to entries, in file order, disabled ones too
	Embed    *Stage    `identity:"knowledge"`
	Store    *Stage    `identity:"run"`       // it keeps what it gets, and searches it in its own way
	Analyzer string    `identity:"knowledge"` // of the lexical side
	Range    hcl.Range `identity:"-,a position"`
}

// Main is the source by which a knowledge is called: the first one in the file. An attached
// collection has none: its Path is empty.
func (k *Knowledge) Main() Source {
	if len(k.Sources) == 0 { // it is attached, or the file has a mistake
		return Source{}
	}
	return k.Sources[0]
}

// Documents says which files are read whole, one after the other the entries of the knowledge;
// nil: it is made of rows.
func (k *Knowledge) Documents() *document.Set { return k.Main().Documents }

// Reviewed is the file of people's decisions; empty: the knowledge has none.
func (k *Knowledge) Reviewed() string {
	for _, s := range k.Sources {
		if s.Reviewed {
			return s.Path
		}
	}
	return ""
}

// Stdin reports whether a source is standard input.
func (k *Knowledge) Stdin() bool {
	return slices.ContainsFunc(k.Sources, func(s Source) bool { return s.Path == "-" })
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

// Delimiter is the line between a text and the terms added to it where both are embedded.
func (k *Knowledge) Delimiter() string {
	for _, s := range k.Enrichers() {
		if s.Delimiter != "" {
			return s.Delimiter
		}
	}
	return sdk.Delimiter
}

// Source says where rows or documents come from and which of their columns mean what.
type Source struct {
	Path  string      `identity:"knowledge"`           // absolute, a glob, or "-" for standard input; of an input, its content counts
	Form  source.Form `identity:"run,knowledge,whole"` // how rows are written; without a Format where not even the file's name says it
	ID    string      `identity:"run,knowledge"`       // columns; ID may be missing in the rows: they are numbered then
	Text  string      `identity:"run,knowledge"`
	Label string      `identity:"run,knowledge"`
	// Context is the column with the context of the text, of a knowledge; Gold that
	// of the gold passages, of an input. Empty: none.
	Context string   `identity:"knowledge"`
	Gold    string   `identity:"run"`
	Meta    []string `identity:"run,knowledge"` // columns kept as metadata; nil: all others
	// Documents says which files are read whole, instead of as rows, so that none
	// of the columns above counts; nil: the source holds rows.
	Documents *document.Set `identity:"knowledge"`
	// Reviewed says that the rows are people's decisions, as package reviewed has them; then none
	// of the columns above counts, and the file need not exist.
	Reviewed bool      `identity:"knowledge"`
	Flag     string    `identity:"-,a message has it"` // of the command line, that gives its columns
	Range    hcl.Range `identity:"-,a position"`
}

// Mapping says which columns of a source of rows mean what.
func (s Source) Mapping() source.Mapping {
	return source.Mapping{ID: s.ID, Text: s.Text, Label: s.Label, Context: s.Context, Gold: s.Gold, Meta: s.Meta, Flag: s.Flag}
}

// Open opens a source of rows, or stdin where its path is "-".
func (s Source) Open(stdin io.Reader) (*source.Reader, error) {
	return source.Open(s.Path, s.Form, s.Mapping(), stdin)
}

// Replace names another file in place of the source's own. How that is written is found out
// anew, but whether a first row names its columns.
func (s *Source) Replace(path string) {
	s.Path, s.Form = path, source.Form{Format: source.FormatOf(path), Header: s.Form.Header}
}

// Pipeline is a pipeline block: what happens to each item of the input.
type Pipeline struct {
	Name    string    `identity:"-,a run is looked for by it"`
	Input   *Source   `identity:"run"`                                             // nil: the file names none
	Stages  []*Stage  `identity:"run"`                                             // in file order, disabled ones too
	Batch   int       `identity:"-,how many items go together"`                    // 0: what suits the stages
	Budget  Budget    `identity:"-,it ends a run, and is resumed"`                 // of one run
	Memory  int64     `identity:"-,it ends processes, and they are started again"` // bytes that all may hold together; 0: any
	Journal Journal   `identity:"-,it keeps results, and makes none"`
	Expects []*Expect `identity:"-,it asks about results, and makes none"` // in file order, disabled ones too
	Range   hcl.Range `identity:"-,a position"`
}

// Journal says how runs are kept, and how long: see package journal.
type Journal struct {
	Sync  string        // "none", "batch" or "item"
	Keep  string        // "notable" or "all"
	Runs  int           // finished ones
	Age   time.Duration // 0: any
	Bytes int64         // 0: any
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

// Prices know what models cost that the file says nothing of: price.go.
type Prices interface {
	// Find returns the price of a model at the service of an address, and where it is
	// written; false: nobody says.
	Find(address, model string) (p Price, from string, ok bool)
}

// Price is what a million tokens cost, in whatever money the file counts in.
type Price struct {
	Input, Cached, Output float64
	Batch                 float64 // what calls in batches cost, as a share of that; 0: half
}

// InBatches is what calls in batches cost.
func (p Price) InBatches() Price {
	share := cmp.Or(p.Batch, 0.5)
	return Price{Input: share * p.Input, Cached: share * p.Cached, Output: share * p.Output}
}

// Of is what this usage costs.
func (p Price) Of(u sdk.Usage) float64 {
	cached := min(u.CachedTokens, u.InputTokens)
	return (float64(u.InputTokens-cached)*p.Input + float64(cached)*p.Cached + float64(u.OutputTokens)*p.Output) / 1e6
}

// Expected is what tokens cost where no service has any of them in its cache.
func (p Price) Expected(u sdk.Usage) float64 {
	u.CachedTokens = 0
	return p.Of(u)
}

// AtMost is what tokens cost at most, however many of those in are cached.
func (p Price) AtMost(u sdk.Usage) float64 {
	p.Input = max(p.Input, p.Cached)
	return p.Of(u)
}

// Budget bounds what the calls of a run may cost.
type Budget struct {
	Cost   float64 // in the money of the prices; 0: any
	Tokens int64   // in and out; 0: any
}

// Stage is a block that does something: chunk, enrich, embed, store, retrieve, rerank, prompt,
// sample or elect.
type Stage struct {
	Block string    `identity:"run,knowledge"`                               // the block's type: "retrieve", "sample", ...
	Kind  sdk.Kind  `identity:"-,it follows from Block"`                     // of its plugin; empty for retrieve, which is the engine's own work
	Name  string    `identity:"run,knowledge"`                               // the block's label; in a knowledge block its type
	Use   string    `identity:"run,knowledge"`                               // the plugin stage; empty for retrieve
	Info  sdk.Stage `identity:"-,its plugin is compared by its fingerprint"` // what the plugin says of the stage
	// Program is that of a third party's stage; nil: it is built in.
	Program *program.Program `identity:"-,it is compared by its hash"`
	Enabled bool             `identity:"-,a stage that is off is left out"`
	Config  Config           `identity:"run,knowledge"`

	Retrieve *Retrieve `identity:"run"` // of a retrieve block
	// N is how many samples a sample block gives per item and, of a prompt
	// block, the most that a stage takes which reads its prompts.
	N         int `identity:"run"`
	Resamples int `identity:"run"` // of a sample block: how often an item is asked again while no answer is accepted
	TopK      int `identity:"run"` // of a rerank block: how many candidates it leaves at most

	// Of an enrich block: whether what it adds is embedded with the text, and
	// whether it is searched by BM25.
	Embedded bool `identity:"knowledge"`
	Lexical  bool `identity:"knowledge"`
	// Delimiter is the line between the text and added terms where both are embedded; empty:
	// sdk.Delimiter.
	Delimiter string `identity:"knowledge"`

	Limit *Limit `identity:"-,how fast a service is asked"`   // of a stage that calls services; nil: one for each of its endpoints
	Price *Price `identity:"-,what is reported of its calls"` // nil: nothing that is known
	// PriceFrom is where the price is written that the file does not say; empty: in the file.
	PriceFrom string `identity:"-,what is reported of its calls"`

	When      *rule.Rule `identity:"run"` // rules; nil: not given
	Keep      *rule.Rule `identity:"run"`
	Accept    *rule.Rule `identity:"run"`
	Flag      *rule.Rule `identity:"run"`
	Fallbacks []Fallback `identity:"run"`

	Batch   int           `identity:"-,how many rows go together"`  // 0: the stage's own preference
	Workers int           `identity:"-,how many calls go together"` // 0: what suits the stage
	Retries int           `identity:"-,how often a failed call is repeated"`
	Timeout time.Duration `identity:"-,how long a call may take"` // 0: what package retry says
	OnError OnError       `identity:"run"`
	Memory  int64         `identity:"-,it ends processes, and they are started again"` // bytes that the stage's may hold; 0: any

	Range    hcl.Range `identity:"-,a position"` // of the block's header
	UseRange hcl.Range `identity:"-,a position"`
}

// Gathers reports whether the stage asks a service in batches, which hold as many rows as there
// are: it gets those of all items, or documents, together.
func (s *Stage) Gathers() bool { return s.Info.Pends && s.Info.PendsIf != "" }

// CallPrice is what the stage's calls cost: in batches, where it asks in those.
func (s *Stage) CallPrice() *Price {
	if s.Price == nil || !s.Gathers() {
		return s.Price
	}
	p := s.Price.InBatches()
	return &p
}

// Retrieve says how a retrieve block searches.
type Retrieve struct {
	From    *Knowledge   `identity:"run"`
	Ranking sdk.Ranking  `identity:"run,whole"`
	Filter  *rule.Filter `identity:"run"` // which entries are searched; nil: all
	// Whole is asked once, when the run begins: where it holds, all entries are the
	// candidates of every item, and nothing is searched. nil: everything is searched.
	Whole *rule.Rule `identity:"run"`
}

// Fallback takes over the items for which its rule holds, after its stage
// failed on them or kept nothing. Its stage is the one it stands in with the
// arguments that the fallback block changes. Where it changes the mode of a
// search, it does not inherit keep, which may ask for a score that this mode
// does not give: it may have a keep of its own.
type Fallback struct {
	Name  string     `identity:"run"` // what its process works with is compared by it
	When  *rule.Rule `identity:"run"`
	Stage *Stage     `identity:"run"`
}

// OnError says what happens to an item on which a stage failed for good.
type OnError string

// The choices of on_error.
const (
	FailItem OnError = "fail" // the item fails, with this stage and cause
	SkipItem OnError = "skip" // the stage's columns stay empty and the item continues
)

// Config is the checked config of a stage.
type Config struct {
	// Open is the JSON object for the plugin, secrets included: it goes into
	// Configure of that stage and nowhere else.
	Open json.RawMessage `identity:"-,it holds secrets"`
	// Public is the same object with "(secret)" for every secret: for plans,
	// reports and what a run records.
	Public json.RawMessage `identity:"-,it holds what does not change results"`
	// Identity is Public without the arguments that do not change what comes out:
	// those that do not change results, such as timeouts, and secret ones.
	Identity json.RawMessage `identity:"run,knowledge"`
	// Secrets are the secret strings in Open and the secrets that they were
	// made from, sorted, so that they can be masked wherever a plugin might say
	// them.
	Secrets []string `identity:"-,they are secret"`
	// Ranges are where arguments stand in the file.
	Ranges map[string]hcl.Range `identity:"-,positions"`

	written map[string]written `identity:"-,what was read, for diagnostics"`
}

// Requiring is a Catalog that knows third parties' plugins by what a file requires of them.
type Requiring interface {
	// Require returns the catalog for a file in a folder.
	Require(dir string, required []plugin.Requirement) Catalog
}

// Programs is a Catalog that knows which program offers a stage; nil: it is built in.
type Programs interface {
	Program(use string) *program.Program
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

func (l *loader) readPipeline(b *hcl.Block) *Pipeline {
	p := &Pipeline{Name: b.Labels[0], Range: b.DefRange}
	content, diags := b.Body.Content(grammar.Described("pipeline").Schema())
	l.add(diags)
	a := arguments{l, content.Attributes}
	p.Batch = a.int("batch", 0, 1)
	p.Budget, p.Memory = a.budget(), a.size("memory")
	var stages, journals, expects hcl.Blocks
	for _, s := range content.Blocks {
		switch s.Type {
		case "journal":
			journals = append(journals, s)
			continue
		case "expect":
			expects = append(expects, s)
			continue
		case "input":
		default:
			stages = append(stages, s)
			continue
		}
		if p.Input != nil {
			l.errorAt(s.DefRange, "Duplicate block", "A pipeline has one input block; there is one on line %d already.", p.Input.Range.Start.Line)
			continue
		}
		in := l.readSource(s, l.Input, false)
		p.Input = &in
	}
	if p.Input == nil && l.Input != "" {
		p.Input = &Source{ID: "id", Text: "text", Label: "label", Gold: "gold"}
		p.Input.Replace(absolute(l.Input, l.Dir))
		l.mapColumns(p.Input, true)
	}
	p.Journal = l.readJournal(journals)
	at := place{scope: rule.Scope{Vars: l.seen()}}
	for _, s := range l.distinct(stages) {
		p.Stages = append(p.Stages, l.readStage(s, at))
		switch s.Type {
		case "retrieve":
			at.scope.Candidates = true
		case "sample":
			at.scope.Voters = true
		case "elect":
			at.scope.Election = true
		}
	}
	for _, e := range l.distinct(expects) {
		p.Expects = append(p.Expects, l.readExpect(e, at.scope))
	}
	p.countPrompts()
	l.checkBudget(p, content.Attributes)
	if !diags.HasErrors() { // an unknown block may be a misspelled stage
		l.checkStructure(p)
	}
	return p
}
