package stores

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

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
