package journal

import (
	"cmp"
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
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// This file describes a run by fingerprints of the pipeline's parts, the input, the knowledge and
// the plugins. They show whether another run would answer in the same way. The manifest also keeps
// what a resumed run needs: values that stages chose when they started, prices, and the command
// that began the run.
//
// A manifest is a file in a run's folder. It is written once, before the first item, with a
// checksum (sealed.go). A manifest that was changed later is refused, because it may not describe
// what was run.
//
// It has no secrets.

// Manifest describes what was run. It has no secrets.
type Manifest struct {
	// Format is the version of the run's folder: currentFormat, unless a newer racflow wrote the
	// run.
	Format   int       `json:"format,omitempty"`
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"`
	Revision string    `json:"revision,omitempty"` // commit that racflow was built from; empty: unknown
	File     string    `json:"file"`               // absolute
	Pipeline string    `json:"pipeline"`
	// Parts are digests of the pipeline's parts that answers depend on, so that differences can be
	// named; see package pipeline.
	Parts     map[string]string  `json:"parts"`
	Variables []ManifestVariable `json:"variables,omitempty"`
	Input     SeenFile           `json:"input"`
	Output    string             `json:"output,omitempty"` // absolute path of the file that results first went to; empty: a stream, or unknown
	// Columns say where the input has ids and texts, so that it can be read again.
	Columns   *ManifestColumns `json:"columns,omitempty"`
	Answers   AnswerKind       `json:"answers,omitempty"`
	LabelForm sdk.LabelForm    `json:"label_form,omitzero"` // of LabelAnswers
	// Renames maps labels of the input to the labels that replace them, by the knowledge's table of
	// labels.
	Renames map[string]string `json:"renames,omitempty"`
	Command *ManifestCommand  `json:"command,omitempty"` // nil: no command began the run
	Limit   int               `json:"limit,omitempty"`   // items; 0: all
	Share   Share             `json:"part,omitzero"`     // of the items up to Limit
	Spend   spend.Limit       `json:"spend,omitzero"`    // limit for voters that call services, unless the resumed run has another
	// Calibrating is the cost of asking voters about held-out rows before the first item.
	Calibrating outcome.Bill        `json:"calibrating,omitzero"`
	Knowledge   []ManifestKnowledge `json:"knowledge,omitempty"`
	Labels      string              `json:"labels,omitempty"` // digest of all labels of the knowledge
	Stages      []ManifestStage     `json:"stages"`
	Rules       []ManifestRule      `json:"rules,omitempty"`

	// Mine means that this user began the run: the manifest is, or will be, marked. A manifest of another user
	// starts no program, and nothing is sent to addresses that it names.
	Mine bool `json:"-"`
}

// Differences lists the differences between this run and another run that is to continue it.
func (m Manifest) Differences(other Manifest) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if m.Version != other.Version {
		add("racflow is version %s, it was %s", other.Version, m.Version)
	}
	for _, part := range differing(m.Parts, other.Parts) {
		add("%s of the file", part)
	}
	if !m.Input.same(other.Input) {
		add("the input %s", other.Input.Path)
	}
	if m.Limit != other.Limit {
		add("Options.Limit, which was %d", m.Limit)
	}
	if m.Share != other.Share {
		add("the part of the input, which was %s", cmp.Or(m.Share.String(), "the whole"))
	}
	before := map[string]ManifestKnowledge{}
	for _, k := range m.Knowledge {
		before[k.Name] = k
	}
	for _, k := range other.Knowledge {
		if b, ok := before[k.Name]; ok && b != k {
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
			continue // the part of the file differs, too, and is listed above
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

// SeenFile is a file with a fingerprint of its content: its hash or, for a large file, its size and
// time.
type SeenFile struct {
	Path     string    `json:"path"` // "-": standard input
	SHA256   string    `json:"sha256,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// maxHashed is the size in bytes of the largest file that is hashed: hashing it takes about as long
// as starting a stage.
const maxHashed = 256 << 20

// LookAtFile fingerprints a file.
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

// Unchanged reports whether the file still has the same content. An error means that the file
// cannot be read.
func (f SeenFile) Unchanged() (bool, error) {
	now, err := LookAtFile(f.Path)
	return f.same(now), err
}

// same reports whether two files have the same content.
func (f SeenFile) same(other SeenFile) bool {
	return f.SHA256 == other.SHA256 && f.Size == other.Size && f.Modified.Equal(other.Modified)
}

// ManifestVariable is a variable of the file with its value.
type ManifestVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a secret reads "(secret)"
	From  string `json:"from"`
}

// ManifestColumns is the format of an input's rows, and the columns with ids, texts and labels.
type ManifestColumns struct {
	source.Form
	ID    string `json:"id"`
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // empty: none

	Labels source.Labels `json:"labels,omitzero"`
}

// ManifestCommand is the command that began a run, so that it can be repeated.
type ManifestCommand struct {
	Dir   string         `json:"dir"` // the command's paths are relative to it
	Flags []ManifestFlag `json:"flags,omitempty"`
	// Withheld names secret variables given on the command line, whose values are not kept.
	Withheld []string `json:"withheld,omitempty"`
}

// ManifestFlag is a flag with its value as text.
type ManifestFlag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AnswerKind is the kind of a pipeline's answers.
type AnswerKind string

// Kinds of answers.
const (
	LabelAnswers   AnswerKind = "labels"
	TextAnswers    AnswerKind = "texts"
	PassageAnswers AnswerKind = "passages" // there is no election
)

// ManifestKnowledge identifies a generation that was searched.
type ManifestKnowledge struct {
	Name       string `json:"name"`
	Collection string `json:"collection"`
	Content    string `json:"content"` // hash of its sources
	// Embedder is a digest of how the embedder encodes texts.
	Embedder string `json:"embedder,omitempty"`
	// Attached means that another program makes the generation, and may change rows without
	// changing Content.
	Attached bool `json:"attached,omitempty"`
}

// ManifestStage is a stage, with everything that its answers depend on.
type ManifestStage struct {
	Stage       string `json:"stage"` // as "sample.knn"
	Use         string `json:"use"`
	Plugin      string `json:"plugin"`
	Version     string `json:"version"`         // of the plugin
	Model       string `json:"model,omitempty"` // model that the stage asks, if its config names one
	Fingerprint string `json:"fingerprint,omitempty"`
	Learnt      string `json:"learnt,omitempty"` // identifies what the stage learnt from its knowledge
	// Program is set for a third party's plugin.
	Program *ManifestProgram `json:"program,omitempty"`

	// Values at the start of the run, which a resumed run gets again.
	Resolved map[string]any `json:"resolved,omitempty"` // values that the stage chose for arguments that the file leaves to it
	Price    *ManifestPrice `json:"price,omitempty"`
}

// ManifestRule is a rule of the file as written. Results refer to the rules that decided them.
type ManifestRule struct {
	Stage string `json:"stage"`          // as "sample.llm" or "sample.llm, fallback.other"
	Rule  string `json:"rule"`           // name, as in outcome.Rule
	Name  string `json:"name,omitempty"` // of the fallback
	Text  string `json:"text"`
}

// ManifestProgram is the program of a third party's plugin.
type ManifestProgram struct {
	Path   string `json:"path"`
	Hash   string `json:"hash"`   // of the program and all that belongs to it
	Origin string `json:"origin"` // "locked", "linked" or "given"
}

// ManifestPrice is the price of a million tokens.
type ManifestPrice struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
	Batch  float64 `json:"batch,omitempty"` // share of that price for calls in batches; 0: half
}

// ListsDigest returns a digest of lists of texts.
func ListsDigest(lists [][]string) string {
	text, err := json.Marshal(lists)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Define describes a pipeline in the manifest.
func (m *Manifest) Define(f *pipeline.File, p *pipeline.Pipeline) {
	m.Pipeline, m.Parts = p.Name, pipeline.PartDigests(p)
	m.Rules = rulesOf(p)
	for _, v := range f.Variables {
		m.Variables = append(m.Variables, ManifestVariable{v.Name, v.Value, v.From})
	}
}

// currentFormat is the Format of new runs: each line and file has a checksum.
const currentFormat = 1

// name is the manifest's file name in a run's folder.
const name = "manifest.json"

// errChanged means that a manifest was changed after it was written.
var errChanged = errors.New("its manifest.json was changed after it was written, so nobody knows what was run: put the old file back, or remove the run with racflow runs remove")

// Write writes the manifest into a run's folder. With sync, it is on disk when Write returns.
func (m Manifest) Write(dir string, sync bool) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if m.Mine {
		text = sign(text)
	}
	return disk.WriteFile(filepath.Join(dir, name), SealFile(text), sync)
}

// ReadManifest reads the manifest in a run's folder. The error is fs.ErrNotExist if there is none,
// and errChanged if it was changed after it was written.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(text, &m)
	switch {
	case err != nil || !Sealed(text):
		return Manifest{}, errChanged
	case m.Format > currentFormat:
		return Manifest{}, fmt.Errorf("a newer racflow kept it, in format %d; this one reads formats up to %d", m.Format, currentFormat)
	case m.ID != filepath.Base(dir):
		return Manifest{}, fmt.Errorf("its manifest is of run %q", m.ID)
	}
	m.Mine = signed(text)
	return m, nil
}

// hasManifest reports whether a folder is a run's and has a manifest.
func hasManifest(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// Rows opens the input of the run, because the journal has no texts. It fails if the file has
// changed.
func (m Manifest) Rows() (*source.Reader, error) {
	same, err := m.Input.Unchanged()
	if err != nil {
		return nil, fmt.Errorf("run %s has no texts, and its input cannot be read again: %w; put the file back, or run it again", m.ID, err)
	}
	if !same {
		return nil, fmt.Errorf("run %s has no texts, and its input %s has changed since: put the old file back, or run it again", m.ID, m.Input.Path)
	}
	c := m.Columns
	return source.Open(m.Input.Path, c.Form, source.Mapping{ID: c.ID, Text: c.Text, Label: c.Label, Labels: c.Labels, Meta: []string{}, Fields: true}, nil)
}

// rulesOf returns the rules of a pipeline that decide about items, in file order.
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
