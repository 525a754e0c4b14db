package stores

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
)

func processFacts() []fact {
	first := []step{put(entry("f", "first of all")), commit("first")}
	return []fact{
		{name: "a reader beside a writer", steps: []step{
			corpus, beside(look), put(entry("a", "brandnew"), sdk.Entry{ID: "e1", Text: "brandnew", Vector: axis(1)}), del("e2", "e3"), beside(look),
			commit("by another process"), beside(reopen),
		}},
		{name: "one after the other", steps: append(first, twoWriters(0, 0, 1, 1))},
		{name: "both at once", steps: append(first, twoWriters(0, 1, 0, 1))},
		{name: "a writer that ends without a commit", steps: append(first,
			beside(put(entry("f", "never"), entry("b", "never")), func(c *collection) { c.process.Close() }), reopen, put(entry("a", "the next writer")), commit("next"))},
	}
}

// twoWriters opens the collection in two processes. On its first turn, each process puts an entry of
// its own; on its second turn it commits. The final state must fit the results of these calls: at
// least one process succeeds, and nothing of it is lost. A process that was refused may try again.
func twoWriters(turns ...int) step {
	return func(c *collection) {
		c.do(beside())
		writers := [2]*collection{c, c.others[""]}
		put := func(s store, i int) error {
			return s.Put(c.Context(), c.name, []sdk.Entry{{ID: fmt.Sprint(i), Text: fmt.Sprint("written by ", i), Vector: axis(1)}})
		}
		commit := func(s store, i int) error { return s.Commit(c.Context(), c.name, fmt.Append(nil, "by ", i)) }
		var failed [2]error
		next := [2]func(store, int) error{put, put}
		for _, i := range turns {
			if failed[i] == nil {
				failed[i] = next[i](writers[i].process.Stage, i)
				next[i] = commit
			}
		}
		if failed[0] != nil && failed[1] != nil {
			c.Fatalf("both writers are refused: %v; %v", failed[0], failed[1])
		}
		for i, refused := range failed {
			if refused == nil {
				_, err := c.model.Open(c.Context(), c.name, c.schema)
				if err := errors.Join(err, put(c.model, i), commit(c.model, i)); err != nil {
					c.Fatalf("write to the model: %v", err)
				}
			} else if sdk.CodeOf(refused) != sdk.CodeTransient {
				c.Errorf("writer %d is refused with %v, want an error made by sdk.Transient", i, refused)
			}
		}
		for _, w := range writers {
			w.open()
		}
		c.do(beside(func(c *collection) { c.put(entry("l", "written later")); c.commit("later") }), reopen)
	}
}

func togetherFacts() []fact {
	var mixed, all []step
	suffixes := []string{"x", "X", ".x", "_x", "-x", "/x", "x ", "é", "e\u0301", " x", "%78", ".narrow"}
	for i, suffix := range suffixes {
		schema, vector := sdk.Schema{}, axis(i)
		if suffix == ".narrow" {
			schema.Dimension, vector = 2, []float32{0, 1}
		}
		steps := []step{put(sdk.Entry{ID: "same", Text: "text of " + suffix, Label: suffix, Vector: vector}, sdk.Entry{ID: "own " + suffix, Text: "own text", Vector: vector})}
		if i%2 == 0 {
			steps = append(steps, commit("first"))
		}
		mixed = append(mixed, as(suffix, schema, steps...))
		all = append(all, at(suffix, look))
	}
	look := func(c *collection) { c.do(all...) }
	mixed = append(mixed, look, at("X", commit("second")), at(".x", del("same"), commit("third")), look)
	for _, suffix := range suffixes {
		mixed = append(mixed, at(suffix, reopen))
	}
	queries := func(n int) (all []sdk.Query) {
		entries := corpusEntries()
		for i := range n {
			all = append(all, sdk.Query{Text: entries[i%300].Text, Vector: entries[i%300].Vector})
		}
		return all
	}
	return []fact{
		{name: "collections do not mix", steps: append(mixed, look)},
		{name: "readers see one commit", steps: []step{whileWriting(nil, nil)}},
		{name: "tenants while entries move", steps: []step{filtered, whileWriting(ptr(meta("tenant").is("a")), ptr(meta("tenant").is("b")))}},
		{name: "many searches", steps: []step{corpus, manySearches}},
		{name: "cancelled search", steps: []step{corpus, func(c *collection) {
			all := queries(2000)
			for _, mode := range c.modes() {
				c.givesUp(len(all), func(ctx context.Context, n int) error {
					_, err := c.process.Stage.Retrieve(ctx, c.name, ranking(mode, weighted, 100, 100), vectorless(mode, all[:n]))
					return err
				})
			}
		}, look}},
		{name: "cancelled put", steps: []step{corpus, func(c *collection) {
			batch := many(3000, func(i int) sdk.Entry {
				return sdk.Entry{ID: fmt.Sprint("e", i), Text: "put by a call that was given up", Vector: axis(i)}
			})
			c.givesUp(len(batch), func(ctx context.Context, n int) error { return c.process.Stage.Put(ctx, c.name, batch[:n]) })
		}, put(entry("a", "after it")), del("e8"), commit("after a cancelled put")}},
	}
}

func ptr(f sdk.Filter) *sdk.Filter { return &f }

// whileWriting replaces all entries with each of many commits, while a reader for each filter
// searches. Each time, a reader must find one committed state: all entries, or those of its tenant,
// from one commit. Every commit moves each entry to the other of two tenants. A tenant must find only
// its own entries; an entry that moves while its text is fetched may be left out.
func whileWriting(filters ...*sdk.Filter) step {
	const entries = 40
	return func(c *collection) {
		write := func(g int) {
			sin, cos := math.Sincos(float64(g) / 400)
			c.put(many(entries, func(i int) sdk.Entry {
				return sdk.Entry{
					ID: fmt.Sprint("r", i), Text: "common" + strings.Repeat(" filler", g%50), Vector: []float32{float32(cos), float32(sin), 0, 0, 0, 0, 0, 0},
					Meta: sdk.Meta{"commit": float64(g), "tenant": []string{"a", "b"}[(i+g)%2]},
				}
			})...)
			c.commit("")
		}
		write(0)
		ids := c.scan(sdk.Scan{})
		var rounds atomic.Int64
		ctx, stop := context.WithCancel(c.Context())
		defer stop()
		readers, ctx := errgroup.WithContext(ctx) // which ends with the first error, too
		for _, f := range filters {
			readers.Go(func() error {
				for ctx.Err() == nil {
					if err := c.oneState(ids, f); err != nil {
						return err
					}
					rounds.Add(1)
				}
				return nil
			})
		}
		for g := 1; ctx.Err() == nil && (g <= 15 || g < 300 && rounds.Load() < 60); g++ {
			write(g)
		}
		stop()
		if err := readers.Wait(); err != nil {
			c.Errorf("while another wrote: %v", err)
		}
		c.look()
	}
}

// oneState reads all entries in every way, or the entries of one tenant by searches.
func (c *collection) oneState(ids []string, filter *sdk.Filter) error {
	same := func(what string, found int, commit any, first any) error {
		if commit != first {
			return fmt.Errorf("%s: an entry of commit %v beside one of %v", what, commit, first)
		}
		if filter == nil && found != len(ids) || found > len(ids) {
			return fmt.Errorf("%s: %d of %d entries", what, found, len(ids))
		}
		return nil
	}
	for _, mode := range c.modes() {
		lists, err := c.retrieve(ranking(mode, weighted, len(ids), len(ids)), sdk.Query{Text: "common", Vector: axis(0), Filter: filter})
		if err != nil {
			return fmt.Errorf("%s search: %w", mode, err)
		}
		for _, e := range lists[0] {
			first := lists[0][0]
			if !filter.Match(e.ID, "", e.Meta) {
				return fmt.Errorf("%s search: %s finds %s with %v", mode, filter, e.ID, e.Meta)
			}
			if filter != nil {
				continue
			}
			if err := same(fmt.Sprintf("%s search", mode), len(lists[0]), e.Meta["commit"], first.Meta["commit"]); err != nil {
				return err
			}
			if !(math.Abs(float64(e.Score-first.Score)) < 1e-6) {
				return fmt.Errorf("%s search: score %v beside %v", mode, e.Score, first.Score)
			}
		}
	}
	if filter != nil {
		return nil
	}
	got, err := c.process.Stage.Get(c.Context(), c.name, ids)
	page, scanned := c.process.Stage.Scan(c.Context(), c.name, sdk.Scan{Texts: true})
	if err := errors.Join(err, scanned); err != nil {
		return err
	}
	for what, entries := range map[string][]sdk.Entry{"get": got, "scan": page.Entries} {
		for _, e := range entries {
			if err := same(what, len(entries), e.Meta["commit"], entries[0].Meta["commit"]); err != nil {
				return err
			}
		}
	}
	return nil
}

// manySearches runs single searches at the same time and compares them with one call for all queries.
func manySearches(c *collection) {
	queries := c.queries(40, 10)
	var calls errgroup.Group
	for _, mode := range c.modes() {
		r := ranking(mode, weighted, 10, 10)
		want, err := c.retrieve(r, queries...)
		if err != nil {
			c.Fatalf("%s search: %v", mode, err)
		}
		for i, q := range queries {
			calls.Go(func() error {
				got, err := c.retrieve(r, q)
				if err == nil && fmt.Sprint(got[0]) != fmt.Sprint(want[i]) {
					err = fmt.Errorf("%s search, query %d: %v, alone it was %v", mode, i, got[0], want[i])
				}
				return err
			})
		}
	}
	if err := calls.Wait(); err != nil {
		c.Errorf("%v", err)
	}
}

// givesUp waits until each cancelled call has ended, and then opens the collection again: nobody can
// know which changes are pending, and until then a store may refuse changes.
func (c *collection) givesUp(many int, call func(ctx context.Context, n int) error) {
	const few = 1
	again := func() {
		settled, cancel := context.WithTimeout(c.Context(), c.Options.Promptly)
		defer cancel()
		conn, ok := c.process.Stage.Conn.(interface{ Settle(context.Context) bool }) // the host's own waits by itself
		if ok && !conn.Settle(settled) {
			c.Errorf("it works on a cancelled call for longer than %v", c.Options.Promptly)
		}
		c.open()
	}
	err := harness.GivesUp(c.T, c.Options, many, few, func(ctx context.Context, n int) error {
		if n == few {
			again()
		}
		return call(ctx, n)
	})
	if err != nil {
		c.Errorf("%v", err)
	}
	again()
}
