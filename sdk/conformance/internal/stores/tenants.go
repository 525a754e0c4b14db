package stores

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

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
	owners := func(commit int) []sdk.Entry {
		all := make([]sdk.Entry, entries)
		for i := range all {
			all[i] = sdk.Entry{ID: fmt.Sprint("m", i), Meta: sdk.Meta{"tenant": []string{"a", "b"}[(i+commit)%2]}}
		}
		return all
	}
	c.fillFiltered(owners(0)...)
	texts := c.now
	var rounds atomic.Int64
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	readers, ctx := errgroup.WithContext(ctx)
	q := c.everything()
	for _, name := range []string{"a", "b"} {
		own := tenant(name)
		q := q
		q.Filter = &own
		readers.Go(func() error {
			for ctx.Err() == nil {
				for _, mode := range c.modes() {
					lists, err := c.process.Stage.Retrieve(c.Context(), c.name, ranking(mode, weighted, entries, entries), without(mode, []sdk.Query{q}))
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
				rounds.Add(1)
			}
			return nil
		})
	}
	for commit := 1; ctx.Err() == nil && (commit <= 8 || commit < 200 && rounds.Load() < 20); commit++ {
		batch := owners(commit)
		for i := range batch {
			batch[i].Text, batch[i].Vector = texts[batch[i].ID].Text, texts[batch[i].ID].Vector
		}
		c.put(batch...)
		c.commit("")
	}
	stop()
	if err := readers.Wait(); err != nil {
		c.Errorf("while entries moved: %v", err)
	}
	c.check()
	c.selects(tenant("a"), tenant("b"))
}
