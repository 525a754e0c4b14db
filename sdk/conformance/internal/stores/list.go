package stores

import (
	"slices"

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
