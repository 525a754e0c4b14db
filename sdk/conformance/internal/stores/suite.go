package stores

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
)

// suite is a store under test.
type suite struct {
	*harness.Subject
	options *harness.Options
}

// storeCase is one check, on a new collection in a process of its own.
type storeCase struct {
	name string
	run  func(*collection)
}

// Topic is a group of checks with one reason.
type Topic struct {
	Name, Why, Fix string
	cases          []storeCase
}

// Topics are all checks of stores.
var Topics = []Topic{
	{"search", "A pipeline's answers depend on exact scores in one order, whichever store has the knowledge.",
		"Compare what the search returns with what sdk.Store, sdk.Hits and sdk.Ranking promise; BM25 has k1 = 1.2 and b = 0.75.", searchCases},
	{"filters", "Filters choose entries before the best are chosen; one too many or too few is a wrong answer that nobody sees.",
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

// Cases calls yield with the name of each check of a topic, and what runs it.
func (p Topic) Cases(yield func(name string, run func(harness.T, *harness.Subject))) {
	for _, c := range p.cases {
		yield(p.Name+"/"+c.name, func(t harness.T, subject *harness.Subject) {
			s := &suite{subject, subject.Options}
			schema := sdk.Schema{Dimension: dimension, Analyzer: "standard"}
			if s.options.DenseOnly != "" {
				schema.Analyzer = ""
			}
			c.run(s.newCollection(t, schema))
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
	harness.T
	*suite
	setup   harness.Setup
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
func (s *suite) newCollection(t harness.T, schema sdk.Schema) *collection {
	t.Helper()
	c := &collection{
		T: t, suite: s, setup: s.Setup(t), schema: schema,
		name: fmt.Sprintf("conformance_%08x_%d", testRun, collections.Add(1)), now: model{},
	}
	c.start()
	c.open()
	return c
}

// fresh is another collection, in a process of its own.
func (c *collection) fresh(schema sdk.Schema) *collection {
	c.Helper()
	return c.newCollection(c.T, schema)
}

func (c *collection) needsLexical() {
	if reason := c.options.DenseOnly; reason != "" {
		c.Skipf("dense only: %s", reason)
	}
}

// start starts a process, which knows of no collection yet.
func (c *collection) start() {
	c.Helper()
	var err error
	if c.process, err = c.Open(c, c.setup); err != nil {
		c.Fatalf("open the stage: %v", err)
	}
	c.dropAtEnd()
}

// dropAtEnd removes the collection after the check, where the process still runs then: a server
// would have it for ever.
func (c *collection) dropAtEnd() {
	stage, name := c.process.Stage, c.name
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), c.options.Promptly)
		defer cancel()
		_ = stage.Drop(ctx, name)
	})
}

// other opens a collection beside this one, in the same process.
func (c *collection) other(name string, schema sdk.Schema) *collection {
	c.Helper()
	o := &collection{T: c.T, suite: c.suite, setup: c.setup, process: c.process, name: name, schema: schema, now: model{}}
	o.dropAtEnd()
	o.open()
	return o
}

// in is the collection with errors reported to a subtest.
func (c *collection) in(t harness.T) *collection {
	sub := *c
	sub.T = t
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

// tenantCases are about entries that belong to somebody: none of them may be found by others.
var tenantCases = []storeCase{
	{"tenants", (*collection).tenants},
	{"tenants while entries move", (*collection).movingTenants},
}

func tenant(name string) sdk.Filter { return meta("tenant").is(name) }

// tenants searches as each of several tenants, also by rules of their own that try to reach what is not
// theirs. Names of tenants are alike, and what others have is nearer to the query.
func (c *collection) tenants() {
	names := []string{"a", "A", "a ", "ab", "b", "", "a%", "1", "true", "null"}
	random := rand.New(rand.NewPCG(5, 5))
	var entries []sdk.Entry
	for i := range 12 * len(names) {
		e := sdk.Entry{ID: fmt.Sprintf("f%03d", i), Label: []string{"red", "green", ""}[i%3], Meta: sdk.Meta{"n": float64(i % 7)}}
		if name := names[i%len(names)]; i < 11*len(names) {
			e.Meta["tenant"] = name
		} else if i%2 == 0 {
			e.Meta["tenant"] = []any{1.0, true}[i/2%2] // of another type than any name
		}
		entries = append(entries, e)
	}
	c.fillFiltered(entries...)
	var filters []sdk.Filter
	for _, name := range names {
		own := tenant(name)
		filters = append(filters, own,
			and(own, or(label.is("red"), not(label.is("red")))),
			and(own, or(tenant("b"), meta("n").compare(sdk.FilterGreater, 3))),
			and(not(not(own)), label.is("red", "green")),
			and(own, randomFilter(random, 3)))
	}
	c.selects(filters...)
	for _, mode := range c.modes() { // deeper than a tenant has entries
		own := tenant("a")
		q := sdk.Query{Text: strings.Repeat("filler ", 3), Vector: entries[1].Vector, Filter: &own}
		c.compare(ranking(mode, rrf, len(entries), len(entries)), q)
	}
}

// movingTenants moves every entry to the other one of two tenants with each commit, while both search: what
// one of them finds is always its own. An entry that moves while its text is fetched may be left out.
func (c *collection) movingTenants() {
	const entries = 40
	owners := func(commit int) []sdk.Entry {
		all := make([]sdk.Entry, entries)
		for i := range all {
			all[i] = sdk.Entry{ID: fmt.Sprint("m", i), Meta: sdk.Meta{"tenant": []string{"a", "b"}[(i+commit)%2]}}
		}
		return all
	}
	c.fillFiltered(owners(0)...)
	texts := c.now
	var rounds atomic.Int64
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	readers, ctx := errgroup.WithContext(ctx)
	q := c.everything()
	for _, name := range []string{"a", "b"} {
		own := tenant(name)
		q := q
		q.Filter = &own
		readers.Go(func() error {
			for ctx.Err() == nil {
				for _, mode := range c.modes() {
					lists, err := c.process.Stage.Retrieve(c.Context(), c.name, ranking(mode, weighted, entries, entries), without(mode, []sdk.Query{q}))
					if err != nil {
						return err
					}
					if len(lists[0]) > entries/2 {
						return fmt.Errorf("%s search: tenant %s finds %d entries and has %d", mode, name, len(lists[0]), entries/2)
					}
					for _, found := range lists[0] {
						if found.Meta["tenant"] != name {
							return fmt.Errorf("%s search: tenant %s finds %s of tenant %v", mode, name, found.ID, found.Meta["tenant"])
						}
					}
				}
				rounds.Add(1)
			}
			return nil
		})
	}
	for commit := 1; ctx.Err() == nil && (commit <= 8 || commit < 200 && rounds.Load() < 20); commit++ {
		batch := owners(commit)
		for i := range batch {
			batch[i].Text, batch[i].Vector = texts[batch[i].ID].Text, texts[batch[i].ID].Vector
		}
		c.put(batch...)
		c.commit("")
	}
	stop()
	if err := readers.Wait(); err != nil {
		c.Errorf("while entries moved: %v", err)
	}
	c.check()
	c.selects(tenant("a"), tenant("b"))
}
