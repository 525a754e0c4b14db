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
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/flat"
)

// storeCase is one check, on a new collection in a process of its own.
type storeCase struct {
	name string
	run  func(*collection)
}

// topics are groups of checks with one reason.
var topics = []struct {
	name, why, fix string
	cases          []storeCase
}{
	{"search", "A pipeline's answers depend on exact scores in one order, whichever store has the knowledge.",
		"Compare what the search returns with what sdk.Store, sdk.Hits and sdk.Ranking promise; BM25 has k1 = 1.2 and b = 0.75.", searchCases},
	{"filters", filtersWhy,
		"Do what sdk.Filter says of each operator, also where the value is missing or of another type; or do not declare sdk.Filters.", filterCases},
	{"write", "A build never changes what is being searched, until one commit makes all of it visible.",
		"Keep puts and deletes pending until Commit; the last put of an id counts; Open drops what is pending.", writeCases},
	{"restart", "What was committed outlives every process, and what was not is gone.",
		"Write to disk in Commit, before it returns, and read that in Open.", restartCases},
	{"content", "People's texts, ids, labels and metadata come back letter by letter.",
		"Do not escape, cut, trim or normalise what is stored.", contentCases},
	{"scan", "A build compares the store with its source page by page; an entry that is left out is embedded and paid for again.",
		"Order pages by id, begin each after the last id of the one before, and keep a page below the size of a message.", scanCases},
	{"list", "`racflow knowledge` lists and removes collections, also those that this process has not opened.",
		"List every collection once, by name, and remove all of one in Drop.", listCases},
	{"refuse", "An invalid entry or query fails alone, as an invalid one, so that nobody tries it again.",
		"Return sdk.Invalid, or sdk.RowErrors with it, and store nothing of what is refused.", refuseCases},
	{"together", "Runs search while a build writes, and give calls up when a person stops them.",
		"Let each search see one commit, keep collections apart, and stop working when the context ends.", togetherCases},
	{"processes", "Several runs and a server share knowledge: one builds while others read, or wants to build, too.",
		"Refuse a change, or its commit, with sdk.Transient where another process has changed the collection since this one opened it.", processCases},
}

const filtersWhy = "Filters choose entries before the best are chosen; one too many or too few is a wrong answer that nobody sees."

// Checks are all checks of stores.
func Checks() (all []harness.Check) {
	for _, topic := range topics {
		for _, c := range topic.cases {
			run := func(t *harness.T, s *harness.Subject) error {
				schema := sdk.Schema{Dimension: dimension, Analyzer: "standard"}
				if s.Options.DenseOnly != "" {
					schema.Analyzer = ""
				}
				c.run(newCollection(t, s, schema))
				return nil
			}
			all = append(all, harness.Check{Name: topic.name + "/" + c.name, Why: topic.why, Fix: topic.fix, Within: harness.Longest, Run: run})
		}
	}
	return all
}

// dimension is that of all vectors, where not said otherwise.
const dimension = 8

// collection is one of the store under test beside one of the same name in its model, a store that
// scores and sorts everything (package flat). Whatever is done with the one is done with the other,
// and they have to agree. Its methods end the check at an error.
type collection struct {
	*harness.T
	*harness.Subject
	setup   harness.Setup
	process *harness.Process
	place   flat.Place // of the model
	model   sdk.Store  // a new one for each process
	name    string
	schema  sdk.Schema
}

// Names of collections differ from those of other runs, whose collections a
// server may still have.
var (
	testRun     = rand.Uint32()
	collections atomic.Int64
)

// newCollection opens a collection in a new process.
func newCollection(t *harness.T, s *harness.Subject, schema sdk.Schema) *collection {
	name := fmt.Sprintf("conformance_%08x_%d", testRun, collections.Add(1))
	c := &collection{T: t, Subject: s, setup: s.Setup(t), place: &memory{}, name: name, schema: schema}
	c.start()
	c.open()
	return c
}

// fresh is another collection, in a process of its own.
func (c *collection) fresh(schema sdk.Schema) *collection {
	return newCollection(c.T, c.Subject, schema)
}

// start starts a process, which knows of no collection yet.
func (c *collection) start() {
	var err error
	if c.process, err = c.Open(c.T, c.setup); err != nil {
		c.Fatalf("open the stage: %v", err)
	}
	c.model = flat.New(c.place)
	c.dropAtEnd()
}

// dropAtEnd removes the collection after the check, where the process still runs then: a server
// would have it for ever.
func (c *collection) dropAtEnd() {
	stage, name := c.process.Stage, c.name
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), c.Options.Promptly)
		defer cancel()
		_ = stage.Drop(ctx, name)
	})
}

// restart ends the process, does what the test wants in between, and opens the
// collection in another process.
func (c *collection) restart() {
	c.process.Close()
	c.Options.Restart(c.T)
	c.start()
	c.open()
}

// other opens a collection beside this one, in the same process.
func (c *collection) other(name string, schema sdk.Schema) *collection {
	o := *c
	o.name, o.schema = name, schema
	o.dropAtEnd()
	o.open()
	return &o
}

// beside opens the collection in another process.
func (c *collection) beside() *collection {
	o := *c
	o.start()
	o.open()
	return &o
}

// modes are those of the collections under test.
func (c *collection) modes() []sdk.Mode {
	if c.Options.DenseOnly != "" {
		return []sdk.Mode{sdk.ModeDense}
	}
	return []sdk.Mode{sdk.ModeDense, sdk.ModeLexical, sdk.ModeHybrid}
}

func (c *collection) needsLexical() {
	if reason := c.Options.DenseOnly; reason != "" {
		c.Skipf("dense only: %s", reason)
	}
}

// store is what the store under test and its model have in common.
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

// both makes a call of the store and of its model.
func both[T any](c *collection, what string, call func(store) (T, error)) (got, want T) {
	got, err := call(c.process.Stage)
	want, refused := call(c.model)
	c.agree(what, err, refused)
	return got, want
}

// change is both for a call that returns an error alone.
func (c *collection) change(what string, call func(store) error) {
	c.agree(what, call(c.process.Stage), call(c.model))
}

// agree compares the error of a call with that of the model.
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

// open opens the collection, which drops what is pending, and compares all that is committed.
func (c *collection) open() {
	c.openAs("open", c.name, c.schema)
	c.check()
}

func (c *collection) openAs(what, name string, schema sdk.Schema) {
	have, want := both(c, what, func(s store) (sdk.Collection, error) { return s.Open(c.Context(), name, schema) })
	if have.Entries != want.Entries || have.Dimension != want.Dimension || !bytes.Equal(have.Note, want.Note) {
		c.Fatalf("%s: %d entries, %d dimensions, note %.40q; want %d, %d, %.40q",
			what, have.Entries, have.Dimension, have.Note, want.Entries, want.Dimension, want.Note)
	}
}

func (c *collection) put(entries ...sdk.Entry) {
	c.change(fmt.Sprintf("put %d entries", len(entries)), func(s store) error { return s.Put(c.Context(), c.name, entries) })
}

func (c *collection) delete(ids ...string) {
	c.change(fmt.Sprintf("delete %d ids", len(ids)), func(s store) error { return s.Delete(c.Context(), c.name, ids) })
}

func (c *collection) commit(note string) {
	c.change("commit", func(s store) error { return s.Commit(c.Context(), c.name, []byte(note)) })
}

// commitChecked is commit and check.
func (c *collection) commitChecked(note string) {
	c.commit(note)
	c.check()
}

func (c *collection) drop() {
	c.change("drop", func(s store) error { return s.Drop(c.Context(), c.name) })
}

// get compares entries that are got by their ids.
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

// entries are those of all pages of a scan of the store or of its model.
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

// ids are those of what is committed.
func (c *collection) ids() (ids []string) {
	for _, e := range c.entries(c.model, sdk.Scan{}) {
		ids = append(ids, e.ID)
	}
	return ids
}

// check compares all that is committed, by Scan and Get.
func (c *collection) check() {
	c.scan(sdk.Scan{Texts: true, Vectors: true})
	c.get(c.ids()...)
}

// sameEntry compares an entry with that of the model. Of a vector the direction counts.
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

// sameContent compares what candidates carry.
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

// cosine is 0 where a vector is.
func cosine(a, b []float32) float64 {
	if product := norm(a) * norm(b); product != 0 {
		return dot(a, b) / product
	}
	return 0
}

// memory is a place of the model that lasts as long as the check.
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
