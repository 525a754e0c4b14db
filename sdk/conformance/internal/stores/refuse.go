package stores

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

var refuseCases = []storeCase{
	{"other schema", (*collection).otherSchema},
	{"bad entries", (*collection).badEntries},
	{"too long", (*collection).tooLong},
	{"bad queries", (*collection).badQueries},
	{"unopened collection", (*collection).unopened},
}

// refused checks that an error says that the input is invalid.
func (c *collection) refused(what string, err error) {
	c.Helper()
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		for _, err = range rows {
			break
		}
	}
	if err == nil || sdk.CodeOf(err) != sdk.CodeInvalid {
		c.Errorf("%s: got %v, want an error made by sdk.Invalid", what, err)
	}
}

func (c *collection) otherSchema() {
	random := c.fill()
	refuse := func() {
		c.Helper()
		stranger := sdk.Schema{Dimension: dimension + 1, Analyzer: c.schema.Analyzer}
		_, err := c.process.Stage.Open(c.Context(), c.name, stranger)
		c.refused("opening with another dimension", err)
		if c.options.DenseOnly == "" {
			for _, analyzer := range []string{"code", "ngram", "", "unknown"} {
				_, err := c.process.Stage.Open(c.Context(), c.name, sdk.Schema{Dimension: dimension, Analyzer: analyzer})
				c.refused("opening what was made with analyzer standard as "+analyzer, err)
			}
		}
	}
	refuse()
	c.open()
	c.check()
	c.process.Close()
	c.start()
	refuse() // now it is known from what is kept only
	c.open()
	c.check()
	c.probe("word1 word2", randomVector(random))
	c.put(randomEntry(random, 1))
	c.commitChecked("")
	if c.options.DenseOnly == "" {
		_, err := c.process.Stage.Open(c.Context(), c.name+"x", sdk.Schema{Dimension: dimension, Analyzer: "unknown"})
		c.refused("an unknown analyzer", err)
	}
	_, err := c.process.Stage.Open(c.Context(), "", c.schema)
	c.refused("a collection without a name", err)
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
		c.refused("put, "+row.name, c.process.Stage.Put(c.Context(), c.name, row.batch))
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
		for _, e := range batch {
			c.pending[e.ID] = e
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
		lists, err := c.process.Stage.Retrieve(c.Context(), c.name, r, []sdk.Query{{Text: "word1", Vector: nan}, good, {Text: "word1", Vector: inf}})
		var failed sdk.RowErrors
		if !errors.As(err, &failed) || len(failed) != 2 || failed[0] == nil || failed[2] == nil {
			c.Errorf("%s search with NaN and an infinity in queries 0 and 2 of 3: %v, want sdk.RowErrors for them", mode, err)
			continue
		}
		c.refused("NaN in a query", failed[0])
		c.refused("an infinity in a query", failed[2])
		alone := c.retrieve(r, good)
		if a, b := idsOf(lists[1]), idsOf(alone[0]); len(a) != len(b) || len(a) > 0 && a[0] != b[0] {
			c.Errorf("%s search: beside queries that fail %v is found, alone %v", mode, a, b)
		}
		for name, vector := range map[string][]float32{"short": make([]float32, dimension-1), "long": make([]float32, dimension+1), "none": nil} {
			_, err := c.process.Stage.Retrieve(c.Context(), c.name, r, []sdk.Query{{Text: "word1", Vector: vector}})
			c.refused(string(mode)+" search, vector too "+name, err)
		}
		c.compare(r, good)
	}
}

func (c *collection) unopened() {
	c.put(sdk.Entry{ID: "a", Text: "one", Vector: axis(0)})
	c.commit("note")
	c.process.Close()
	c.start()
	ctx, stage := c.Context(), c.process.Stage
	for _, name := range []string{c.name, c.name + "_never_made"} {
		_, err := stage.Retrieve(ctx, name, ranking(sdk.ModeDense, weighted, 1, 1), []sdk.Query{{Text: "one", Vector: axis(0)}})
		c.refused("search before open", err)
		_, err = stage.Get(ctx, name, []string{"a"})
		c.refused("get before open", err)
		_, err = stage.Scan(ctx, name, sdk.Scan{})
		c.refused("scan before open", err)
		c.refused("put before open", stage.Put(ctx, name, []sdk.Entry{{ID: "b", Vector: axis(0)}}))
		c.refused("delete before open", stage.Delete(ctx, name, []string{"a"}))
		c.refused("commit before open", stage.Commit(ctx, name, nil))
	}
	c.open()
	c.check()
}
