package stores

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

var listCases = []storeCase{
	{"list", (*collection).lists},
	{"drop", (*collection).drops},
}

// listed returns what List reports of this collection, and whether it does. A
// server may have others.
func (c *collection) listed() (sdk.Collection, bool) {
	c.Helper()
	all, err := c.process.Stage.List(c.Context())
	if err != nil {
		c.Fatalf("list: %v", err)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(all) {
		c.Errorf("list: %q is not sorted, or has names twice", names)
	}
	i := slices.Index(names, c.name)
	if i < 0 {
		return sdk.Collection{}, false
	}
	return all[i], true
}

func (c *collection) checkListed() {
	c.Helper()
	have, ok := c.listed()
	if !ok || have.Entries != len(c.now) || have.Dimension != c.schema.Dimension || string(have.Note) != c.note {
		c.Errorf("list: %+v, there %v; want %d entries, %d dimensions, note %q", have, ok, len(c.now), c.schema.Dimension, c.note)
	}
}

func (c *collection) lists() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)}, sdk.Entry{ID: "b", Text: "two", Vector: axis(1)})
	c.commit("first")
	c.checkListed()
	o := c.other(c.name+"_Other", c.schema)
	o.put(sdk.Entry{ID: "c", Text: "three", Vector: axis(2)})
	o.commit("second")
	o.checkListed()
	c.put(sdk.Entry{ID: "d", Text: "pending", Vector: axis(3)})
	c.checkListed()
	c.commit("third") // listing has not dropped what was pending
	c.check()
	c.process.Close()
	c.start()
	c.checkListed() // without having opened it
}

func (c *collection) drops() {
	entries := []sdk.Entry{{ID: "a", Text: "one", Vector: axis(0)}}
	c.put(entries...)
	c.commit("kept")
	o := c.other(c.name+"_other", c.schema)
	o.put(entries...)
	o.commit("goes")
	o.put(sdk.Entry{ID: "b", Text: "pending", Vector: axis(1)})
	drop := func(name string) {
		c.Helper()
		if err := c.process.Stage.Drop(c.Context(), name); err != nil {
			c.Fatalf("drop: %v", err)
		}
	}
	drop(o.name)
	if _, ok := o.listed(); ok {
		c.Errorf("list: a collection is there after it was dropped")
	}
	_, err := c.process.Stage.Get(c.Context(), o.name, []string{"a"})
	c.refused("get from a dropped collection", err)
	drop(o.name)
	c.check()

	o.now, o.note = model{}, ""
	o.open() // as a new one
	o.put(sdk.Entry{ID: "z", Text: "new", Vector: axis(2)})
	o.commit("again")
	o.check()
	c.process.Close()
	c.start()
	o.process = c.process
	drop(o.name) // without having opened it
	if _, ok := o.listed(); ok {
		c.Errorf("list: a collection is there after it was dropped unopened")
	}
	c.open()
	c.check()
}

var scanCases = []storeCase{
	{"pages", (*collection).pages},
	{"parts", (*collection).parts},
	{"labels", (*collection).labels},
	{"while others change", (*collection).scanWhileWritten},
	{"pages fit a message", (*collection).pagesFit},
	{"get in the order of the ids", (*collection).getOrder},
}

func (c *collection) pages() {
	c.fill()
	var order []string
	for _, e := range slices.Concat(c.scan(sdk.Scan{})...) {
		order = append(order, e.ID)
	}
	if len(order) != len(c.now) {
		c.Fatalf("%d entries, want %d", len(order), len(c.now))
	}
	for _, limit := range []int{1, 7, 100, 299, 300, 301, 1000} {
		var got []string
		for i, page := range c.scan(sdk.Scan{Limit: limit}) {
			if len(page) > limit {
				c.Errorf("page %d has %d entries, the limit was %d", i, len(page), limit)
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
		}
		if !slices.Equal(got, order) {
			c.Errorf("in pages of %d the entries or their order differ from one scan: %d of %d entries", limit, len(got), len(order))
		}
	}
	if pages := c.fresh(c.schema).scan(sdk.Scan{Limit: 10}); len(pages) != 1 || len(pages[0]) != 0 {
		c.Errorf("an empty collection has pages %v", pages)
	}
}

func (c *collection) parts() {
	c.fill()
	for _, scan := range []sdk.Scan{{}, {Texts: true}, {Vectors: true}, {Texts: true, Vectors: true}} {
		for _, e := range slices.Concat(c.scan(scan)...) {
			if err := sameEntry(e, c.now[e.ID], scan.Texts, scan.Vectors); err != nil {
				c.Fatalf("%+v: %v", scan, err)
			}
		}
	}
}

func (c *collection) labels() {
	random := c.fill()
	e := randomEntry(random, 300)
	e.Label = ""
	c.put(e)
	c.commit("")
	for _, labels := range [][]string{{"label 1"}, {"label 1", "label 5"}, {"label 1", "unknown"}, {"unknown"}, {""}, {"LABEL 1"}, {"label 1", "label 1"}} {
		for _, limit := range []int{0, 3} {
			want := 0
			for _, e := range c.now {
				if slices.Contains(labels, e.Label) {
					want++
				}
			}
			seen := map[string]bool{}
			for _, e := range slices.Concat(c.scan(sdk.Scan{Labels: labels, Limit: limit})...) {
				if !slices.Contains(labels, e.Label) || seen[e.ID] {
					c.Errorf("labels %q: %s with %q, or twice", labels, e.ID, e.Label)
				}
				seen[e.ID] = true
			}
			if len(seen) != want {
				c.Errorf("labels %q, limit %d: %d entries, want %d", labels, limit, len(seen), want)
			}
		}
	}
}

// scanWhileWritten checks that an entry which is neither put nor deleted is in
// one page, whatever happens to others between two pages.
func (c *collection) scanWhileWritten() {
	random := c.fill()
	seen := map[string]int{}
	after := ""
	for step := 0; ; step++ {
		page, err := c.process.Stage.Scan(c.Context(), c.name, sdk.Scan{After: after, Limit: 20})
		if err != nil {
			c.Fatalf("%v", err)
		}
		for _, e := range page.Entries {
			seen[e.ID]++
		}
		if after = page.Next; after == "" {
			break
		}
		if step > 5 {
			continue
		}
		var gone []string
		for i := range 10 {
			gone = append(gone, fmt.Sprint("e", 5*(step*10+i)))
		}
		c.put(randomEntry(random, 1000+step), randomEntry(random, 5*random.IntN(60)))
		c.delete(gone...)
		c.commit(fmt.Sprint("step ", step))
	}
	for i := range 300 {
		if id := fmt.Sprint("e", i); i%5 != 0 && seen[id] != 1 {
			c.Errorf("%s was not changed meanwhile, and is in %d pages", id, seen[id])
		}
	}
}

// pagesFit scans more than a message can hold, with a limit that allows it.
func (c *collection) pagesFit() {
	if c.options.Short {
		c.Skipf("70 MB are too much for a short test")
	}
	c = c.fresh(sdk.Schema{Dimension: dimension})
	text := strings.Repeat("0123456789", longText/10)
	for i := range 12 {
		var batch []sdk.Entry
		for j := range 100 {
			batch = append(batch, sdk.Entry{ID: fmt.Sprint(100*i + j), Text: text, Vector: axis(j % dimension)})
		}
		c.put(batch...)
	}
	c.commit("")
	pages := c.scan(sdk.Scan{Texts: true, Limit: 4096})
	if n := len(slices.Concat(pages...)); n != len(c.now) {
		c.Errorf("%d entries in %d pages, want %d", n, len(pages), len(c.now))
	}
}

func (c *collection) getOrder() {
	c.fill()
	ids := []string{"e7", "unknown", "e3", "e7", "", "e299", "E7", "e3", strings.Repeat("x", 512)}
	got := c.get(ids...)
	for i, id := range ids {
		if err := sameEntry(got[i], c.now[id], true, false); err != nil {
			c.Errorf("place %d, %.20q: %v", i, id, err)
		}
	}
	if got := c.get(); len(got) != 0 {
		c.Errorf("%d entries for no ids", len(got))
	}
	all := c.ids()
	slices.Reverse(all)
	for i, e := range c.get(all...) {
		if e.ID != all[i] {
			c.Fatalf("place %d of all ids: %q, want %q", i, e.ID, all[i])
		}
	}
}

var writeCases = []storeCase{
	{"put replaces", (*collection).replaces},
	{"last of the same id wins", (*collection).lastWins},
	{"delete", (*collection).deletes},
	{"delete and put in one commit", (*collection).deleteAndPut},
	{"commit without changes", (*collection).emptyCommit},
	{"large note", (*collection).largeNote},
	{"visible only after commit", (*collection).visible},
	{"open drops the uncommitted", (*collection).openDrops},
	{"random changes", (*collection).randomChanges},
}

var restartCases = []storeCase{
	{"committed stays", (*collection).committedStays},
	{"uncommitted is gone", (*collection).uncommittedGone},
}

func (c *collection) ids() []string { return slices.Sorted(maps.Keys(c.now)) }

// probe compares one search of each mode for words and a direction.
func (c *collection) probe(text string, vector []float32) {
	c.Helper()
	for _, mode := range c.modes() {
		c.compare(ranking(mode, weighted, 100, 100), sdk.Query{Text: text, Vector: vector})
	}
}

func (c *collection) replaces() {
	c.put(
		sdk.Entry{ID: "a", Text: "old words", Label: "old", Context: "before", Meta: sdk.Meta{"gone": "x", "n": 1.0}, Hash: []byte{1}, Vector: axis(0)},
		sdk.Entry{ID: "b", Text: "other words", Label: "other", Vector: axis(1)},
	)
	c.commit("")
	c.put(sdk.Entry{ID: "a", Text: "quite new", Label: "new", Meta: sdk.Meta{"n": "now text"}, Hash: []byte{2, 0}, Vector: axis(2)})
	c.commitChecked("")
	c.probe("old before", axis(0))
	c.probe("new words", axis(2))
}

func (c *collection) lastWins() {
	c.put(
		sdk.Entry{ID: "a", Text: "first", Label: "1", Vector: axis(0)},
		sdk.Entry{ID: "b", Text: "between", Vector: axis(1)},
		sdk.Entry{ID: "a", Text: "second", Label: "2", Vector: axis(2)},
	)
	c.put(sdk.Entry{ID: "b", Text: "later", Vector: axis(3)})
	c.commitChecked("")
	c.probe("first second between later", axis(2))
	c.open() // compares the number of entries
}

func (c *collection) deletes() {
	random := c.fill()
	c.delete()
	c.delete("e1", "e2", "e2", "unknown", "", strings.Repeat("x", 512))
	c.commitChecked("some")
	c.open()
	c.probe("word1 word2 word3", randomVector(random))
	if got := c.get("e1", "e3"); got[0].ID != "" || got[1].ID != "e3" {
		c.Errorf("get of a deleted and a living entry: %q and %q", got[0].ID, got[1].ID)
	}
	c.delete("e1")
	c.delete(c.ids()...)
	c.commitChecked("all")
	c.open()
	c.put(randomEntry(random, 1))
	c.commitChecked("one again")
	c.probe("word1 word2 word3", randomVector(random))
}

func (c *collection) deleteAndPut() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)}, sdk.Entry{ID: "b", Text: "two", Vector: axis(1)})
	c.commit("")
	c.delete("a", "b", "c")
	c.put(sdk.Entry{ID: "a", Text: "three", Vector: axis(2)}, sdk.Entry{ID: "c", Text: "four", Vector: axis(3)})
	c.put(sdk.Entry{ID: "d", Text: "five", Vector: axis(4)}, sdk.Entry{ID: "b", Text: "six", Vector: axis(5)})
	c.delete("d", "b")
	c.commitChecked("")
	c.open()
	c.probe("one two three four five six", axis(2))
}

func (c *collection) emptyCommit() {
	c.commit("nothing yet")
	c.open()
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)})
	c.commit("an entry")
	for _, note := range []string{"an entry", "another note", "", "bytes \x00\xff that are no text"} {
		c.commit(note)
		c.open()
		c.check()
	}
}

// largeNote checks that the note has room for the state of a fitted embedder.
func (c *collection) largeNote() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)})
	c.commit(strings.Repeat("0123456789abcdef", 8<<10))
	c.open()
}

func (c *collection) visible() {
	random := c.fill()
	vector := randomVector(random)
	look := func(when string) {
		c.Helper()
		c.check()
		c.probe("word1 word2 word3 brandnew", vector)
		if c.Failed() {
			c.Fatalf("this was %s", when)
		}
	}
	c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: vector}, sdk.Entry{ID: "e1", Text: "brandnew", Vector: vector})
	look("after a put without a commit")
	c.delete("e2", "e3")
	look("after a delete without a commit")
	c.commit("")
	look("after the commit")
}

func (c *collection) openDrops() {
	random := c.fill()
	c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: axis(0)}, sdk.Entry{ID: "e1", Text: "brandnew", Vector: axis(0)})
	c.delete("e2")
	c.open()
	c.put(sdk.Entry{ID: "kept", Text: "kept", Vector: axis(1)})
	c.commitChecked("after opening again")
	c.probe("brandnew kept word1", randomVector(random))
}

// randomChanges does the same to the store and to a model, in any order.
func (c *collection) randomChanges() {
	random := rand.New(rand.NewPCG(8, 8))
	for step := range 40 {
		for range 1 + random.IntN(3) {
			var batch []sdk.Entry
			var gone []string
			for range random.IntN(12) {
				batch = append(batch, randomEntry(random, random.IntN(60)))
			}
			for range random.IntN(6) {
				gone = append(gone, fmt.Sprint("e", random.IntN(70)))
			}
			if random.IntN(2) == 0 {
				c.put(batch...)
				c.delete(gone...)
			} else {
				c.delete(gone...)
				c.put(batch...)
			}
		}
		if random.IntN(4) == 0 {
			c.open()
		} else {
			c.commit(fmt.Sprint("step ", step))
		}
		c.check()
		c.probe(randomText(random, 4), randomVector(random))
		if c.Failed() {
			c.Fatalf("this was in step %d", step)
		}
	}
}

// restart ends the process, does what the test wants in between, and opens the
// collection in another process.
func (c *collection) restart() {
	c.Helper()
	c.process.Close()
	c.options.Restart(c)
	c.start()
	c.open()
}

func (c *collection) committedStays() {
	random := c.fill()
	vector := randomVector(random)
	for range 3 {
		c.restart()
		c.check()
		c.probe("word1 word2 word3 brandnew", vector)
		c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: vector}, randomEntry(random, random.IntN(300)))
		c.delete(fmt.Sprint("e", random.IntN(300)))
		c.commitChecked(fmt.Sprint("note ", random.IntN(100)))
		c.probe("word1 word2 word3 brandnew", vector)
	}
}

func (c *collection) uncommittedGone() {
	c.put(sdk.Entry{ID: "never", Text: "never", Vector: axis(0)})
	c.restart()
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)}, sdk.Entry{ID: "b", Text: "two", Vector: axis(1)})
	c.commit("")
	c.put(sdk.Entry{ID: "a", Text: "never", Vector: axis(2)}, sdk.Entry{ID: "c", Text: "never", Vector: axis(2)})
	c.delete("b")
	c.restart()
	c.check()
	c.commitChecked("after the restart")
	c.probe("one two never", axis(2))
}
