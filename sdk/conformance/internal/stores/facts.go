package stores

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// What every store has to accept, in bytes.
const (
	longID   = 512
	longText = 60_000
)

// entry returns an entry for facts that need few; the vectors of different letters are at right
// angles.
func entry(letter, text string) sdk.Entry {
	return sdk.Entry{ID: letter, Text: text, Vector: axis(int(letter[0] - 'a'))}
}

// turned returns an entry with another vector.
func turned(e sdk.Entry, to int) sdk.Entry {
	e.Vector = axis(to)
	return e
}

var (
	look    = (*collection).look
	reopen  = (*collection).open
	restart = (*collection).restart
	list    = (*collection).list
	drop    = (*collection).drop
	begin   = (*collection).start // a process that has opened no collection
)

func writeFacts() []fact {
	return []fact{
		{name: "put replaces", steps: []step{
			put(sdk.Entry{ID: "a", Text: "old words", Label: "old", Context: "before", Meta: sdk.Meta{"gone": "x", "n": 1.0}, Hash: []byte{1}, Vector: axis(0)}, entry("b", "other words")),
			commit(""),
			put(sdk.Entry{ID: "a", Text: "quite new", Label: "new", Meta: sdk.Meta{"n": "now text"}, Hash: []byte{2, 0}, Vector: axis(2)}), commit(""),
		}},
		{name: "last of the same id wins", steps: []step{
			put(entry("a", "first"), entry("b", "between"), turned(entry("a", "second"), 2)), put(turned(entry("b", "later"), 3)), commit(""), reopen,
		}},
		{name: "delete", steps: []step{
			corpus, del(), del("e1", "e2", "e2", "unknown", "", strings.Repeat("x", longID)), commit("some"), reopen, get("e1", "e3"),
			del("e1"), deleteAll, commit("all"), reopen, put(entry("a", "one again")), commit(""),
		}},
		{name: "delete and put in one commit", steps: []step{
			put(entry("a", "one"), entry("b", "two")), commit(""), del("a", "b", "c"), put(turned(entry("a", "three"), 2), entry("c", "four")), put(entry("d", "five"), entry("b", "six")), del("d", "b"), commit(""), reopen,
		}},
		{name: "commit without changes", steps: []step{
			commit("nothing yet"), reopen, put(entry("a", "one")), commit("an entry"), commit("an entry"), reopen, commit("another note"), reopen, commit(""), reopen,
			commit("bytes \x00\xff that are no text"), reopen,
			commit(strings.Repeat("0123456789abcdef", 8<<10)), reopen, // the state of a fitted embedder
		}},
		{name: "visible only after commit", steps: []step{
			corpus, put(entry("a", "brandnew"), sdk.Entry{ID: "e1", Text: "brandnew", Vector: axis(1)}), look, del("e2", "e3"), look, commit(""),
		}},
		{name: "open drops the uncommitted", steps: []step{
			corpus, put(entry("a", "brandnew"), sdk.Entry{ID: "e1", Text: "brandnew", Vector: axis(0)}), del("e2"), reopen, put(entry("b", "kept")), commit("after opening again"),
		}},
		{name: "random changes", steps: randomChanges()},
	}
}

func deleteAll(c *collection) { c.delete(c.scan(sdk.Scan{})...) }

// randomChanges returns steps in random order.
func randomChanges() (steps []step) {
	random := rand.New(rand.NewPCG(8, 8))
	for i := range 40 {
		for range 2 + random.IntN(4) {
			if random.IntN(2) == 0 {
				steps = append(steps, put(many(random.IntN(12), func(int) sdk.Entry { return randomEntry(random, random.IntN(60)) })...))
				continue
			}
			gone := make([]string, random.IntN(6))
			for j := range gone {
				gone[j] = fmt.Sprint("e", random.IntN(70))
			}
			steps = append(steps, del(gone...))
		}
		if steps = append(steps, commit(fmt.Sprint("step ", i))); random.IntN(4) == 0 {
			steps[len(steps)-1] = reopen
		}
	}
	return steps
}

func restartFacts() []fact {
	return []fact{
		{name: "committed stays", steps: []step{
			corpus, restart, put(entry("a", "brandnew"), sdk.Entry{ID: "e7", Text: "replaced", Vector: axis(1)}), del("e8"), commit("note 1"), restart, del("e9", "a"), commit("note 2"), restart,
		}},
		{name: "uncommitted is gone", steps: []step{
			put(turned(entry("d", "never"), 0)), restart, put(entry("a", "one"), entry("b", "two")), commit(""), put(turned(entry("a", "never"), 2), entry("c", "never")), del("b"), restart, commit("after the restart"),
		}},
	}
}

// oddStrings are strings that a store may mistake for something else.
var oddStrings = []string{
	" ", "  a ", "a", "A", "b", "ab", "abc", "a b", "B", "%", "a%", "a%b", "_", "a_b", "axb", "*", "?", "a*",
	`"`, `'`, "`", `\`, `\\`, `a"b`, `a'b`, `a\b`, `\n`, `\"`, `\u0061`, `\x61`, "\n", "a\nb", "a\tb", "a\r\nb", "\x01", "\x7f",
	"true", "1", "1.0", "null", "NULL", "nil", "a.b", "a[0]", "$a", "${a}", "{{a}}", "meta['a']", `a" or "" == "`, `' or 1 == 1 --`, "[]", "{}",
	"é", "e\u0301", "É", "ß", "ss", "日本", "日本語", "😀", "👩‍👩‍👧", "\u200b", "\u202e", "\ufeff", "\ufffd", "\uffff", "\U0010ffff",
}

// zeroBytes are strings with the byte that ends a string in C.
var zeroBytes = []string{"\x00", "a\x00", "a\x00b", "a", "ab"}

// namesOfColumns are names that a store may use for its own columns.
var namesOfColumns = []string{
	"id", "pk", "ID", "text", "label", "context", "meta", "vector", "dense", "sparse", "hash", "$meta", "_", "a.b", "a[0]", "0", "and", "not", "in", "like", "exists", "true",
}

func contentFacts() []fact {
	long := strings.Repeat("some words ", (longText-20)/11)
	meta := func(metas ...sdk.Meta) step {
		return put(many(len(metas), func(i int) sdk.Entry {
			return sdk.Entry{ID: fmt.Sprint(i), Text: "some", Meta: metas[i], Vector: axis(i)}
		})...)
	}
	large := sdk.Meta{"long": strings.Repeat("é\"", 10_000)}
	for i := range 500 {
		large[fmt.Sprint("key ", i)] = []any{fmt.Sprint("value ", i), float64(i), i%2 == 0}[i%3]
	}
	named := sdk.Meta{}
	for _, key := range namesOfColumns {
		named[key] = "value of " + key
	}
	return []fact{
		{name: "odd strings", steps: everywhere(func() []string { return oddStrings })},
		{name: "zero bytes", steps: everywhere(func() []string { return zeroBytes })},
		{name: "all of Unicode", steps: everywhere(func() []string {
			var all []string
			for i, x := range characters() {
				if i <= 300 || i%20 == 0 { // beyond the basic plane, some characters are enough
					all = append(all, x)
				}
			}
			return all
		})},
		{name: "long ids and labels", steps: everywhere(func() (all []string) {
			for _, unit := range []string{"a", "\"", "\\", "é", "日本語!", "😀"} {
				x := strings.Repeat(unit, longID/len(unit))
				x = x[:len(x)-len(unit)] + strings.Repeat(".", longID-len(x))
				all = append(all, x, x+unit) // they differ at their ends
			}
			return all
		})},
		{name: "empty and long texts", steps: []step{
			put(entry("a", ""), entry("b", " \n "), entry("c", "short words"), sdk.Entry{ID: "context", Context: "only", Vector: axis(3)}), put(
				sdk.Entry{ID: "long", Text: long + strings.Repeat(".", longText-len(long)-6) + "needle", Context: long, Vector: axis(4)},
				sdk.Entry{ID: "one word", Text: strings.Repeat("x", longText), Vector: axis(5)}),
			commit(""), search(ranking(sdk.ModeDense, weighted, 9, 9), sdk.Query{Text: "needle", Vector: axis(4)}), del("long", "a"), commit(""),
		}},
		{name: "metadata", steps: []step{
			meta(nil, sdk.Meta{}, large, named, sdk.Meta{"s": "", "zero": 0.0, "no": false}, sdk.Meta{"s": "1", "n": 1.0, "t": true},
				sdk.Meta{"n": -1e300, "small": 5e-324, "third": 1.0 / 3, "whole": float64(1<<53 - 1)}), commit(""), restart,
		}},
		{name: "empty key of metadata", steps: []step{meta(sdk.Meta{"": "no name", "n": 1.0}, sdk.Meta{"": ""}), commit("")}},
	}
}

// everywhere returns steps that put each string into every place for a string, and look for it.
func everywhere(strings func() []string) []step {
	return []step{func(c *collection) {
		all := strings()
		c.do(put(many(len(all), func(i int) sdk.Entry {
			x := all[i]
			return sdk.Entry{ID: x, Label: x, Text: x, Context: x, Meta: sdk.Meta{x: x, "k": x}, Hash: []byte(x), Vector: axis(i)}
		})...), commit(""))
		var queries []sdk.Query
		for _, x := range all[:min(len(all), 2_000_000/len(all)/len(all))] {
			queries = append(queries, sdk.Query{Text: x, Vector: axis(0)})
			c.scan(sdk.Scan{Labels: []string{x}})
		}
		for _, mode := range c.modes() {
			c.compare(ranking(mode, weighted, len(all), len(all)), queries...)
		}
		c.do(del(all[len(all)/2:]...), commit(""), restart)
	}}
}

// characters returns all Unicode characters but NUL, in strings of the greatest length of an id.
func characters() (all []string) {
	var b strings.Builder
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > longID {
			all = append(all, b.String())
			b.Reset()
		}
		b.WriteRune(r)
	}
	return append(all, b.String())
}

func scanFacts() []fact {
	var limits, parts, labels []sdk.Scan
	for _, limit := range []int{1, 7, 100, 299, 300, 301, 1000} {
		limits = append(limits, sdk.Scan{Limit: limit})
	}
	for i := range 4 {
		parts = append(parts, sdk.Scan{Texts: i&1 > 0, Vectors: i&2 > 0})
	}
	for _, some := range [][]string{{"label 1"}, {"label 1", "label 5"}, {"label 1", "unknown"}, {"unknown"}, {""}, {"LABEL 1"}, {"label 1", "label 1"}} {
		labels = append(labels, sdk.Scan{Labels: some}, sdk.Scan{Labels: some, Limit: 3})
	}
	text := strings.Repeat("0123456789", longText/10)
	return []fact{
		{name: "pages", steps: []step{scan(limits...), corpus, scan(limits...)}},
		{name: "parts", steps: []step{corpus, scan(parts...)}},
		{name: "labels", steps: []step{corpus, put(entry("a", "without a label")), commit(""), scan(labels...)}},
		{name: "while others change", steps: []step{corpus, scanWhileWritten}},
		{name: "pages fit a message", schema: sdk.Schema{Dimension: dimension}, steps: []step{short("70 MB"), func(c *collection) {
			for i := range 12 {
				c.put(many(100, func(j int) sdk.Entry { return sdk.Entry{ID: fmt.Sprint(100*i + j), Text: text, Vector: axis(j)} })...)
			}
			c.commit("")
		}, scan(sdk.Scan{Texts: true, Limit: 4096})}},
		{name: "get in the order of the ids", steps: []step{
			corpus, get("e7", "unknown", "e3", "e7", "", "e299", "E7", "e3", strings.Repeat("x", longID)), get(),
			func(c *collection) {
				all := c.scan(sdk.Scan{})
				slices.Reverse(all)
				c.get(all...)
			},
		}},
	}
}

// scanWhileWritten checks that an entry of the corpus that is neither put nor deleted is in exactly
// one page, whatever happens to other entries between two pages.
func scanWhileWritten(c *collection) {
	seen, after := map[string]int{}, ""
	for step := 0; step == 0 || after != ""; step++ {
		page, err := c.process.Stage.Scan(c.Context(), c.name, sdk.Scan{After: after, Limit: 20})
		if err != nil {
			c.Fatalf("%v", err)
		}
		for _, e := range page.Entries {
			seen[e.ID]++
		}
		if after = page.Next; step > 5 {
			continue
		}
		for i := range 10 {
			c.delete(fmt.Sprint("e", 5*(step*10+i)))
		}
		c.put(sdk.Entry{ID: fmt.Sprint("e", 1000+step), Vector: axis(0)}, sdk.Entry{ID: fmt.Sprint("e", 5*(step*7%60)), Vector: axis(1)})
		c.commit(fmt.Sprint("step ", step))
	}
	for i := range 300 {
		if id := fmt.Sprint("e", i); i%5 != 0 && seen[id] != 1 {
			c.Errorf("%s was not changed meanwhile, and is in %d pages", id, seen[id])
		}
	}
}

func listFacts() []fact {
	return []fact{
		{name: "list", steps: []step{
			put(entry("a", "one"), entry("b", "two")), commit("first"), list, at("_Other", put(entry("c", "three")), commit("second")), list,
			put(entry("d", "pending")), list, commit("third"), // listing must not have dropped pending changes
			begin, list, reopen, // also collections that were not opened
		}},
		{name: "drop", steps: []step{
			put(entry("a", "one")), commit("kept"), at("_other", put(entry("a", "one")), commit("goes"), put(entry("b", "pending"))),
			at("_other", drop), list, at("_other", drop, get("a")), list, look, // drop refuses
			at("_other", reopen, put(entry("c", "new")), commit("again")), list,
			begin, at("_other", drop), list, reopen, // a collection that this process has not opened
		}},
	}
}

func refuseFacts() []fact {
	with := func(x float32) sdk.Entry {
		e := entry("b", "never")
		e.Vector[dimension-1] = x
		return e
	}
	good, nan, inf := entry("c", "never"), float32(math.NaN()), float32(math.Inf(1))
	short, long := make([]float32, dimension-1), make([]float32, dimension+1)
	bad := []step{put(entry("a", "one")), commit("")}
	for i, batch := range [][]sdk.Entry{
		{good, with(nan)}, {good, with(inf)}, {with(-inf), good}, {good, {Text: "never", Vector: axis(2)}}, // the last entry has no id
		{{ID: "b", Vector: short}}, {{ID: "b", Vector: long}}, {{ID: "b", Text: "never"}}, // the last entry has no vector
	} {
		bad = append(bad, put(entry("a", fmt.Sprint("still ", i))), put(batch...), commit(""))
	}
	return []fact{
		{name: "other schema", steps: []step{corpus, otherSchemas, reopen, begin, otherSchemas, reopen, put(entry("a", "word1")), commit("")}},
		{name: "bad entries", steps: append(bad, reopen)},
		{name: "too long", steps: []step{tooLong}},
		{name: "bad queries", steps: []step{corpus, func(c *collection) {
			good, without := c.probes[0], sdk.Query{Text: "word1"}
			query := func(x float32) sdk.Query { return sdk.Query{Text: "word1", Vector: with(x).Vector} }
			for _, mode := range c.modes() {
				if mode == sdk.ModeLexical {
					continue
				}
				r := ranking(mode, weighted, 400, 400)
				c.compare(r, query(nan), good, query(inf))
				for _, without.Vector = range [][]float32{short, long, nil} {
					_, err := c.retrieve(r, without)
					c.refused(fmt.Sprintf("%s search, vector of %d dimensions", mode, len(without.Vector)), err)
				}
				c.compare(r, good)
			}
		}}},
		{name: "unopened collection", steps: []step{put(entry("a", "one")), commit("note"), begin, unopened, func(c *collection) { unopened(c.copy(c.name + "_never_made")) }, reopen}},
	}
}

// otherSchemas opens the collection with schemas that differ from its own, and with two that no
// collection can have.
func otherSchemas(c *collection) {
	c.openAs("opening with another dimension", c.name, sdk.Schema{Dimension: dimension + 1, Analyzer: c.schema.Analyzer})
	c.openAs("a collection without a name", "", c.schema)
	if c.Options.DenseOnly != "" {
		return
	}
	for _, analyzer := range []string{"code", "ngram", "", "unknown"} {
		c.openAs("opening what was made with analyzer standard as "+analyzer, c.name, sdk.Schema{Dimension: dimension, Analyzer: analyzer})
	}
	c.openAs("an unknown analyzer", c.name+"x", sdk.Schema{Dimension: dimension, Analyzer: "unknown"})
}

// unopened makes each call for a collection that is not open; every call must be refused.
func unopened(c *collection) {
	c.compare(ranking(sdk.ModeDense, weighted, 1, 1), sdk.Query{Text: "one", Vector: axis(0)})
	c.get("a")
	c.put(entry("b", ""))
	c.delete("a")
	c.commit("")
	_, _ = both(c, "scan", func(s store) (sdk.Page, error) { return s.Scan(c.Context(), c.name, sdk.Scan{}) })
}

// tooLong checks an entry with a string that is longer than a store must accept: the entry is stored,
// or fails alone.
func tooLong(c *collection) {
	long := strings.Repeat("long ", 15_000)
	for i, odd := range []sdk.Entry{{ID: "b", Text: long}, {ID: long}, {ID: "b", Label: long}, {ID: "b", Context: long}, {ID: "b", Meta: sdk.Meta{"m": long}}} {
		odd.Vector = axis(1)
		batch := []sdk.Entry{entry("a", fmt.Sprint("one ", i)), odd, entry("d", fmt.Sprint("three ", i))}
		err := c.process.Stage.Put(c.Context(), c.name, batch)
		if failed := (sdk.RowErrors)(nil); errors.As(err, &failed) && len(failed) == 1 && failed[1] != nil {
			c.refused("an entry that is too long", failed[1])
			batch = slices.Delete(batch, 1, 2)
		} else if err != nil {
			c.Fatalf("put with entry 1 of 3 too long: %v, want sdk.RowErrors for it", err)
		}
		if err := c.model.Put(c.Context(), c.name, batch); err != nil {
			c.Fatalf("put into the model: %v", err)
		}
		c.do(commit(""), put(entry("a", "again")), commit(""), del(odd.ID))
	}
}
