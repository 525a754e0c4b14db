package stores

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// What every store has to take, in bytes.
const (
	longID   = 512
	longText = 60_000
)

var contentCases = []storeCase{
	{"odd strings", func(c *collection) { c.strings(oddStrings) }},
	{"zero bytes", func(c *collection) { c.strings([]string{"\x00", "a\x00", "a\x00b", "a"}) }},
	{"all of Unicode", (*collection).unicode},
	{"all of Unicode in long texts", (*collection).unicodeTexts},
	{"long ids and labels", (*collection).longIDs},
	{"empty and long texts", (*collection).texts},
	{"metadata", (*collection).metadata},
	{"empty key of metadata", (*collection).emptyKey},
	{"many labels", (*collection).manyLabels},
}

// oddStrings are those that a store may take for something else.
var oddStrings = []string{
	" ", "  a ", "a", "A", "b", "ab", "abc", "a b", "B", "%", "a%", "a%b", "_", "a_b", "axb", "*", "?", "a*",
	`"`, `'`, "`", `\`, `\\`, `a"b`, `a'b`, `a\b`, `\n`, `\"`, `\u0061`, `\x61`, "\n", "a\nb", "a\tb", "a\r\nb", "\x01", "\x7f",
	"true", "1", "1.0", "null", "NULL", "nil", "a.b", "a[0]", "$a", "${a}", "{{a}}", "meta['a']", `a" or "" == "`, `' or 1 == 1 --`, "[]", "{}",
	"é", "e\u0301", "É", "ß", "ss", "日本", "日本語", "😀", "👩‍👩‍👧", "\u200b", "\u202e", "\ufeff", "\ufffd", "\uffff", "\U0010ffff",
}

// strings puts each string into every place that takes one, and looks for it.
func (c *collection) strings(all []string) {
	var batch []sdk.Entry
	for i, x := range all {
		batch = append(batch, sdk.Entry{
			ID: x, Label: x, Text: x, Context: x, Meta: sdk.Meta{x: x, "k": x}, Hash: []byte(x), Vector: axis(i % dimension),
		})
	}
	c.put(batch...)
	c.commitChecked("")
	for _, x := range all {
		for _, mode := range c.modes() {
			c.compare(ranking(mode, weighted, len(all), len(all)), sdk.Query{Text: x, Vector: axis(0)})
		}
		c.scan(sdk.Scan{Labels: []string{x}})
	}
	for _, x := range all[len(all)/2:] {
		c.delete(x)
	}
	c.commitChecked("")
	c.restart()
}

// characters returns all of Unicode but NUL, in strings of at most size bytes.
func characters(size int) []string {
	var all []string
	var b strings.Builder
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > size {
			all = append(all, b.String())
			b.Reset()
		}
		b.WriteRune(r)
	}
	return append(all, b.String())
}

func (c *collection) unicode() {
	var batch []sdk.Entry
	for i, x := range characters(longID) {
		if i > 300 && i%20 > 0 {
			continue // beyond the basic plane some are enough
		}
		batch = append(batch, sdk.Entry{ID: x, Label: x, Text: x, Meta: sdk.Meta{x: x}, Vector: axis(i % dimension)})
	}
	c.put(batch...)
	c.commitChecked("")
	c.restart()
}

func (c *collection) unicodeTexts() {
	all := characters(longText)
	if c.Options.Short {
		all = all[:20]
	}
	for i, x := range all {
		c.put(sdk.Entry{ID: fmt.Sprint(i), Text: x, Context: strings.ToValidUTF8(x[:200], ""), Vector: axis(i % dimension)})
	}
	c.commitChecked("")
}

func (c *collection) longIDs() {
	var batch []sdk.Entry
	for i, unit := range []string{"a", "\"", "\\", "é", "日本語!", "😀"} {
		x := strings.Repeat(unit, longID/len(unit))
		x = x[:len(x)-len(unit)] + strings.Repeat(".", longID-len(x)) + unit // they differ at their ends
		batch = append(batch,
			sdk.Entry{ID: x, Label: x, Text: "long", Vector: axis(i)},
			sdk.Entry{ID: x[:len(x)-len(unit)], Label: x[:len(x)-len(unit)], Text: "long", Vector: axis(i)})
	}
	c.put(batch...)
	c.commitChecked("")
	c.probe("long", axis(0))
	c.delete(batch[0].ID, batch[3].ID)
	c.commitChecked("")
}

func (c *collection) texts() {
	long := strings.Repeat("some words ", (longText-20)/11)
	c.put(
		sdk.Entry{ID: "empty", Vector: axis(0)},
		sdk.Entry{ID: "blank", Text: " \n ", Vector: axis(1)},
		sdk.Entry{ID: "context", Context: "only", Vector: axis(2)},
		sdk.Entry{ID: "short", Text: "short words", Vector: axis(3)},
		sdk.Entry{ID: "long", Text: long + strings.Repeat(".", longText-len(long)-6) + "needle", Context: long, Vector: axis(4)},
		sdk.Entry{ID: "one word", Text: strings.Repeat("x", longText), Vector: axis(5)},
	)
	c.commitChecked("")
	for _, text := range []string{"words", "needle", "only", "", strings.Repeat("x", longText)} {
		c.probe(text, axis(4))
	}
	c.delete("long", "empty")
	c.commitChecked("")
	c.probe("short words", axis(0))
}

func (c *collection) metadata() {
	many := sdk.Meta{}
	for i := range 500 {
		many[fmt.Sprint("key ", i)] = []any{fmt.Sprint("value ", i), float64(i), i%2 == 0}[i%3]
	}
	named := sdk.Meta{}
	for _, key := range []string{
		"id", "pk", "ID", "text", "label", "context", "meta", "vector", "dense", "sparse", "hash", "$meta", "_", "a.b", "a[0]", "0", "and", "not", "true",
	} {
		named[key] = "value of " + key
	}
	for i, m := range []sdk.Meta{
		nil, {}, many, named, {"s": "", "zero": 0.0, "no": false},
		{"s": "1", "n": 1.0, "t": true}, {"n": -1e300, "small": 5e-324, "third": 1.0 / 3, "whole": float64(1<<53 - 1)},
		{"long": strings.Repeat("é\"", 10_000)},
	} {
		c.put(sdk.Entry{ID: fmt.Sprint(i), Text: "some", Meta: m, Vector: axis(i % dimension)})
	}
	c.commitChecked("")
	c.probe("some", axis(1))
	c.restart()
}

func (c *collection) emptyKey() {
	c.put(sdk.Entry{ID: "a", Meta: sdk.Meta{"": "no name", "n": 1.0}, Vector: axis(0)}, sdk.Entry{ID: "b", Meta: sdk.Meta{"": ""}, Vector: axis(1)})
	c.commitChecked("")
}

func (c *collection) manyLabels() {
	if c.Options.Short {
		c.Skipf("10,000 entries are too many for a short test")
	}
	for i := range 10 {
		batch := make([]sdk.Entry, 1000)
		for j := range batch {
			batch[j] = sdk.Entry{
				ID: fmt.Sprint(1000*i + j), Label: fmt.Sprint("label ", 1000*i+j), Text: "some words", Vector: []float32{1, float32(i), float32(j), 1, 1, 1, 1, 1},
			}
		}
		c.put(batch...)
	}
	c.commitChecked("")
	for _, label := range []string{"label 0", "label 9999"} {
		c.scan(sdk.Scan{Labels: []string{label}})
	}
}

var refuseCases = []storeCase{
	{"other schema", (*collection).otherSchema},
	{"bad entries", (*collection).badEntries},
	{"too long", (*collection).tooLong},
	{"bad queries", (*collection).badQueries},
	{"unopened collection", (*collection).unopened},
}

func (c *collection) otherSchema() {
	random := c.fill()
	refuse := func() {
		c.openAs("opening with another dimension", c.name, sdk.Schema{Dimension: dimension + 1, Analyzer: c.schema.Analyzer})
		if c.Options.DenseOnly != "" {
			return
		}
		for _, analyzer := range []string{"code", "ngram", "", "unknown"} {
			c.openAs("opening what was made with analyzer standard as "+analyzer, c.name, sdk.Schema{Dimension: dimension, Analyzer: analyzer})
		}
	}
	refuse()
	c.open()
	c.process.Close()
	c.start()
	refuse() // now it is known from what is kept only
	c.open()
	c.probe("word1 word2", randomVector(random))
	c.put(randomEntry(random, 1))
	c.commitChecked("")
	if c.Options.DenseOnly == "" {
		c.openAs("an unknown analyzer", c.name+"x", sdk.Schema{Dimension: dimension, Analyzer: "unknown"})
	}
	c.openAs("a collection without a name", "", c.schema)
}

func (c *collection) badEntries() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)})
	c.commit("")
	good := sdk.Entry{ID: "good", Text: "never", Vector: axis(1)}
	with := func(x float32) sdk.Entry {
		e := sdk.Entry{ID: "b", Text: "never", Vector: axis(2)}
		e.Vector[dimension-1] = x
		return e
	}
	for _, row := range []struct {
		name  string
		batch []sdk.Entry
	}{
		{"NaN", []sdk.Entry{good, with(float32(math.NaN()))}},
		{"infinity", []sdk.Entry{good, with(float32(math.Inf(1)))}},
		{"minus infinity", []sdk.Entry{with(float32(math.Inf(-1))), good}},
		{"no id", []sdk.Entry{good, {Text: "never", Vector: axis(2)}}},
		{"vector too short", []sdk.Entry{{ID: "b", Vector: make([]float32, dimension-1)}}},
		{"vector too long", []sdk.Entry{{ID: "b", Vector: make([]float32, dimension+1)}}},
		{"no vector", []sdk.Entry{{ID: "b", Text: "never"}}},
	} {
		c.put(sdk.Entry{ID: "a", Text: "still " + row.name, Vector: axis(0)})
		c.change("put, "+row.name, func(s store) error { return s.Put(c.Context(), c.name, row.batch) })
		c.commitChecked(row.name)
		c.probe("never still", axis(1))
	}
	c.open()
}

// tooLong checks that an entry with a string longer than a store need take is
// taken, or fails alone.
func (c *collection) tooLong() {
	long := strings.Repeat("long ", 15_000)
	for i, entry := range []sdk.Entry{{ID: "b", Text: long}, {ID: long}, {ID: "b", Label: long}, {ID: "b", Context: long}, {ID: "b", Meta: sdk.Meta{"m": long}}} {
		entry.Vector = axis(1)
		batch := []sdk.Entry{{ID: "a", Text: fmt.Sprint("one ", i), Vector: axis(0)}, entry, {ID: "c", Text: fmt.Sprint("three ", i), Vector: axis(2)}}
		err := c.process.Stage.Put(c.Context(), c.name, batch)
		var failed sdk.RowErrors
		if errors.As(err, &failed) && len(failed) == 1 && failed[1] != nil {
			c.refused("an entry that is too long", failed[1])
			batch = slices.Delete(batch, 1, 2)
		} else if err != nil {
			c.Fatalf("put with entry 1 of 3 too long: %v, want sdk.RowErrors for it", err)
		}
		if err := c.model.Put(c.Context(), c.name, batch); err != nil {
			c.Fatalf("put into the model: %v", err)
		}
		c.commitChecked("")
		c.probe("one three", axis(1))
		c.delete(entry.ID)
	}
}

// badQueries checks that a query which cannot be searched fails alone.
func (c *collection) badQueries() {
	random := c.fill()
	nan := randomVector(random)
	nan[3] = float32(math.NaN())
	inf := randomVector(random)
	inf[3] = float32(math.Inf(1))
	good := c.queries(random, 1, 10)[0]
	for _, mode := range c.modes() {
		if mode == sdk.ModeLexical {
			continue
		}
		r := ranking(mode, weighted, 10, 10)
		c.compare(r, sdk.Query{Text: "word1", Vector: nan}, good, sdk.Query{Text: "word1", Vector: inf})
		for name, vector := range map[string][]float32{"short": make([]float32, dimension-1), "long": make([]float32, dimension+1), "none": nil} {
			_, err := c.retrieve(r, sdk.Query{Text: "word1", Vector: vector})
			c.refused(string(mode)+" search, vector too "+name, err)
		}
		c.compare(r, good)
	}
}

// unopened makes each call before the collection is open, which is refused.
func (c *collection) unopened() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)})
	c.commit("note")
	c.process.Close()
	c.start()
	never := *c
	never.name += "_never_made"
	for _, c := range []*collection{c, &never} {
		c.compare(ranking(sdk.ModeDense, weighted, 1, 1), sdk.Query{Text: "one", Vector: axis(0)})
		c.get("a")
		c.put(sdk.Entry{ID: "b", Vector: axis(0)})
		c.delete("a")
		c.commit("")
		_, _ = both(c, "scan", func(s store) (sdk.Page, error) { return s.Scan(c.Context(), c.name, sdk.Scan{}) })
	}
	c.open()
}
