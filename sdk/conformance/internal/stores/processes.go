package stores

import (
	"maps"

	"github.com/racflow/racflow/sdk"
)

var processCases = []storeCase{
	{"a reader beside a writer", (*collection).readerBeside},
	{"one after the other", func(c *collection) {
		c.twoWriters(func(a, b *collection) []error { return []error{a.write(writers[0]), b.write(writers[1])} })
	}},
	{"both at once", func(c *collection) {
		c.twoWriters(func(a, b *collection) []error {
			failed := []error{a.tryPut(writers[0]), b.tryPut(writers[1])}
			for i, w := range []*collection{a, b} {
				if failed[i] == nil {
					failed[i] = w.tryCommit(writers[i])
				}
			}
			return failed
		})
	}},
	{"a writer that ends without a commit", (*collection).writerEnds},
}

// beside opens the collection in another process.
func (c *collection) beside() *collection {
	c.Helper()
	o := *c
	o.now = maps.Clone(c.now)
	o.start()
	o.open()
	return &o
}

// readerBeside checks that another process reads a committed state, and the last one once it has
// opened the collection again.
func (c *collection) readerBeside() {
	random := c.fill()
	reader := c.beside()
	vector := randomVector(random)
	c.put(sdk.Entry{ID: "new", Text: "brandnew", Vector: vector}, sdk.Entry{ID: "e1", Text: "brandnew", Vector: vector})
	c.delete("e2", "e3")
	reader.check()
	reader.probe("word1 word2 brandnew", vector)
	c.commit("by another process")
	reader.now, reader.note, reader.statistics = c.now, c.note, nil
	reader.open()
	reader.check()
	reader.probe("word1 word2 brandnew", vector)
}

// writers are the names of two of them, and the ids of what they add.
var writers = []string{"a", "b"}

func (c *collection) write(name string) error {
	if err := c.tryPut(name); err != nil {
		return err
	}
	return c.tryCommit(name)
}

func (c *collection) tryPut(name string) error {
	return c.process.Stage.Put(c.Context(), c.name, []sdk.Entry{writtenBy(name)})
}

func (c *collection) tryCommit(name string) error {
	return c.process.Stage.Commit(c.Context(), c.name, []byte("by "+name))
}

func writtenBy(name string) sdk.Entry {
	return sdk.Entry{ID: name, Text: "written by " + name, Vector: axis(1)}
}

// twoWriters opens the collection in two processes, each of which adds an entry of its own, and compares
// what there is with what they were told: at least one of them succeeds, and nothing of it is lost;
// whoever is refused may try again.
func (c *collection) twoWriters(work func(a, b *collection) []error) {
	c.put(sdk.Entry{ID: "first", Text: "first of all", Vector: axis(0)})
	c.commit("first")
	b := c.beside()
	failed := work(c, b)
	if failed[0] != nil && failed[1] != nil {
		c.Fatalf("both writers are refused: %v; %v", failed[0], failed[1])
	}
	want := maps.Clone(c.now)
	for i, name := range writers {
		if failed[i] == nil {
			want[name], c.note = writtenBy(name), "by "+name
		} else if sdk.CodeOf(failed[i]) != sdk.CodeTransient {
			c.Errorf("writer %s is refused with %v, want an error made by sdk.Transient", name, failed[i])
		}
	}
	for _, w := range []*collection{c, b} {
		w.now, w.note, w.statistics = want, c.note, nil
		w.open()
		w.check()
	}
	b.put(sdk.Entry{ID: "later", Text: "written later", Vector: axis(2)})
	b.commitChecked("later")
	c.now, c.note, c.statistics = b.now, b.note, nil
	c.open()
	c.check()
	c.probe("first written later", axis(1))
}

// writerEnds checks that nothing stands in the way of the next writer, and nothing is seen of the one before.
func (c *collection) writerEnds() {
	c.put(sdk.Entry{ID: "first", Text: "first of all", Vector: axis(0)})
	c.commit("first")
	b := c.beside()
	b.put(sdk.Entry{ID: "first", Text: "never", Vector: axis(1)}, sdk.Entry{ID: "b", Text: "never", Vector: axis(1)})
	b.process.Close()
	c.open()
	c.check()
	c.put(sdk.Entry{ID: "a", Text: "the next writer", Vector: axis(2)})
	c.commitChecked("next")
	c.probe("first never writer", axis(1))
}
