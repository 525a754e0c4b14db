package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
)

// Manifest is what was run. Secrets are not in it.
type Manifest struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"`
	File     string    `json:"file"` // absolute
	Pipeline string    `json:"pipeline"`
	// Parts are digests of what answers depend on in the checked pipeline, so that
	// what differs can be named; see package identity.
	Parts     map[string]string `json:"parts"`
	Variables []Variable        `json:"variables,omitempty"`
	Input     File              `json:"input"`
	// Columns are those of the input with ids and texts, so that it can be read again;
	// nil: an older racflow kept the run.
	Columns *Columns `json:"columns,omitempty"`
	// Answers says what the answers are; empty: an older racflow kept the run.
	Answers   Answers     `json:"answers,omitempty"`
	Limit     int         `json:"limit,omitempty"` // items; 0: all
	Spend     spend.Limit `json:"spend,omitzero"`  // on voters that call services, unless the resumed run has another
	Knowledge []Knowledge `json:"knowledge,omitempty"`
	Stages    []Stage     `json:"stages"`
}

// Variable is a variable of the file with the value it had.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a secret reads "(secret)"
	From  string `json:"from"`
}

// Columns say how the rows of an input are written, and where ids and texts stand in them.
type Columns struct {
	source.Form
	ID   string `json:"id"`
	Text string `json:"text"`
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
}

// Stage is a stage with what its answers depend on.
type Stage struct {
	Stage       string `json:"stage"` // as "sample.knn"
	Use         string `json:"use"`
	Plugin      string `json:"plugin"`
	Version     string `json:"version"`         // of the plugin
	Model       string `json:"model,omitempty"` // that it asks, where its config names one
	Fingerprint string `json:"fingerprint,omitempty"`
	Learnt      string `json:"learnt,omitempty"`  // names what it has learnt from its knowledge
	Program     *File  `json:"program,omitempty"` // of a third party's plugin

	// What the run began with and a resumed one gets again.
	Resolved map[string]any `json:"resolved,omitempty"` // what the stage chose for arguments that the file leaves to it
	Price    *Price         `json:"price,omitempty"`
}

// Price is what a million tokens cost.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
	Batch  float64 `json:"batch,omitempty"` // share of that for calls in batches; 0: half
}

// File is a file with what its content is recognised by: its hash or, where it
// is large, size and time.
type File struct {
	Path     string    `json:"path"` // "-": standard input
	SHA256   string    `json:"sha256,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// maxHashed is the size of the largest file that is hashed, in bytes: that
// takes about as long as it takes a stage to start.
const maxHashed = 256 << 20

// NewFile looks at a file.
func NewFile(path string) (File, error) {
	f := File{Path: path}
	if path == "-" {
		return f, nil
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
func (f File) Unchanged() (bool, error) {
	now, err := NewFile(f.Path)
	return f.same(now), err
}

// same reports whether two files have the same content.
func (f File) same(other File) bool {
	return f.SHA256 == other.SHA256 && f.Size == other.Size && f.Modified.Equal(other.Modified)
}

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
	if !m.Input.same(other.Input) {
		add("the input %s", other.Input.Path)
	}
	if m.Limit != other.Limit {
		add("Options.Limit, which was %d", m.Limit)
	}
	before := map[string]Knowledge{}
	for _, k := range m.Knowledge {
		before[k.Name] = k
	}
	for _, k := range other.Knowledge {
		if b, ok := before[k.Name]; ok && b != k {
			add("knowledge %q", k.Name)
		}
	}
	stages := map[string]Stage{}
	for _, s := range m.Stages {
		stages[s.Stage] = s
	}
	for _, s := range other.Stages {
		b, ok := stages[s.Stage]
		if !ok || b.Use != s.Use {
			continue // then the part of the file differs
		}
		switch {
		case s.Program != nil && b.Program != nil && !s.Program.same(*b.Program):
			add("the plugin %s of %s, now version %s", s.Plugin, s.Stage, s.Version)
		case b.Fingerprint != s.Fingerprint:
			add("what %s works with, such as its model or template", s.Stage)
		case b.Learnt != s.Learnt:
			add("what %s has learnt", s.Stage)
		}
	}
	return all
}

// Define sets what the manifest says of a pipeline.
func (m *Manifest) Define(f *pipeline.File, p *pipeline.Pipeline) {
	m.Pipeline, m.Parts = p.Name, identity.Parts(p)
	for _, v := range f.Variables {
		m.Variables = append(m.Variables, Variable{v.Name, v.Value, v.From})
	}
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
