package stores

import (
	"fmt"
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
		if got := c.scan(sdk.Scan{Labels: []string{x}}); len(got) != 1 || len(got[0]) != 1 || got[0][0].ID != x {
			c.Errorf("a scan of the label %q gives %v", x, got)
		}
	}
	for _, x := range all[len(all)/2:] {
		c.delete(x)
	}
	c.commitChecked("")
	c.restart()
	c.check()
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
	c.check()
}

func (c *collection) unicodeTexts() {
	for i, x := range characters(longText) {
		c.put(sdk.Entry{ID: fmt.Sprint(i), Text: x, Context: strings.ToValidUTF8(x[:200], ""), Vector: axis(i % dimension)})
		if len(c.pending) == 20 && c.options.Short {
			break
		}
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
	c.check()
}

func (c *collection) emptyKey() {
	c.put(sdk.Entry{ID: "a", Meta: sdk.Meta{"": "no name", "n": 1.0}, Vector: axis(0)}, sdk.Entry{ID: "b", Meta: sdk.Meta{"": ""}, Vector: axis(1)})
	c.commitChecked("")
}

func (c *collection) manyLabels() {
	if c.options.Short {
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
		if got := c.scan(sdk.Scan{Labels: []string{label}}); len(got) != 1 || len(got[0]) != 1 || got[0][0].Label != label {
			c.Errorf("a scan of %s gives %v", label, got)
		}
	}
}
