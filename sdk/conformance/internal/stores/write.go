package stores

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

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
