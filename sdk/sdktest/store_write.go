package sdktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

var writeCases = []storeCase{
	{"put replaces", (*suite).replaces},
	{"last of the same id wins", (*suite).lastWins},
	{"delete", (*suite).deletes},
	{"delete and put in one commit", (*suite).deleteAndPut},
	{"commit without changes", (*suite).emptyCommit},
	{"large note", (*suite).largeNote},
	{"visible only after commit", (*suite).visible},
	{"open drops the uncommitted", (*suite).openDrops},
	{"random changes", (*suite).randomChanges},
}

var restartCases = []storeCase{
	{"committed stays", (*suite).committedStays},
	{"uncommitted is gone", (*suite).uncommittedGone},
}

func (c *collection) ids() []string { return slices.Sorted(maps.Keys(c.now)) }

// probe compares one search of each mode for words and a direction.
func (c *collection) probe(text string, vector []float32) {
	c.Helper()
	for _, mode := range c.modes() {
		c.compare(ranking(mode, weighted, 100, 100), sdk.Query{Text: text, Vector: vector})
	}
}

func (s *suite) replaces(t tester) {
	c := s.fresh(t)
	c.put(
		sdk.Entry{ID: "a", Text: "old words", Label: "old", Context: "before", Meta: sdk.Meta{"gone": "x", "n": 1.0}, Hash: []byte{1}, Vector: axis(0)},
		sdk.Entry{ID: "b", Text: "other words", Label: "other", Vector: axis(1)},
	)
	c.commit("")
	c.put(sdk.Entry{ID: "a", Text: "quite new", Label: "new", Meta: sdk.Meta{"n": "now text"}, Hash: []byte{2, 0}, Vector: axis(2)})
	c.commit("")
	c.check()
	c.probe("old before", axis(0))
	c.probe("new words", axis(2))
}

func (s *suite) lastWins(t tester) {
	c := s.fresh(t)
	c.put(
		sdk.Entry{ID: "a", Text: "first", Label: "1", Vector: axis(0)},
		sdk.Entry{ID: "b", Text: "between", Vector: axis(1)},
		sdk.Entry{ID: "a", Text: "second", Label: "2", Vector: axis(2)},
	)
	c.put(sdk.Entry{ID: "b", Text: "later", Vector: axis(3)})
	c.commit("")
	c.check()
	c.probe("first second between later", axis(2))
	c.open() // compares the number of entries
}

func (s *suite) deletes(t tester) {
	c, random := s.corpus(t)
	c.delete()
	c.delete("e1", "e2", "e2", "unknown", "", strings.Repeat("x", 512))
	c.commit("some")
	c.check()
	c.open()
	c.probe("word1 word2 word3", randomVector(random))
	if got := c.get("e1", "e3"); got[0].ID != "" || got[1].ID != "e3" {
		t.Errorf("get of a deleted and a living entry: %q and %q", got[0].ID, got[1].ID)
	}
	c.delete("e1")
	c.delete(c.ids()...)
	c.commit("all")
	c.check()
	c.open()
	c.put(randomEntry(random, 1))
	c.commit("one again")
	c.check()
	c.probe("word1 word2 word3", randomVector(random))
}

func (s *suite) deleteAndPut(t tester) {
	c := s.fresh(t)
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)}, sdk.Entry{ID: "b", Text: "two", Vector: axis(1)})
	c.commit("")
	c.delete("a", "b", "c")
	c.put(sdk.Entry{ID: "a", Text: "three", Vector: axis(2)}, sdk.Entry{ID: "c", Text: "four", Vector: axis(3)})
	c.put(sdk.Entry{ID: "d", Text: "five", Vector: axis(4)}, sdk.Entry{ID: "b", Text: "six", Vector: axis(5)})
	c.delete("d", "b")
	c.commit("")
	c.check()
	c.open()
	c.probe("one two three four five six", axis(2))
}

func (s *suite) emptyCommit(t tester) {
	c := s.fresh(t)
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
func (s *suite) largeNote(t tester) {
	c := s.fresh(t)
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)})
	c.commit(strings.Repeat("0123456789abcdef", 8<<10))
	c.open()
}

func (s *suite) visible(t tester) {
	c, random := s.corpus(t)
	vector := randomVector(random)
	look := func(when string) {
		t.Helper()
		c.check()
		c.probe("word1 word2 word3 brandnew", vector)
		if t.Failed() {
			t.Fatal("this was " + when)
		}
	}
	c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: vector}, sdk.Entry{ID: "e1", Text: "brandnew", Vector: vector})
	look("after a put without a commit")
	c.delete("e2", "e3")
	look("after a delete without a commit")
	c.commit("")
	look("after the commit")
}

func (s *suite) openDrops(t tester) {
	c, random := s.corpus(t)
	c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: axis(0)}, sdk.Entry{ID: "e1", Text: "brandnew", Vector: axis(0)})
	c.delete("e2")
	c.open()
	c.put(sdk.Entry{ID: "kept", Text: "kept", Vector: axis(1)})
	c.commit("after opening again")
	c.check()
	c.probe("brandnew kept word1", randomVector(random))
}

// randomChanges does the same to the store and to a model, in any order.
func (s *suite) randomChanges(t tester) {
	random := rand.New(rand.NewPCG(8, 8))
	c := s.fresh(t)
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
		if t.Failed() {
			t.Fatalf("this was in step %d", step)
		}
	}
}

// restart ends the process, does what the test wants in between, and opens the
// collection in another process.
func (c *collection) restart() {
	c.Helper()
	c.process.close()
	c.options.restart(c)
	c.start()
	c.open()
}

func (s *suite) committedStays(t tester) {
	c, random := s.corpus(t)
	vector := randomVector(random)
	for range 3 {
		c.restart()
		c.check()
		c.probe("word1 word2 word3 brandnew", vector)
		c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: vector}, randomEntry(random, random.IntN(300)))
		c.delete(fmt.Sprint("e", random.IntN(300)))
		c.commit(fmt.Sprint("note ", random.IntN(100)))
		c.check()
		c.probe("word1 word2 word3 brandnew", vector)
	}
}

func (s *suite) uncommittedGone(t tester) {
	c := s.fresh(t)
	c.put(sdk.Entry{ID: "never", Text: "never", Vector: axis(0)})
	c.restart()
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)}, sdk.Entry{ID: "b", Text: "two", Vector: axis(1)})
	c.commit("")
	c.put(sdk.Entry{ID: "a", Text: "never", Vector: axis(2)}, sdk.Entry{ID: "c", Text: "never", Vector: axis(2)})
	c.delete("b")
	c.restart()
	c.check()
	c.commit("after the restart")
	c.check()
	c.probe("one two never", axis(2))
}
