package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
)

// Manifest is what was run. Secrets are not in it.
type Manifest struct {
	// Format is that of the run's folder: Current, or 0 where an older racflow kept the run,
	// whose files have no checksums.
	Format   int       `json:"format,omitempty"`
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"`
	Revision string    `json:"revision,omitempty"` // that racflow was built from; empty: not known
	File     string    `json:"file"`               // absolute
	Pipeline string    `json:"pipeline"`
	// Parts are digests of what answers depend on in the checked pipeline, so that
	// what differs can be named; see package identity.
	Parts     map[string]string `json:"parts"`
	Variables []Variable        `json:"variables,omitempty"`
	Input     File              `json:"input"`
	Output    string            `json:"output,omitempty"` // the file that results went to when it began, absolute; empty: a stream, or not known
	// Columns are those of the input with ids and texts, so that it can be read again;
	// nil: an older racflow kept the run.
	Columns *Columns `json:"columns,omitempty"`
	// Answers says what the answers are; empty: an older racflow kept the run.
	Answers   Answers     `json:"answers,omitempty"`
	Command   *Command    `json:"command,omitempty"` // nil: the run is not that of a command, or an older racflow kept it
	Limit     int         `json:"limit,omitempty"`   // items; 0: all
	Spend     spend.Limit `json:"spend,omitzero"`    // on voters that call services, unless the resumed run has another
	Knowledge []Knowledge `json:"knowledge,omitempty"`
	Labels    string      `json:"labels,omitempty"` // digest of the labels of all of it; empty: an older racflow kept the run
	Again     string      `json:"again,omitempty"`  // the run whose answers are taken where they hold; empty: none
	Stages    []Stage     `json:"stages"`
	Cluster   *Cluster    `json:"cluster,omitempty"` // where other machines answered its items; nil: this one did
	Rules     []Rule      `json:"rules,omitempty"`
}

// Cluster says where a run is that other machines take part in.
type Cluster struct {
	Run     string `json:"run"`     // its ID there
	Servers string `json:"servers"` // their addresses, without credentials
}

// Variable is a variable of the file with the value it had.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a secret reads "(secret)"
	From  string `json:"from"`
}

// Columns say how the rows of an input are written, and where ids, texts and labels stand in
// them.
type Columns struct {
	source.Form
	ID    string `json:"id"`
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // empty: an older racflow kept the run
}

// Command is the command that began a run, so that it can be given again.
type Command struct {
	Dir   string `json:"dir"` // that its paths are relative to
	Flags []Flag `json:"flags,omitempty"`
	// Withheld are variables whose values were given on the command line and are secret: they
	// are not kept.
	Withheld []string `json:"withheld,omitempty"`
	// Apart says that the flag column was of the input alone, and knowledge-column of the knowledge. Older
	// commands have one flag for both, and are read as if they had been given the two.
	Apart bool `json:"apart,omitempty"`
}

// UnmarshalJSON reads also what an older racflow kept.
func (c *Command) UnmarshalJSON(text []byte) error {
	type plain Command
	if err := json.Unmarshal(text, (*plain)(c)); err != nil || c.Apart {
		return err
	}
	c.Apart = true
	var flags []Flag
	for _, f := range c.Flags {
		means, _, _ := strings.Cut(f.Value, "=")
		if f.Name != "column" || means != "context" {
			flags = append(flags, f)
		}
		if f.Name == "column" && means != "gold" {
			flags = append(flags, Flag{Name: "knowledge-column", Value: f.Value})
		}
	}
	c.Flags = flags
	return nil
}

// Flag is a flag with the value that it was given, as text.
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Answers are what a pipeline answers with.
type Answers string

// Kinds of answers.
const (
	Labels   Answers = "labels"
	Texts    Answers = "texts"
	Passages Answers = "passages" // there is no election
)

// Knowledge is the generation that was searched.
type Knowledge struct {
	Name       string `json:"name"`
	Collection string `json:"collection"`
	Content    string `json:"content"` // hash of what it was made from
	// Embedder is a digest of what the embedder makes of a text; empty: an older racflow kept the run.
	Embedder string `json:"embedder,omitempty"`
	// Attached: somebody else makes it, and may have changed rows of it under one Content.
	Attached bool `json:"attached,omitempty"`
}

// Stage is a stage with what its answers depend on.
type Stage struct {
	Stage       string `json:"stage"` // as "sample.knn"
	Use         string `json:"use"`
	Plugin      string `json:"plugin"`
	Version     string `json:"version"`         // of the plugin
	Model       string `json:"model,omitempty"` // that it asks, where its config names one
	Fingerprint string `json:"fingerprint,omitempty"`
	Learnt      string `json:"learnt,omitempty"` // names what it has learnt from its knowledge
	// Program is that of a third party's plugin.
	Program *Program `json:"program,omitempty"`

	// What the run began with and a resumed one gets again.
	Resolved map[string]any `json:"resolved,omitempty"` // what the stage chose for arguments that the file leaves to it
	Price    *Price         `json:"price,omitempty"`
}

// Rule is a rule of the file, as it was written: what decided an item is named by it.
type Rule struct {
	Stage string `json:"stage"`          // as "sample.llm", or "sample.llm, fallback.other"
	Rule  string `json:"rule"`           // as outcome.Rule has it
	Name  string `json:"name,omitempty"` // of the fallback
	Text  string `json:"text"`
}

// Program is a third party's program that was started.
type Program struct {
	Path   string `json:"path"`
	Hash   string `json:"hash"`   // of it with all that belongs to it
	Origin string `json:"origin"` // "locked", "linked" or "given"
}

// Price is what a million tokens cost.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
	Batch  float64 `json:"batch,omitempty"` // share of that for calls in batches; 0: half
}

// Digest is one of lists of texts.
func Digest(lists [][]string) string {
	text, err := json.Marshal(lists)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Define sets what the manifest says of a pipeline.
func (m *Manifest) Define(f *pipeline.File, p *pipeline.Pipeline) {
	m.Pipeline, m.Parts = p.Name, identity.Parts(p)
	m.Rules = rulesOf(p)
	for _, v := range f.Variables {
		m.Variables = append(m.Variables, Variable{v.Name, v.Value, v.From})
	}
}
