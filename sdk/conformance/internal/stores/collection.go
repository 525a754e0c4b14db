package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/flat"
)

// dimension is the dimension of all vectors, unless stated otherwise.
const dimension = 8

// collection is a collection of the store under test, together with the collection of the same name
// in the model. Both get the same calls and have to agree. Its methods end the check at an error.
type collection struct {
	*harness.T
	*harness.Subject
	setup   harness.Setup
	process *harness.Process
	place   flat.Place // of the model
	model   sdk.Store  // a new one for each process
	name    string
	schema  sdk.Schema
	probes  []sdk.Query            // queries for the entries that were put last
	bytes   int                    // of all texts that were put
	ordered bool                   // scores are exactly equal if the model's scores are
	others  map[string]*collection // by suffix; "": in another process
}

// Names of collections differ from the names of other runs, since a server may still have those.
var (
	testRun     = rand.Uint32()
	collections atomic.Int64
)

// newCollection opens a collection in a new process.
func newCollection(t *harness.T, s *harness.Subject, schema sdk.Schema) *collection {
	c := &collection{T: t, Subject: s, setup: s.Setup(t), place: &memory{}, schema: schema, others: map[string]*collection{}}
	c.name = fmt.Sprintf("conformance_%08x_%dc", testRun, collections.Add(1))
	c.start()
	c.open()
	return c
}

// copy returns the same collection under another name, without the entries.
func (c *collection) copy(name string) *collection {
	o := *c
	o.name, o.probes, o.others = name, nil, map[string]*collection{}
	return &o
}

// start replaces the process by a new one, which knows no collection yet.
func (c *collection) start() {
	if c.process != nil {
		c.process.Close()
	}
	var err error
	if c.process, err = c.Open(c.T, c.setup); err != nil {
		c.Fatalf("open the stage: %v", err)
	}
	c.model = flat.New(c.place)
	c.dropAtEnd()
}

// dropAtEnd removes the collection after the check if the process still runs: otherwise a server
// would keep it for ever.
func (c *collection) dropAtEnd() {
	stage, name := c.process.Stage, c.name
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), c.Options.Promptly)
		defer cancel()
		_ = stage.Drop(ctx, name)
	})
}

// restart ends the process, does what the test wants in between, and opens the collection in a new
// process.
func (c *collection) restart() {
	c.process.Close()
	c.Options.Restart(c.T)
	c.start()
	c.open()
}

// modes returns the search modes of the collections under test.
func (c *collection) modes() []sdk.Mode {
	if c.Options.DenseOnly != "" || c.schema.Analyzer == "" {
		return []sdk.Mode{sdk.ModeDense}
	}
	return []sdk.Mode{sdk.ModeDense, sdk.ModeLexical, sdk.ModeHybrid}
}

// store has the methods that both the store under test and its model have.
type store interface {
	Open(ctx context.Context, name string, schema sdk.Schema) (sdk.Collection, error)
	Put(ctx context.Context, name string, entries []sdk.Entry) error
	Delete(ctx context.Context, name string, ids []string) error
	Commit(ctx context.Context, name string, note []byte) error
	Get(ctx context.Context, name string, ids []string) ([]sdk.Entry, error)
	Scan(ctx context.Context, name string, s sdk.Scan) (sdk.Page, error)
	List(ctx context.Context) ([]sdk.Collection, error)
	Drop(ctx context.Context, name string) error
}

// both makes the same call to the store and to its model.
func both[T any](c *collection, what string, call func(store) (T, error)) (got, want T) {
	got, err := call(c.process.Stage)
	want, refused := call(c.model)
	c.agree(what, err, refused)
	return got, want
}

// change is both for a call that returns only an error. It reports whether the model accepts the
// change.
func (c *collection) change(what string, call func(store) error) bool {
	err, refused := call(c.process.Stage), call(c.model)
	c.agree(what, err, refused)
	return refused == nil
}

// agree compares the error of a call with the model's error.
func (c *collection) agree(what string, got, want error) {
	var rows, failed sdk.RowErrors
	switch {
	case want == nil && got != nil:
		c.Fatalf("%s: %v", what, got)
	case !errors.As(want, &rows):
		if want != nil {
			c.refused(what, got)
		}
	case !errors.As(got, &failed) || !slices.Equal(slices.Sorted(maps.Keys(failed)), slices.Sorted(maps.Keys(rows))):
		c.Fatalf("%s: %v, want sdk.RowErrors for %v", what, got, slices.Sorted(maps.Keys(rows)))
	default:
		for row, err := range failed {
			c.refused(fmt.Sprintf("%s, row %d", what, row), err)
		}
	}
}

// refused checks that an error says that the input is invalid.
func (c *collection) refused(what string, err error) {
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		for _, err = range rows {
			break
		}
	}
	if err == nil || sdk.CodeOf(err) != sdk.CodeInvalid {
		c.Errorf("%s: got %v, want an error made by sdk.Invalid", what, err)
	}
}

// open opens the collection, which drops pending changes, and compares everything committed.
func (c *collection) open() {
	c.openAs("open", c.name, c.schema)
	c.look()
}

func (c *collection) openAs(what, name string, schema sdk.Schema) {
	have, want := both(c, what, func(s store) (sdk.Collection, error) { return s.Open(c.Context(), name, schema) })
	if have.Entries != want.Entries || have.Dimension != want.Dimension || !bytes.Equal(have.Note, want.Note) {
		c.Fatalf("%s: %d entries, %d dimensions, note %.40q; want %d, %d, %.40q",
			what, have.Entries, have.Dimension, have.Note, want.Entries, want.Dimension, want.Note)
	}
}

// put puts entries. From then on, look searches for the first and the last of them.
func (c *collection) put(entries ...sdk.Entry) {
	what := fmt.Sprintf("put %d entries", len(entries))
	taken := c.change(what, func(s store) error { return s.Put(c.Context(), c.name, entries) })
	if !taken || len(entries) == 0 {
		return
	}
	for _, e := range []sdk.Entry{entries[0], entries[len(entries)-1]} {
		text := e.Context + " " + e.Text
		c.probes = append(c.probes, sdk.Query{Text: strings.ToValidUTF8(text[:min(len(text), 200)], ""), Vector: e.Vector})
	}
	c.probes = c.probes[max(0, len(c.probes)-6):]
	for _, e := range entries {
		c.bytes += len(e.Text) + len(e.Context)
	}
}

func (c *collection) delete(ids ...string) {
	c.change(fmt.Sprintf("delete %d ids", len(ids)), func(s store) error { return s.Delete(c.Context(), c.name, ids) })
}

func (c *collection) commit(note string) {
	c.change("commit", func(s store) error { return s.Commit(c.Context(), c.name, []byte(note)) })
}

func (c *collection) drop() {
	c.change("drop", func(s store) error { return s.Drop(c.Context(), c.name) })
}

// look compares everything committed: by Scan, by Get, and by searches that find all entries.
func (c *collection) look() {
	ids := c.scan(sdk.Scan{Texts: true, Vectors: true})
	c.get(ids...)
	for _, mode := range c.modes() {
		r := ranking(mode, weighted, len(ids)+1, len(ids)+1)
		r.Texts = c.bytes < 16<<20 // more may not fit into a message
		c.compare(r, c.probes...)
	}
}

// get compares entries that Get returns.
func (c *collection) get(ids ...string) {
	got, want := both(c, "get", func(s store) ([]sdk.Entry, error) { return s.Get(c.Context(), c.name, ids) })
	if len(got) != len(want) {
		c.Fatalf("get: %d entries for %d ids", len(got), len(ids))
	}
	for i := range got {
		if err := sameEntry(got[i], want[i]); err != nil {
			c.Fatalf("get, place %d, %.20q: %v", i, ids[i], err)
		}
	}
}

// scan compares the entries of all pages of a scan, and returns their ids.
func (c *collection) scan(s sdk.Scan) (ids []string) {
	want := map[string]sdk.Entry{}
	for _, e := range c.entries(c.model, s) {
		want[e.ID] = e
	}
	got := c.entries(c.process.Stage, s)
	if len(got) != len(want) {
		c.Errorf("scan %+v: %d entries, want %d", s, len(got), len(want))
	}
	for _, e := range got {
		w, ok := want[e.ID]
		if !ok {
			c.Fatalf("scan %+v: entry %.60q is there twice or should not be", s, e.ID)
		}
		delete(want, e.ID)
		if err := sameEntry(e, w); err != nil {
			c.Fatalf("scan %+v: %v", s, err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// entries returns the entries of all pages of a scan, of the store or of its model.
func (c *collection) entries(in store, s sdk.Scan) (all []sdk.Entry) {
	for pages := 0; ; pages++ {
		page, err := in.Scan(c.Context(), c.name, s)
		switch {
		case err != nil:
			c.Fatalf("scan, page %d: %v", pages, err)
		case s.Limit > 0 && len(page.Entries) > s.Limit:
			c.Fatalf("scan: page %d has %d entries, the limit was %d", pages, len(page.Entries), s.Limit)
		case page.Next != "" && page.Next == s.After:
			c.Fatalf("scan: page %d comes again and again", pages)
		}
		all = append(all, page.Entries...)
		if s.After = page.Next; s.After == "" {
			return all
		}
	}
}

// list compares the results of List for the collection and its neighbours; a server may have others.
func (c *collection) list() {
	got, want := both(c, "list", func(s store) ([]sdk.Collection, error) { return s.List(c.Context()) })
	if !slices.IsSortedFunc(got, func(a, b sdk.Collection) int { return strings.Compare(a.Name, b.Name) }) {
		c.Errorf("list: %+v is not sorted by name", got)
	}
	describe := func(all []sdk.Collection) (lines []string) {
		for _, one := range all {
			if strings.HasPrefix(one.Name, c.name) {
				lines = append(lines, fmt.Sprintf("%q: %d entries of dimension %d, note %q", one.Name, one.Entries, one.Dimension, one.Note))
			}
		}
		return lines
	}
	if !slices.Equal(describe(got), describe(want)) {
		c.Errorf("list: %v, want %v", describe(got), describe(want))
	}
}

// sameEntry compares an entry with the model's. Only the direction of a vector counts.
func sameEntry(got, want sdk.Entry) error {
	switch {
	case got.ID != want.ID:
		return fmt.Errorf("entry %.60q where %.60q should be", got.ID, want.ID)
	case !bytes.Equal(got.Hash, want.Hash):
		return fmt.Errorf("entry %.60q has hash %x, want %x", got.ID, got.Hash, want.Hash)
	case len(got.Vector) != len(want.Vector):
		return fmt.Errorf("entry %.60q has a vector of %d dimensions, want %d", got.ID, len(got.Vector), len(want.Vector))
	case norm(want.Vector) > 0 && !(cosine(got.Vector, want.Vector) > 1-1e-6), norm(want.Vector) == 0 && norm(got.Vector) != 0:
		return fmt.Errorf("entry %.60q has vector %v, want the direction of %v", got.ID, got.Vector, want.Vector)
	}
	return sameContent(
		sdk.Candidate{ID: got.ID, Label: got.Label, Text: got.Text, Context: got.Context, Meta: got.Meta},
		sdk.Candidate{Label: want.Label, Text: want.Text, Context: want.Context, Meta: want.Meta})
}

// sameContent compares the contents of candidates.
func sameContent(got, want sdk.Candidate) error {
	if got.Label != want.Label || got.Text != want.Text || got.Context != want.Context || !maps.Equal(got.Meta, want.Meta) {
		return fmt.Errorf("entry %.60q has label %.60q, text %.60q (%d bytes), context %.60q and metadata %.200v, want %.60q, %.60q (%d), %.60q and %.200v",
			got.ID, got.Label, got.Text, len(got.Text), got.Context, fmt.Sprintf("%#v", got.Meta), want.Label, want.Text, len(want.Text), want.Context, fmt.Sprintf("%#v", want.Meta))
	}
	return nil
}

func norm(v []float32) float64 { return math.Sqrt(dot(v, v)) }

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// cosine returns 0 if one of the vectors is all zero.
func cosine(a, b []float32) float64 {
	if product := norm(a) * norm(b); product != 0 {
		return dot(a, b) / product
	}
	return 0
}

// memory is a Place for the model that lasts as long as the check.
type memory struct{ contents sync.Map }

func (m *memory) Load(_ context.Context, name string) ([]byte, error) {
	if content, ok := m.contents.Load(name); ok {
		return content.([]byte), nil
	}
	return nil, fs.ErrNotExist
}

func (m *memory) Save(_ context.Context, name string, content []byte) error {
	m.contents.Store(name, content)
	return nil
}

func (m *memory) Remove(_ context.Context, name string) error {
	m.contents.Delete(name)
	return nil
}

func (m *memory) Names(context.Context) (names []string, err error) {
	m.contents.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	return names, nil
}
