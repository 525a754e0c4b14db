package stores

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/internal/harness"
)

// suite is the checks of a store.
type suite struct {
	stage   sdk.Stage
	config  string
	options *harness.Options
}

// storeCase is one subtest, on a new collection in a process of its own.
type storeCase struct {
	name string
	run  func(*collection)
}

// Run runs all cases.
func Run(t harness.Tester, stage sdk.Stage, config string, o *harness.Options) {
	s := &suite{stage, config, o}
	for _, topic := range []struct {
		name  string
		cases []storeCase
	}{
		{"search", searchCases},
		{"filters", filterCases},
		{"write", writeCases},
		{"restart", restartCases},
		{"content", contentCases},
		{"scan", scanCases},
		{"list", listCases},
		{"refuse", refuseCases},
		{"together", togetherCases},
	} {
		t.Run(topic.name, func(t harness.Tester) {
			for _, c := range topic.cases {
				t.Run(c.name, func(t harness.Tester) {
					schema := sdk.Schema{Dimension: dimension, Analyzer: "standard"}
					if s.options.DenseOnly != "" {
						schema.Analyzer = ""
					}
					c.run(s.newCollection(t, schema))
				})
			}
		})
	}
}

// dimension is that of all vectors, where not said otherwise.
const dimension = 8

// modes are those of the collections under test.
func (s *suite) modes() []sdk.Mode {
	if s.options.DenseOnly != "" {
		return []sdk.Mode{sdk.ModeDense}
	}
	return []sdk.Mode{sdk.ModeDense, sdk.ModeLexical, sdk.ModeHybrid}
}

// collection is a collection, and what it ought to hold. Its methods end the
// test at an error.
type collection struct {
	harness.Tester
	*suite
	setup   sdk.Setup
	process *harness.Process
	name    string
	schema  sdk.Schema
	note    string
	now     model // committed
	pending model // what Commit would make of it

	statistics *statistics // of what is committed; nil: not counted yet
}

// Names of collections differ from those of other runs, whose collections a
// server may still have.
var (
	testRun     = rand.Uint32()
	collections atomic.Int64
)

// newCollection opens a collection in a new process.
func (s *suite) newCollection(t harness.Tester, schema sdk.Schema) *collection {
	t.Helper()
	c := &collection{
		Tester: t, suite: s, setup: sdk.Setup{StateDir: t.TempDir()}, schema: schema,
		name: fmt.Sprintf("conformance_%08x_%d", testRun, collections.Add(1)), now: model{},
	}
	c.start()
	c.open()
	return c
}

// fresh is another collection, in a process of its own.
func (c *collection) fresh(schema sdk.Schema) *collection {
	c.Helper()
	return c.newCollection(c.Tester, schema)
}

func (c *collection) needsLexical() {
	if reason := c.options.DenseOnly; reason != "" {
		c.Skip("dense only: " + reason)
	}
}

// start starts a process, which knows of no collection yet.
func (c *collection) start() {
	c.Helper()
	var err error
	if c.process, err = harness.Start(c, c.stage, c.setup, c.config); err != nil {
		c.Fatalf("open the stage: %v", err)
	}
}

// other opens a collection beside this one, in the same process.
func (c *collection) other(name string, schema sdk.Schema) *collection {
	c.Helper()
	o := &collection{Tester: c.Tester, suite: c.suite, setup: c.setup, process: c.process, name: name, schema: schema, now: model{}}
	o.open()
	return o
}

// in is the collection with errors reported to a subtest.
func (c *collection) in(t harness.Tester) *collection {
	sub := *c
	sub.Tester = t
	return &sub
}

// open opens the collection, which drops what is pending, and checks what Open
// says of it.
func (c *collection) open() {
	c.Helper()
	have, err := c.process.Stage.Open(c.Context(), c.name, c.schema)
	if err != nil {
		c.Fatalf("open: %v", err)
	}
	if have.Entries != len(c.now) || have.Dimension != c.schema.Dimension || string(have.Note) != c.note {
		c.Fatalf("open: %d entries, %d dimensions, note %.40q; want %d, %d, %.40q",
			have.Entries, have.Dimension, have.Note, len(c.now), c.schema.Dimension, c.note)
	}
	c.pending = maps.Clone(c.now)
}

func (c *collection) put(entries ...sdk.Entry) {
	c.Helper()
	if err := c.process.Stage.Put(c.Context(), c.name, entries); err != nil {
		c.Fatalf("put %d entries: %v", len(entries), err)
	}
	for _, e := range entries {
		c.pending[e.ID] = e
	}
}

func (c *collection) delete(ids ...string) {
	c.Helper()
	if err := c.process.Stage.Delete(c.Context(), c.name, ids); err != nil {
		c.Fatalf("delete %d ids: %v", len(ids), err)
	}
	for _, id := range ids {
		delete(c.pending, id)
	}
}

func (c *collection) commit(note string) {
	c.Helper()
	if err := c.process.Stage.Commit(c.Context(), c.name, []byte(note)); err != nil {
		c.Fatalf("commit: %v", err)
	}
	c.now, c.note, c.statistics = maps.Clone(c.pending), note, nil
}

// commitChecked is commit and check.
func (c *collection) commitChecked(note string) {
	c.Helper()
	c.commit(note)
	c.check()
}

func (c *collection) get(ids ...string) []sdk.Entry {
	c.Helper()
	entries, err := c.process.Stage.Get(c.Context(), c.name, ids)
	if err != nil {
		c.Fatalf("get %d ids: %v", len(ids), err)
	}
	return entries
}

// scan returns all pages of a scan.
func (c *collection) scan(s sdk.Scan) (pages [][]sdk.Entry) {
	c.Helper()
	for {
		page, err := c.process.Stage.Scan(c.Context(), c.name, s)
		if err != nil {
			c.Fatalf("scan, page %d: %v", len(pages), err)
		}
		pages = append(pages, page.Entries)
		if s.After = page.Next; page.Next == "" {
			return pages
		}
		if len(pages) > len(c.now)+10 {
			c.Fatalf("scan: no end after %d pages of %d entries", len(pages), len(c.now))
		}
	}
}

// check compares all that is committed with what ought to be, by Scan and Get.
func (c *collection) check() {
	c.Helper()
	all := slices.Concat(c.scan(sdk.Scan{Texts: true, Vectors: true})...)
	if len(all) != len(c.now) {
		c.Errorf("scan: %d entries, want %d", len(all), len(c.now))
	}
	seen := map[string]bool{}
	for _, e := range all {
		want, ok := c.now[e.ID]
		if !ok || seen[e.ID] {
			c.Fatalf("scan: entry %.60q is there twice or should not be", e.ID)
		}
		seen[e.ID] = true
		if err := sameEntry(e, want, true, true); err != nil {
			c.Fatalf("scan: %v", err)
		}
	}
	ids := slices.Sorted(maps.Keys(c.now))
	for i, e := range c.get(ids...) {
		if err := sameEntry(e, c.now[ids[i]], true, false); err != nil {
			c.Fatalf("get: %v", err)
		}
	}
}
