package pipeline

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

// Pipeline is a pipeline block: what happens to each item of the input.
type Pipeline struct {
	Name    string    `identity:"-,a run is looked for by it"`
	Input   *Source   `identity:"run"`                                             // nil: the file names none
	Stages  []*Stage  `identity:"run"`                                             // in file order, disabled ones too
	Batch   int       `identity:"-,how many items go together"`                    // 0: what suits the stages
	Budget  Budget    `identity:"-,it ends a run, and is resumed"`                 // bounds one run
	Memory  int64     `identity:"-,it ends processes, and they are started again"` // bytes of all processes; 0: no limit
	Journal Journal   `identity:"-,it keeps results, and makes none"`
	Expects []*Expect `identity:"-,it asks about results, and makes none"` // in file order, disabled ones too
	Range   hcl.Range `identity:"-,a position"`
}

// File is a checked pipeline file: every name in it is known, every type fits and every rule
// compiles.
type File struct {
	Path      string
	Sources   map[string]*hcl.File // by file name, for printing diagnostics
	Variables []Variable           // in file order
	Required  []require.Plugin
	Reads     []string // absolute paths of the files whose content expressions read
	// Environment lists the environment variables that expressions read, missing ones too.
	Environment []Environment
	Limits      []*Limit
	Cache       Cache
	Knowledge   []*Knowledge
	Pipelines   []*Pipeline

	loader *loader // holds the values that expressions name
}

// Environment is an environment variable that a file reads.
type Environment struct {
	Name   string
	Secret bool // read by secret(), not by env()
	Set    bool // the environment has the variable
	Off    bool // a disabled stage reads it, so it may be missing
	// Default is the default in the file, for an unset variable.
	Default string
	Open    bool // files may read it without a question
}

// Cache is a cache block: it limits the caches in the state folder. It does not change results.
type Cache struct {
	Vectors int64         // bytes of passages' vectors; 0: none are stored
	Answers int64         // bytes of services' answers; 0: no limit
	Age     time.Duration // of vectors and answers; 0: no limit
}

// Variable is a variable of the file with the value it got.
type Variable struct {
	Name, Doc string
	Value     string // as text; a secret becomes (secret)
	From      string // "default", "-var", a file's name or an environment variable's
}

// Knowledge is a knowledge block: what a pipeline knows and how it is stored.
type Knowledge struct {
	Name     string   `identity:"-,its collections are called by it"`
	Sources  []Source `identity:"knowledge"` // several only of rows; reviewed and labels last; attached: none
	Chunk    *Stage   `identity:"knowledge"` // cuts documents into entries; nil: a document is one entry
	Enrich   []*Stage `identity:"knowledge"` // they add to entries; in file order, with disabled ones
	Embed    *Stage   `identity:"knowledge"`
	Store    *Stage   `identity:"run"`       // stores the entries; how it searches them changes only answers
	Analyzer string   `identity:"knowledge"` // splits texts into words for lexical search
	// Home is the folder that holds the state folder, if the state folder stores the entries. Both folders can be moved
	// together, so paths of sources below Home count relative to Home. Empty: paths count as they are, since others may
	// share the store.
	Home  string    `identity:"-,paths of sources are relative to it"`
	Range hcl.Range `identity:"-,a position"`
}

// Main returns the first source in the file, by which people name the knowledge. An attached collection has no source:
// the returned Path is empty.
func (k *Knowledge) Main() Source {
	if len(k.Sources) == 0 { // the knowledge is attached, or the file has a mistake
		return Source{}
	}
	return k.Sources[0]
}

// Documents returns the files that are read as documents to make the entries; nil: rows make the entries.
func (k *Knowledge) Documents() *document.Set { return k.Main().Documents }

// Reviewed returns the path of the file of people's decisions; empty: the knowledge has none.
func (k *Knowledge) Reviewed() string {
	for _, s := range k.Sources {
		if s.Reviewed {
			return s.Path
		}
	}
	return ""
}

// Described returns the table of labels; nil: the knowledge has none.
func (k *Knowledge) Described() *Source {
	for i := range k.Sources {
		if k.Sources[i].Describes != nil {
			return &k.Sources[i]
		}
	}
	return nil
}

// Stdin reports whether a source is standard input.
func (k *Knowledge) Stdin() bool {
	return slices.ContainsFunc(k.Sources, func(s Source) bool { return s.Path == "-" })
}

// Stages returns the enabled stages of the block.
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

// Delimiter returns the line between a text and its added terms if both are embedded.
func (k *Knowledge) Delimiter() string {
	for _, s := range k.Enrichers() {
		if s.Delimiter != "" {
			return s.Delimiter
		}
	}
	return sdk.Delimiter
}

// Source describes where rows or documents come from and what their columns mean.
type Source struct {
	Path  string      `identity:"knowledge"`           // absolute, a glob, or "-" for standard input; answers depend on the content of their input
	Form  source.Form `identity:"run,knowledge,whole"` // how rows are written; Format is empty if the name does not imply it
	ID    string      `identity:"run,knowledge"`       // these name columns; rows without an ID are numbered
	Text  string      `identity:"run,knowledge"`
	Label string      `identity:"run,knowledge"`
	// Context names the column with a text's context, in a knowledge. Gold names the column with the gold passages, in
	// an input. Empty: none.
	Context string   `identity:"knowledge"`
	Gold    string   `identity:"run"`
	Meta    []string `identity:"run,knowledge"` // columns kept as metadata; nil: all others
	// Labels describes how labels are written. An input has the knowledge's form of labels, but its own separator and
	// columns.
	Labels source.Labels `identity:"run,knowledge,whole"`
	// Documents selects the files that are read as documents, not as rows; the columns above then have no effect. nil:
	// the source holds rows.
	Documents *document.Set `identity:"knowledge"`
	// Reviewed says that the rows are people's decisions, in the format of package reviewed. Then the columns above
	// have no effect, and the file need not exist.
	Reviewed bool `identity:"knowledge"`
	// Rows replace the rows of the file, to measure on the others; nil: the file's own rows.
	Rows []source.Row `identity:"-,the path says which rows they are"`
	// Describes says that the rows describe labels. Text names the labels, and Describes names the other columns; ID,
	// Label and Meta then have no effect. nil: the rows do not describe labels.
	Describes *DescribedColumns `identity:"knowledge"`
	Flag      string            `identity:"-,a message has it"` // the command line's flag that sets the columns
	Origin    Origin            `identity:"-,it is about who said the path"`
	Range     hcl.Range         `identity:"-,a position"`
}

// DescribedColumns names the columns of a table of labels, apart from the column of labels.
type DescribedColumns struct {
	Name        string `identity:"knowledge"`
	Description string `identity:"knowledge"`
	Examples    string `identity:"knowledge"` // texts with the label
	Becomes     string `identity:"knowledge"` // another label, which replaces the label of the rows
}

// Mapping returns what the columns of a source of rows mean.
func (s Source) Mapping() source.Mapping {
	return source.Mapping{ID: s.ID, Text: s.Text, Label: s.Label, Context: s.Context, Gold: s.Gold, Meta: s.Meta, Labels: s.Labels, Flag: s.Flag}
}

// Open opens a source of rows, or stdin if its path is "-".
func (s Source) Open(stdin io.Reader) (*source.Reader, error) {
	if s.Rows != nil {
		return source.OfRows(s.Path, s.Rows), nil
	}
	return source.Open(s.Path, s.Form, s.Mapping(), stdin)
}

// shown returns the path in a form that may be shown.
func (s Source) shown() string { return s.Origin.Shown(s.Path) }

// Replace gives the source another file and detects how its rows are written. Only Header stays, which says whether a
// first row names the columns.
func (s *Source) Replace(path string) {
	s.Path, s.Form = path, source.Form{Format: source.FormatOf(path), Header: s.Form.Header}
}

// Journal says which runs are stored, and how long: see package journal.
type Journal struct {
	Sync  string        // "none", "batch" or "item"
	Keep  string        // "notable" or "all"
	Runs  int           // number of finished runs to store
	Age   time.Duration // 0: no limit
	Bytes int64         // 0: no limit
}

// Knowledge returns the knowledge that the enabled retrieve stages search, each once, in file
// order.
func (p *Pipeline) Knowledge() []*Knowledge {
	var all []*Knowledge
	for _, s := range p.Stages {
		if s.Enabled && s.Retrieve != nil && !slices.Contains(all, s.Retrieve.From) {
			all = append(all, s.Retrieve.From)
		}
	}
	return all
}

// Limit is a limit block. It bounds the calls of all stages that name it, taken together: the number of concurrent
// calls, and the number that begin within a minute.
type Limit struct {
	Name        string    `json:"name"`
	Concurrency int       `json:"concurrency"`        // calls at a time
	Requests    int       `json:"requests,omitempty"` // per minute; 0: any number
	Tokens      int       `json:"tokens,omitempty"`   // per minute, in and out; 0: any number
	Range       hcl.Range `json:"-"`
}

// Part returns the limit of one of n runs that share this limit: at least 1 of each bound.
func (l Limit) Part(n int) Limit {
	l.Concurrency = max(l.Concurrency/n, 1)
	for _, bound := range []*int{&l.Requests, &l.Tokens} {
		if *bound > 0 {
			*bound = max(*bound/n, 1)
		}
	}
	return l
}

// Prices finds the price of a model if the file does not set it: see price.go.
type Prices interface {
	// Find returns a model's price at the service with this address, and where the price is written; false: no source
	// has a price.
	Find(address, model string) (p Price, from string, ok bool)
}

// Price is the price of a million tokens, in whatever currency the file uses.
type Price struct {
	Input, Cached, Output float64
	Batch                 float64 // price of calls in batches as a share of the other prices; 0: half
}

// InBatches returns the price of calls in batches.
func (p Price) InBatches() Price {
	share := cmp.Or(p.Batch, 0.5)
	return Price{Input: share * p.Input, Cached: share * p.Cached, Output: share * p.Output}
}

// Of returns the cost of this usage.
func (p Price) Of(u sdk.Usage) float64 {
	cached := min(u.CachedTokens, u.InputTokens)
	return (float64(u.InputTokens-cached)*p.Input + float64(cached)*p.Cached + float64(u.OutputTokens)*p.Output) / 1e6
}

// AtMost returns the highest cost of tokens, however many input tokens are cached.
func (p Price) AtMost(u sdk.Usage) float64 {
	p.Input = max(p.Input, p.Cached)
	return p.Of(u)
}

// Budget bounds what the calls of a run may cost.
type Budget struct {
	Cost   float64 // in the currency of the prices; 0: no limit
	Tokens int64   // input and output; 0: no limit
}

// Part returns the budget of one of n runs that share it.
func (b Budget) Part(n int) Budget {
	if b.Cost /= float64(n); b.Tokens > 0 {
		b.Tokens = max(b.Tokens/int64(n), 1)
	}
	return b
}

// Stage is a block with a task: chunk, enrich, embed, store, retrieve, rerank, prompt, sample or elect.
type Stage struct {
	Block string    `identity:"run,knowledge"`                               // the block's type: "retrieve", "sample", ...
	Kind  sdk.Kind  `identity:"-,it follows from Block"`                     // the plugin stage's kind; empty for retrieve, which the engine does itself
	Name  string    `identity:"run,knowledge"`                               // the block's label; in a knowledge block, the block's type
	Use   string    `identity:"run,knowledge"`                               // the plugin stage; empty for retrieve
	Info  sdk.Stage `identity:"-,its plugin is compared by its fingerprint"` // the plugin's description of the stage
	// Program runs a third party's stage; nil: the stage is built in.
	Program *program.Program `identity:"-,it is compared by its hash"`
	Enabled bool             `identity:"-,a stage that is off is left out"`
	Config  Config           `identity:"run,knowledge"`

	Retrieve *Retrieve `identity:"run"` // of a retrieve block
	// N is how many samples a sample block gives per item. In a prompt block, it is the largest N
	// of the stages that read its prompts.
	N         int `identity:"run"`
	Resamples int `identity:"run"` // of a sample block: how often an item is asked again while no answer is accepted
	TopK      int `identity:"run"` // of a rerank block: how many candidates it keeps at most
	// Calibrate belongs to an elect block. It is the number of held-out rows about which voters that call services are
	// asked before the election learns; nil: the file does not set it.
	Calibrate *int `identity:"-,what the election has learnt is compared"`

	// In an enrich block: whether additions are embedded with the text, and whether BM25 searches them.
	Embedded bool `identity:"knowledge"`
	Lexical  bool `identity:"knowledge"`
	// Delimiter is the line between the text and added terms if both are embedded; empty: sdk.Delimiter.
	Delimiter string `identity:"knowledge"`

	Limit *Limit `identity:"-,how fast a service is asked"`   // of a stage that calls services; nil: each of its endpoints has a limit of its own
	Price *Price `identity:"-,what is reported of its calls"` // nil: unknown
	// PriceFrom names the source of the price; empty: the file.
	PriceFrom string `identity:"-,what is reported of its calls"`

	When      *rule.Rule `identity:"run"` // rules; nil: not given
	Keep      *rule.Rule `identity:"run"`
	Accept    *rule.Rule `identity:"run"`
	Flag      *rule.Rule `identity:"run"`
	Fallbacks []Fallback `identity:"run"`

	Batch   int           `identity:"-,how many rows go together"`  // 0: the stage's own preference
	Workers int           `identity:"-,how many calls go together"` // 0: what suits the stage
	Retries int           `identity:"-,how often a failed call is repeated"`
	Timeout time.Duration `identity:"-,how long a row may hang"` // 0: HangTime decides
	OnError OnError       `identity:"run"`
	Memory  int64         `identity:"-,it ends processes, and they are started again"` // bytes that its processes may hold; 0: no limit

	Range    hcl.Range `identity:"-,a position"` // of the block's header
	UseRange hcl.Range `identity:"-,a position"`
}

// Gathers reports whether the stage asks a service in batches of any size. Such a stage gets the rows of all items, or
// documents, together.
func (s *Stage) Gathers() bool { return s.Info.Pends && s.Info.PendsIf != "" }

// HangTime returns how long a row may hang before it fails: Timeout or, without one, a default for the stage. The
// default is longer if work on one row may take minutes: a voter may run a model on this machine, and so may a stage
// whose config names a model. A stage that calls other machines also waits for its rate limit.
func (s *Stage) HangTime() time.Duration {
	switch asks := s.Retrieve; {
	case s.Timeout > 0:
		return s.Timeout
	case s.Info.Network, asks != nil && (asks.From.Embed.Info.Network || asks.From.Store.Info.Network):
		return 2 * time.Hour
	case s.Kind == sdk.KindSample, s.Kind != sdk.KindPrompt && s.Config.Model() != "":
		return 20 * time.Minute
	}
	return 2 * time.Minute
}

// Patience returns how long calls of the stage may take.
func (s *Stage) Patience() retry.Patience {
	return retry.Patience{Timeout: s.HangTime(), Network: s.Info.Network}
}

// CallPrice returns the price of the stage's calls: the batch price, if it asks in batches.
func (s *Stage) CallPrice() *Price {
	if s.Price == nil || !s.Gathers() {
		return s.Price
	}
	p := s.Price.InBatches()
	return &p
}

// Retrieve describes how a retrieve block searches.
type Retrieve struct {
	From    *Knowledge   `identity:"run"`
	Ranking sdk.Ranking  `identity:"run,whole"`
	Filter  *rule.Filter `identity:"run"` // which entries are searched; nil: all
	// Whole is checked once, when the run begins. If it holds, every item gets all entries as candidates, and nothing
	// is searched. nil: everything is searched.
	Whole *rule.Rule `identity:"run"`
}

// Fallback takes over the items for which its rule holds, after the block's own stage failed on them or kept nothing.
// Its Stage is that stage, with the arguments that the fallback block changes. A fallback that searches in another mode
// does not inherit keep, which may use a score that this mode does not have. It may have a keep of its own.
type Fallback struct {
	Name  string     `identity:"run"` // identifies what its process works with, if runs are compared
	When  *rule.Rule `identity:"run"`
	Stage *Stage     `identity:"run"`
}

// OnError says what happens to an item on which a stage finally failed.
type OnError string

// The values of on_error.
const (
	FailItem OnError = "fail" // the item fails, with this stage and cause
	SkipItem OnError = "skip" // the stage's columns stay empty and the item continues
)

// Config is the checked config of a stage.
type Config struct {
	// Open is the JSON object for the plugin, with secrets. Only Configure of that stage gets it.
	Open json.RawMessage `identity:"-,it holds secrets"`
	// Public is Open with "(secret)" in place of every secret: for plans, reports and the record of a run.
	Public json.RawMessage `identity:"-,it holds what does not change results"`
	// Identity is Public without the arguments that do not change the output: secret arguments, and arguments marked
	// so, such as timeouts.
	Identity json.RawMessage `identity:"run,knowledge"`
	// Secrets holds the secret strings in Open and the secrets from which they were made, sorted. They are masked
	// wherever a plugin might print them.
	Secrets []string `identity:"-,they are secret"`
	// Named lists the secrets of the environment in Open, with their places.
	Named []NamedSecret `identity:"-,they are secret"`
	// Ranges holds the place of each argument in the file.
	Ranges map[string]hcl.Range `identity:"-,positions"`

	// Origins holds where arguments come from, if not from the file alone.
	Origins map[string]Origin `identity:"-,it is about who said a value"`
	// Foreign lists arguments that the file itself sets, not a person or a secret of the environment. The arguments
	// contain keys, or anything else by which a service recognises an account.
	Foreign []string `identity:"-,it is about who said a value"`

	written map[string]written `identity:"-,what was read, for diagnostics"`
}

// NamedSecret is a secret of the environment in a config.
type NamedSecret struct {
	Name    string // of the variable
	Element string // path in the argument, if the argument has elements
	Whole   bool   // nothing was added or removed

	argument string
}

// Requiring is a Catalog that adds the third-party plugins that a file requires.
type Requiring interface {
	// Require returns the catalog for a file in the folder dir.
	Require(dir string, required []require.Plugin) Catalog
}

// programs is a Catalog that knows which program offers a stage; nil: the stage is built in.
type programs interface {
	Program(use string) *program.Program
}

// Catalog knows the stages that plugins offer.
type Catalog interface {
	// Stage returns the stage that a use expression names.
	Stage(kind sdk.Kind, use string) (sdk.Stage, bool)
	// Uses lists the names of all stages of a kind, for advice.
	Uses(kind sdk.Kind) []string
}

// NameOf returns the stage's own name, even if use is an alias of it.
func NameOf(use string, s sdk.Stage) string {
	if s.Name == "" || strings.Contains(use, "/") {
		return use
	}
	return s.Name
}

// validator is a Catalog that can check the configs of stages in other processes, as sdk.Stage.Validate does in this
// process. It gets Config.Open, with secrets.
type validator interface {
	Validate(kind sdk.Kind, use string, config []byte) error
}

// Explainer is a Catalog that can explain why it does not offer a stage. Explain returns nil if it knows no reason.
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
	form := p.LabelForm()
	p.Input.adopt(form)
	for _, e := range p.Expects {
		e.Input.adopt(form)
	}
	p.countPrompts()
	l.checkBudget(p, content.Attributes)
	if !diags.HasErrors() { // an unknown block may be a misspelled stage
		l.checkStructure(p)
	}
	return p
}
