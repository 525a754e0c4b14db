package stores

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
)

var processCases = []storeCase{
	{"a reader beside a writer", (*collection).readerBeside},
	{"one after the other", func(c *collection) { c.twoWriters(0, 0, 1, 1) }},
	{"both at once", func(c *collection) { c.twoWriters(0, 1, 0, 1) }},
	{"a writer that ends without a commit", (*collection).writerEnds},
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
	reader.open()
	reader.probe("word1 word2 brandnew", vector)
}

// twoWriters opens the collection in two processes, each of which puts an entry of its own when it has its
// first turn, and commits when it has its second. What there is then is compared with what they were told:
// at least one of them succeeds, and nothing of it is lost; whoever is refused may try again.
func (c *collection) twoWriters(turns ...int) {
	c.put(sdk.Entry{ID: "first", Text: "first of all", Vector: axis(0)})
	c.commit("first")
	b := c.beside()
	writers := [2]*collection{c, b}
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
	b.put(sdk.Entry{ID: "later", Text: "written later", Vector: axis(2)})
	b.commitChecked("later")
	c.open()
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
	c.put(sdk.Entry{ID: "a", Text: "the next writer", Vector: axis(2)})
	c.commitChecked("next")
	c.probe("first never writer", axis(1))
}

var togetherCases = []storeCase{
	{"collections do not mix", (*collection).collections},
	{"readers see one commit", (*collection).readers},
	{"many searches", (*collection).manySearches},
	{"cancelled search", (*collection).cancelledSearch},
	{"cancelled put", (*collection).cancelledPut},
}

// collections checks collections whose names are alike: an uncommitted change
// of one has nothing to do with the others.
func (c *collection) collections() {
	all := []*collection{c}
	for _, suffix := range []string{"x", "X", ".x", "_x", "-x", "/x", "é", "e\u0301", " x", "%78"} {
		all = append(all, c.other(c.name+suffix, c.schema))
	}
	all = append(all, c.other(c.name+".narrow", sdk.Schema{Dimension: 2}))
	for i, c := range all {
		vector := make([]float32, c.schema.Dimension)
		vector[i%len(vector)] = 1
		c.put(sdk.Entry{ID: "same", Text: fmt.Sprint("text of ", i), Label: c.name, Vector: vector})
		c.put(sdk.Entry{ID: fmt.Sprint("own ", i), Text: "own text", Label: c.name, Vector: vector})
	}
	for i, c := range all {
		if i%2 == 0 {
			c.commit("first")
		}
	}
	check := func() {
		for _, c := range all {
			c.check()
			vector := make([]float32, c.schema.Dimension)
			vector[0] = 1
			c.compare(ranking(sdk.ModeDense, weighted, 5, 5), sdk.Query{Text: "text", Vector: vector})
		}
	}
	check()
	all[1].commit("second")
	all[2].delete("same")
	all[2].commit("third")
	check()
	for _, c := range all {
		c.open()
	}
	check()
}

// generation is a state of the entries of readers: all have this vector, this
// text and this metadata.
func generation(g, n int) []sdk.Entry {
	vector := make([]float32, dimension)
	sin, cos := math.Sincos(float64(g) / 400)
	vector[0], vector[1] = float32(cos), float32(sin)
	all := make([]sdk.Entry, n)
	for i := range all {
		all[i] = sdk.Entry{
			ID: fmt.Sprint("r", i), Text: "common" + strings.Repeat(" filler", g%50), Meta: sdk.Meta{"generation": float64(g)}, Vector: vector,
		}
	}
	return all
}

// readers checks that whoever reads while another writes finds one committed
// state each time: all entries, and all of one generation.
func (c *collection) readers() {
	const entries = 40
	c.put(generation(0, entries)...)
	c.commit("")
	all := c.ids()
	reader := func() error { return c.oneState(all) }
	c.whileWriting([]func() error{reader, reader, reader}, func(g int) {
		batch := generation(g, entries)
		c.put(batch[:entries/2]...)
		c.put(batch[entries/2:]...)
	})
	c.check()
}

// whileWriting writes and commits again and again while others read.
func (c *collection) whileWriting(read []func() error, write func(commit int)) {
	var rounds atomic.Int64
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	readers, ctx := errgroup.WithContext(ctx) // which ends with the first error, too
	for _, read := range read {
		readers.Go(func() error {
			for ctx.Err() == nil {
				if err := read(); err != nil {
					return err
				}
				rounds.Add(1)
			}
			return nil
		})
	}
	for commit := 1; ctx.Err() == nil && (commit <= 15 || commit < 300 && rounds.Load() < 60); commit++ {
		write(commit)
		c.commit("")
	}
	stop()
	if err := readers.Wait(); err != nil {
		c.Errorf("while another wrote: %v", err)
	}
}

// oneState reads all entries in every way.
func (c *collection) oneState(ids []string) error {
	ctx, stage, n := c.Context(), c.process.Stage, len(ids)
	for _, mode := range c.modes() {
		lists, err := c.retrieve(ranking(mode, weighted, n, n), sdk.Query{Text: "common", Vector: axis(0)})
		if err != nil {
			return fmt.Errorf("%s search: %w", mode, err)
		}
		if len(lists[0]) != n {
			return fmt.Errorf("%s search: %d of %d entries", mode, len(lists[0]), n)
		}
		first := lists[0][0]
		for _, e := range lists[0] {
			if e.Meta["generation"] != first.Meta["generation"] || !(math.Abs(float64(e.Score-first.Score)) < 1e-6) {
				return fmt.Errorf("%s search: %s with score %v of generation %v beside %s with %v of %v",
					mode, e.ID, e.Score, e.Meta["generation"], first.ID, first.Score, first.Meta["generation"])
			}
		}
	}
	got, err := stage.Get(ctx, c.name, ids)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	page, err := stage.Scan(ctx, c.name, sdk.Scan{Texts: true})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	for what, entries := range map[string][]sdk.Entry{"get": got, "scan": page.Entries} {
		if len(entries) != n {
			return fmt.Errorf("%s: %d of %d entries", what, len(entries), n)
		}
		for _, e := range entries {
			if e.Meta["generation"] != entries[0].Meta["generation"] {
				return fmt.Errorf("%s: %q of generation %v beside %q of %v", what, e.ID, e.Meta["generation"], entries[0].ID, entries[0].Meta["generation"])
			}
		}
	}
	return nil
}

func (c *collection) manySearches() {
	random := c.fill()
	queries := c.queries(random, 40, 10)
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
				if err != nil {
					return err
				}
				if fmt.Sprint(got[0]) != fmt.Sprint(want[i]) {
					return fmt.Errorf("%s search, query %d: %v, alone it was %v", mode, i, got[0], want[i])
				}
				return nil
			})
		}
	}
	if err := calls.Wait(); err != nil {
		c.Errorf("%v", err)
	}
}

func (c *collection) cancelledSearch() {
	random := c.fill()
	queries := make([]sdk.Query, 2000)
	for i := range queries {
		queries[i] = sdk.Query{Text: randomText(random, 5), Vector: randomVector(random)}
	}
	for _, mode := range c.modes() {
		c.givesUp(len(queries), func(ctx context.Context, n int) error {
			_, err := c.process.Stage.Retrieve(ctx, c.name, ranking(mode, weighted, 100, 100), vectorless(mode, queries[:n]))
			return err
		})
	}
	c.check()
	c.probe("word1 word2", queries[0].Vector)
}

func (c *collection) cancelledPut() {
	random := c.fill()
	batch := make([]sdk.Entry, 3000)
	for i := range batch {
		batch[i] = randomEntry(random, i)
	}
	c.givesUp(len(batch), func(ctx context.Context, n int) error { return c.process.Stage.Put(ctx, c.name, batch[:n]) })
	c.check()
	c.put(randomEntry(random, 7))
	c.delete("e8")
	c.commitChecked("after a cancelled put")
	c.probe("word1 word2", randomVector(random))
}

// givesUp opens the collection again after each call that was given up, when that one has ended: nobody
// can know what is pending, and a store may refuse changes until then.
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

// tenantCases are about entries that belong to somebody: none of them may be found by others.
var tenantCases = []storeCase{
	{"tenants", (*collection).tenants},
	{"tenants while entries move", (*collection).movingTenants},
}

func tenant(name string) sdk.Filter { return meta("tenant").is(name) }

// tenants searches as each of several tenants, also by rules of their own that try to reach what is not
// theirs. Names of tenants are alike, and what others have is nearer to the query.
func (c *collection) tenants() {
	names := []string{"a", "A", "a ", "ab", "b", "", "a%", "1", "true", "null"}
	random := rand.New(rand.NewPCG(5, 5))
	var entries []sdk.Entry
	for i := range 12 * len(names) {
		e := sdk.Entry{ID: fmt.Sprintf("f%03d", i), Label: []string{"red", "green", ""}[i%3], Meta: sdk.Meta{"n": float64(i % 7)}}
		if name := names[i%len(names)]; i < 11*len(names) {
			e.Meta["tenant"] = name
		} else if i%2 == 0 {
			e.Meta["tenant"] = []any{1.0, true}[i/2%2] // of another type than any name
		}
		entries = append(entries, e)
	}
	c.fillFiltered(entries...)
	var filters []sdk.Filter
	for _, name := range names {
		own := tenant(name)
		filters = append(filters, own,
			and(own, or(label.is("red"), not(label.is("red")))),
			and(own, or(tenant("b"), meta("n").compare(sdk.FilterGreater, 3))),
			and(not(not(own)), label.is("red", "green")),
			and(own, randomFilter(random, 3)))
	}
	c.selects(filters...)
	for _, mode := range c.modes() { // deeper than a tenant has entries
		own := tenant("a")
		q := sdk.Query{Text: strings.Repeat("filler ", 3), Vector: entries[1].Vector, Filter: &own}
		c.compare(ranking(mode, rrf, len(entries), len(entries)), q)
	}
}

// movingTenants moves every entry to the other one of two tenants with each commit, while both search: what
// one of them finds is always its own. An entry that moves while its text is fetched may be left out.
func (c *collection) movingTenants() {
	const entries = 40
	owner := func(i, commit int) sdk.Meta { return sdk.Meta{"tenant": []string{"a", "b"}[(i+commit)%2]} }
	all := make([]sdk.Entry, entries)
	for i := range all {
		all[i] = sdk.Entry{ID: fmt.Sprint("m", i), Meta: owner(i, 0)}
	}
	c.fillFiltered(all...)
	q := c.everything()
	finds := func(name string) func() error {
		q, own := q, tenant(name)
		q.Filter = &own
		return func() error {
			for _, mode := range c.modes() {
				lists, err := c.retrieve(ranking(mode, weighted, entries, entries), q)
				if err != nil {
					return err
				}
				if len(lists[0]) > entries/2 {
					return fmt.Errorf("%s search: tenant %s finds %d entries and has %d", mode, name, len(lists[0]), entries/2)
				}
				for _, found := range lists[0] {
					if found.Meta["tenant"] != name {
						return fmt.Errorf("%s search: tenant %s finds %s of tenant %v", mode, name, found.ID, found.Meta["tenant"])
					}
				}
			}
			return nil
		}
	}
	c.whileWriting([]func() error{finds("a"), finds("b")}, func(commit int) {
		moved := slices.Clone(all)
		for i := range moved {
			moved[i].Meta = owner(i, commit)
		}
		c.put(moved...)
	})
	c.check()
	c.selects(tenant("a"), tenant("b"))
}
