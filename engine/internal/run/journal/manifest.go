package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
)

// This file says what a run was: the parts of the pipeline, input, knowledge and
// plugins by their fingerprints, so that it can be told whether another run would answer in
// the same way; and what a resumed run gets again: values that stages chose when they
// started, prices, and the command that began it.
//
// A manifest is a file of a run's folder, written once, before the first item, and sealed
// (sealed.go). One that was changed since is refused: nobody knows what was run.
//
// Secrets are not in it.

// Differences names what differs between a run and another that is to go on
// with it.
func (m Manifest) Differences(other Manifest) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if m.Version != other.Version {
		add("racflow is version %s, it was %s", other.Version, m.Version)
	}
	for _, part := range differing(m.Parts, other.Parts) {
		add("%s of the file", part)
	}
	if !m.Input.Same(other.Input) {
		add("the input %s", other.Input.Path)
	}
	if m.Limit != other.Limit {
		add("Options.Limit, which was %d", m.Limit)
	}
	before := map[string]ManifestKnowledge{}
	for _, k := range m.Knowledge {
		before[k.Name] = k
	}
	for _, k := range other.Knowledge {
		b, ok := before[k.Name]
		if ok && (b.Embedder == "" || k.Embedder == "") {
			b.Embedder = k.Embedder
		}
		if ok && b != k {
			add("knowledge %q", k.Name)
		}
	}
	stages := map[string]ManifestStage{}
	for _, s := range m.Stages {
		stages[s.Stage] = s
	}
	for _, s := range other.Stages {
		b, ok := stages[s.Stage]
		if !ok || b.Use != s.Use {
			continue // then the part of the file differs
		}
		switch {
		case s.Program != nil && b.Program != nil && s.Program.Hash != b.Program.Hash:
			add("the plugin %s of %s, now version %s", s.Plugin, s.Stage, s.Version)
		case b.Fingerprint != s.Fingerprint:
			add("what %s works with, such as its model or template", s.Stage)
		case b.Learnt != s.Learnt:
			add("what %s has learnt", s.Stage)
		}
	}
	return all
}

// differing returns the keys whose values differ, sorted.
func differing(a, b map[string]string) []string {
	var keys []string
	for k, v := range a {
		if b[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// SeenFile is a file with what its content is recognised by: its hash or, where it
// is large, size and time.
type SeenFile struct {
	Path     string    `json:"path"` // "-": standard input
	SHA256   string    `json:"sha256,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// maxHashed is the size of the largest file that is hashed, in bytes: that
// takes about as long as it takes a stage to start.
const maxHashed = 256 << 20

// LookAtFile looks at a file.
func LookAtFile(path string) (SeenFile, error) {
	f := SeenFile{Path: path}
	if path == "-" {
		return f, nil
	}
	if source.IsGlob(path) {
		var err error
		f.SHA256, err = source.Digest(path)
		return f, err
	}
	in, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return f, err
	}
	f.Size = info.Size()
	if !info.Mode().IsRegular() || f.Size > maxHashed {
		f.Modified = info.ModTime().UTC()
		return f, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return f, err
	}
	f.SHA256 = hex.EncodeToString(h.Sum(nil))
	return f, nil
}

// Unchanged reports whether the file has the content that it had. The error says why it
// cannot be read.
func (f SeenFile) Unchanged() (bool, error) {
	now, err := LookAtFile(f.Path)
	return f.Same(now), err
}

// Same reports whether two files have the same content.
func (f SeenFile) Same(other SeenFile) bool {
	return f.SHA256 == other.SHA256 && f.Size == other.Size && f.Modified.Equal(other.Modified)
}

// Manifest is what was run. Secrets are not in it.
type Manifest struct {
	// Format is that of the run's folder: CurrentFormat, or 0 where an older racflow kept the
	// run, whose files have no checksums.
	Format   int       `json:"format,omitempty"`
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"`
	Revision string    `json:"revision,omitempty"` // that racflow was built from; empty: not known
	File     string    `json:"file"`               // absolute
	Pipeline string    `json:"pipeline"`
	// Parts are digests of what answers depend on in the checked pipeline, so that
	// what differs can be named; see package pipeline.
	Parts     map[string]string  `json:"parts"`
	Variables []ManifestVariable `json:"variables,omitempty"`
	Input     SeenFile           `json:"input"`
	Output    string             `json:"output,omitempty"` // the file that results went to when it began, absolute; empty: a stream, or not known
	// ManifestColumns are those of the input with ids and texts, so that it can be read again;
	// nil: an older racflow kept the run.
	Columns *ManifestColumns `json:"columns,omitempty"`
	// AnswerKind says what the answers are; empty: an older racflow kept the run.
	Answers   AnswerKind          `json:"answers,omitempty"`
	Command   *ManifestCommand    `json:"command,omitempty"` // nil: the run is not that of a command, or an older racflow kept it
	Limit     int                 `json:"limit,omitempty"`   // items; 0: all
	Spend     spend.Limit         `json:"spend,omitzero"`    // on voters that call services, unless the resumed run has another
	Knowledge []ManifestKnowledge `json:"knowledge,omitempty"`
	Labels    string              `json:"labels,omitempty"` // digest of the labels of all of it; empty: an older racflow kept the run
	Again     string              `json:"again,omitempty"`  // the run whose answers are taken where they hold; empty: none
	Stages    []ManifestStage     `json:"stages"`
	Cluster   *ManifestCluster    `json:"cluster,omitempty"` // where other machines answered its items; nil: this one did
	Rules     []ManifestRule      `json:"rules,omitempty"`
}

// ManifestCluster says where a run is that other machines take part in.
type ManifestCluster struct {
	Run     string `json:"run"`     // its ID there
	Servers string `json:"servers"` // their addresses, without credentials
}

// ManifestVariable is a variable of the file with the value it had.
type ManifestVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a secret reads "(secret)"
	From  string `json:"from"`
}

// ManifestColumns say how the rows of an input are written, and where ids, texts and labels stand in
// them.
type ManifestColumns struct {
	source.Form
	ID    string `json:"id"`
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // empty: an older racflow kept the run
}

// ManifestCommand is the command that began a run, so that it can be given again.
type ManifestCommand struct {
	Dir   string         `json:"dir"` // that its paths are relative to
	Flags []ManifestFlag `json:"flags,omitempty"`
	// Withheld are variables whose values were given on the command line and are secret: they
	// are not kept.
	Withheld []string `json:"withheld,omitempty"`
	// Apart says that the flag column was of the input alone, and knowledge-column of the knowledge. Older
	// commands have one flag for both, and are read as if they had been given the two.
	Apart bool `json:"apart,omitempty"`
}

// UnmarshalJSON reads also what an older racflow kept.
func (c *ManifestCommand) UnmarshalJSON(text []byte) error {
	type plain ManifestCommand
	if err := json.Unmarshal(text, (*plain)(c)); err != nil || c.Apart {
		return err
	}
	c.Apart = true
	var flags []ManifestFlag
	for _, f := range c.Flags {
		means, _, _ := strings.Cut(f.Value, "=")
		if f.Name != "column" || means != "context" {
			flags = append(flags, f)
		}
		if f.Name == "column" && means != "gold" {
			flags = append(flags, ManifestFlag{Name: "knowledge-column", Value: f.Value})
		}
	}
	c.Flags = flags
	return nil
}

// ManifestFlag is a flag with the value that it was given, as text.
type ManifestFlag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AnswerKind are what a pipeline answers with.
type AnswerKind string

// Kinds of answers.
const (
	LabelAnswers   AnswerKind = "labels"
	TextAnswers    AnswerKind = "texts"
	PassageAnswers AnswerKind = "passages" // there is no election
)

// ManifestKnowledge is the generation that was searched.
type ManifestKnowledge struct {
	Name       string `json:"name"`
	Collection string `json:"collection"`
	Content    string `json:"content"` // hash of what it was made from
	// Embedder is a digest of what the embedder makes of a text; empty: an older racflow kept the run.
	Embedder string `json:"embedder,omitempty"`
	// Attached: another program makes it, and may have changed rows of it under one Content.
	Attached bool `json:"attached,omitempty"`
}

// ManifestStage is a stage with what its answers depend on.
type ManifestStage struct {
	Stage       string `json:"stage"` // as "sample.knn"
	Use         string `json:"use"`
	Plugin      string `json:"plugin"`
	Version     string `json:"version"`         // of the plugin
	Model       string `json:"model,omitempty"` // that it asks, where its config names one
	Fingerprint string `json:"fingerprint,omitempty"`
	Learnt      string `json:"learnt,omitempty"` // names what it has learnt from its knowledge
	// ManifestProgram is that of a third party's plugin.
	Program *ManifestProgram `json:"program,omitempty"`

	// What the run began with and a resumed one gets again.
	Resolved map[string]any `json:"resolved,omitempty"` // what the stage chose for arguments that the file leaves to it
	Price    *ManifestPrice `json:"price,omitempty"`
}

// ManifestRule is a rule of the file, as it was written: what decided an item is named by it.
type ManifestRule struct {
	Stage string `json:"stage"`          // as "sample.llm", or "sample.llm, fallback.other"
	Rule  string `json:"rule"`           // as outcome.Rule has it
	Name  string `json:"name,omitempty"` // of the fallback
	Text  string `json:"text"`
}

// ManifestProgram is a third party's program that was started.
type ManifestProgram struct {
	Path   string `json:"path"`
	Hash   string `json:"hash"`   // of it with all that belongs to it
	Origin string `json:"origin"` // "locked", "linked" or "given"
}

// ManifestPrice is what a million tokens cost.
type ManifestPrice struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
	Batch  float64 `json:"batch,omitempty"` // share of that for calls in batches; 0: half
}

// ListsDigest is one of lists of texts.
func ListsDigest(lists [][]string) string {
	text, err := json.Marshal(lists)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Define sets what the manifest says of a pipeline.
func (m *Manifest) Define(f *pipeline.File, p *pipeline.Pipeline) {
	m.Pipeline, m.Parts = p.Name, pipeline.PartDigests(p)
	m.Rules = rulesOf(p)
	for _, v := range f.Variables {
		m.Variables = append(m.Variables, ManifestVariable{v.Name, v.Value, v.From})
	}
}

// CurrentFormat is the Format of runs that are kept now: each line and file has a checksum.
const CurrentFormat = 1

// name is that of the file in a run's folder.
const name = "manifest.json"

// ErrChanged says that a manifest is not as it was written.
var ErrChanged = errors.New("its manifest.json was changed after it was written, so nobody knows what was run: put the old file back, or remove the run with racflow runs remove")

// Write writes the manifest of a run into its folder. With sync, it is on the disk then.
func (m Manifest) Write(dir string, sync bool) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, name), SealFile(text), sync)
}

// ReadManifest reads the manifest of a run from its folder. The error is fs.ErrNotExist where there
// is none, and ErrChanged where it is not as it was written.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return m, err
	}
	state := CheckSeal(text)
	err = json.Unmarshal(text, &m)
	switch {
	case state == SealChanged || state == Unsealed && (err != nil || m.Format > 0):
		return Manifest{}, ErrChanged
	case err == nil && m.Format > CurrentFormat:
		return Manifest{}, fmt.Errorf("a newer racflow kept it, in format %d; this one reads formats up to %d", m.Format, CurrentFormat)
	case err == nil && m.ID != filepath.Base(dir):
		return Manifest{}, fmt.Errorf("its manifest is of run %q", m.ID)
	}
	return m, err
}

// HasManifest reports whether a folder is that of a run that got so far as to have a manifest.
func HasManifest(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// Rows opens the input of the run, whose texts the journal does not have. It fails where
// the file is another than it was.
func (m Manifest) Rows() (*source.Reader, error) {
	if m.Columns == nil {
		return nil, fmt.Errorf("run %s does not say how its input is read, since an older racflow kept it: run it again", m.ID)
	}
	same, err := m.Input.Unchanged()
	if err != nil {
		return nil, fmt.Errorf("run %s has no texts, and its input cannot be read again: %w; put the file back, or run it again", m.ID, err)
	}
	if !same {
		return nil, fmt.Errorf("run %s has no texts, and its input %s has changed since: put the old file back, or run it again", m.ID, m.Input.Path)
	}
	c := m.Columns
	return source.Open(m.Input.Path, c.Form, source.Mapping{ID: c.ID, Text: c.Text, Label: c.Label, Meta: []string{}, Fields: true}, nil)
}

// rulesOf are the rules of a pipeline that decide about items, in file order.
func rulesOf(p *pipeline.Pipeline) (all []ManifestRule) {
	add := func(stage, kind, name string, r *rule.Rule) {
		if r != nil {
			all = append(all, ManifestRule{stage, kind, name, r.Text()})
		}
	}
	of := func(stage string, s *pipeline.Stage) {
		add(stage, outcome.RuleKeep, "", s.Keep)
		add(stage, outcome.RuleAccept, "", s.Accept)
		add(stage, outcome.RuleFlag, "", s.Flag)
	}
	for _, s := range p.Stages {
		if !s.Enabled {
			continue
		}
		stage := s.Block + "." + s.Name
		add(stage, outcome.RuleWhen, "", s.When)
		of(stage, s)
		for _, f := range s.Fallbacks {
			add(stage, outcome.RuleFallback, f.Name, f.When)
			of(stage+", fallback."+f.Name, f.Stage)
		}
	}
	return all
}
