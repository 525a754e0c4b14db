package stores

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

var listCases = []storeCase{
	{"list", (*collection).lists},
	{"drop", (*collection).drops},
}

// list compares what List reports of collections; a server may have others.
func (c *collection) list(names ...string) {
	got, want := both(c, "list", func(s store) ([]sdk.Collection, error) { return s.List(c.Context()) })
	order := func(a, b sdk.Collection) int { return strings.Compare(a.Name, b.Name) }
	same := func(a, b sdk.Collection) bool { return a.Name == b.Name }
	if !slices.IsSortedFunc(got, order) || len(slices.CompactFunc(slices.Clone(got), same)) != len(got) {
		c.Errorf("list: %+v is not sorted, or has names twice", got)
	}
	for _, name := range names {
		named := func(one sdk.Collection) bool { return one.Name == name }
		have, should := slices.IndexFunc(got, named), slices.IndexFunc(want, named)
		switch {
		case should < 0 && have >= 0:
			c.Errorf("list: a collection is there after it was dropped")
		case should >= 0 && have < 0:
			c.Errorf("list: a collection is not there")
		case should >= 0 && fmt.Sprint(got[have]) != fmt.Sprint(want[should]):
			c.Errorf("list: %+v, want %+v; the note is %q, want %q", got[have], want[should], got[have].Note, want[should].Note)
		}
	}
}

func (c *collection) lists() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)}, sdk.Entry{ID: "b", Text: "two", Vector: axis(1)})
	c.commit("first")
	c.list(c.name)
	o := c.other(c.name+"_Other", c.schema)
	o.put(sdk.Entry{ID: "c", Text: "three", Vector: axis(2)})
	o.commit("second")
	c.list(c.name, o.name)
	c.put(sdk.Entry{ID: "d", Text: "pending", Vector: axis(3)})
	c.list(c.name, o.name)
	c.commit("third") // listing has not dropped what was pending
	c.check()
	c.process.Close()
	c.start()
	c.list(c.name, o.name) // without having opened them
}

func (c *collection) drops() {
	entries := []sdk.Entry{{ID: "a", Text: "one", Vector: axis(0)}}
	c.put(entries...)
	c.commit("kept")
	o := c.other(c.name+"_other", c.schema)
	o.put(entries...)
	o.commit("goes")
	o.put(sdk.Entry{ID: "b", Text: "pending", Vector: axis(1)})
	for range 2 {
		o.drop()
		c.list(c.name, o.name)
		o.get("a") // is refused
	}
	c.check()

	o.open() // as a new one
	o.put(sdk.Entry{ID: "z", Text: "new", Vector: axis(2)})
	o.commitChecked("again")
	c.process.Close()
	c.start()
	o.process, o.model = c.process, c.model
	o.drop() // without having opened it
	c.list(c.name, o.name)
	c.open()
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
	order := c.scan(sdk.Scan{})
	for _, limit := range []int{1, 7, 100, 299, 300, 301, 1000} {
		if got := c.scan(sdk.Scan{Limit: limit}); !slices.Equal(got, order) {
			c.Errorf("in pages of %d the entries or their order differ from one scan: %d of %d entries", limit, len(got), len(order))
		}
	}
	c.fresh(c.schema).scan(sdk.Scan{Limit: 10}) // nothing
}

func (c *collection) parts() {
	c.fill()
	for _, scan := range []sdk.Scan{{}, {Texts: true}, {Vectors: true}, {Texts: true, Vectors: true}} {
		c.scan(scan)
	}
}

func (c *collection) labels() {
	e := randomEntry(c.fill(), 300)
	e.Label = ""
	c.put(e)
	c.commit("")
	for _, labels := range [][]string{{"label 1"}, {"label 1", "label 5"}, {"label 1", "unknown"}, {"unknown"}, {""}, {"LABEL 1"}, {"label 1", "label 1"}} {
		c.scan(sdk.Scan{Labels: labels})
		c.scan(sdk.Scan{Labels: labels, Limit: 3})
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
	if c.Options.Short {
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
	c.scan(sdk.Scan{Texts: true, Limit: 4096})
}

func (c *collection) getOrder() {
	c.fill()
	c.get("e7", "unknown", "e3", "e7", "", "e299", "E7", "e3", strings.Repeat("x", 512))
	c.get()
	all := c.ids()
	slices.Reverse(all)
	c.get(all...)
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

// probe compares one search of each mode for words and a direction.
func (c *collection) probe(text string, vector []float32) {
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
	c.get("e1", "e3")
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

func (c *collection) committedStays() {
	random := c.fill()
	vector := randomVector(random)
	for range 3 {
		c.restart()
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
	c.commitChecked("after the restart")
	c.probe("one two never", axis(2))
}
