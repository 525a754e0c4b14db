package stores

import (
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
)

// fact is a row of the table: the steps to take with a new collection in a process of its own.
type fact struct {
	name   string
	steps  []step
	schema sdk.Schema // if it differs from the usual one
}

// step does something with the store and with its model, and compares them.
type step func(*collection)

// topics are groups of facts with one reason.
var topics = []struct {
	name, why, fix string
	facts          func() []fact
}{
	{"search", "A pipeline's answers depend on exact scores in one order, whichever store has the knowledge.",
		"Compare what the search returns with what sdk.Store, sdk.Hits and sdk.Ranking promise; BM25 has k1 = 1.2 and b = 0.75.", searchFacts},
	{"filters", filtersWhy,
		"Do what sdk.Filter says of each operator, also where the value is missing or of another type; or do not declare sdk.Filters.", filterFacts},
	{"write", "A build never changes what is being searched, until one commit makes all of it visible.",
		"Keep puts and deletes pending until Commit; the last put of an id counts; Open drops what is pending.", writeFacts},
	{"restart", "What was committed outlives every process, and what was not is gone.",
		"Write to disk in Commit, before it returns, and read that in Open.", restartFacts},
	{"content", "People's texts, ids, labels and metadata come back letter by letter.",
		"Do not escape, cut, trim or normalise what is stored.", contentFacts},
	{"scan", "A build compares the store with its source page by page; an entry that is left out is embedded and paid for again.",
		"Order pages by id, begin each after the last id of the one before, and keep a page below the size of a message.", scanFacts},
	{"list", "`racflow knowledge` lists and removes collections, also those that this process has not opened.",
		"List every collection once, by name, and remove all of one in Drop.", listFacts},
	{"refuse", "An invalid entry or query fails alone, as an invalid one, so that nobody tries it again.",
		"Return sdk.Invalid, or sdk.RowErrors with it, and store nothing of what is refused.", refuseFacts},
	{"together", "Runs search while a build writes, and give calls up when a person stops them.",
		"Let each search see one commit, keep collections apart, and stop working when the context ends.", togetherFacts},
	{"processes", "Several runs and a server share knowledge: one builds while others read, or wants to build, too.",
		"Refuse a change, or its commit, with sdk.Transient where another process has changed the collection since this one opened it.", processFacts},
}

const filtersWhy = "Filters choose entries before the best are chosen; one too many or too few is a wrong answer that nobody sees."

// Checks returns all checks of stores.
func Checks() (all []harness.Check) {
	for _, topic := range topics {
		for _, f := range topic.facts() {
			run := func(t *harness.T, s *harness.Subject) error {
				schema := f.schema
				if schema.Dimension == 0 {
					schema = sdk.Schema{Dimension: dimension, Analyzer: "standard"}
				}
				switch {
				case s.Options.DenseOnly == "":
				case f.schema.Analyzer != "":
					t.Skipf("dense only: %s", s.Options.DenseOnly)
				default:
					schema.Analyzer = ""
				}
				newCollection(t, s, schema).do(f.steps...)
				return nil
			}
			all = append(all, harness.Check{Name: topic.name + "/" + f.name, Why: topic.why, Fix: topic.fix, Within: harness.Longest, Run: run})
		}
	}
	return all
}

// do takes steps one after the other.
func (c *collection) do(steps ...step) {
	for i, step := range steps {
		step(c)
		if c.Failed() {
			c.Fatalf("this was in step %d of %d", i+1, len(steps))
		}
	}
}

func put(entries ...sdk.Entry) step { return func(c *collection) { c.put(entries...) } }
func del(ids ...string) step        { return func(c *collection) { c.delete(ids...) } }
func get(ids ...string) step        { return func(c *collection) { c.get(ids...) } }

// commit commits, and compares everything committed.
func commit(note string) step {
	return func(c *collection) {
		c.commit(note)
		c.look()
	}
}

// scan compares scans; all scans must return the entries in the same order.
func scan(scans ...sdk.Scan) step {
	return func(c *collection) {
		order := c.scan(sdk.Scan{})
		for _, s := range scans {
			if got := c.scan(s); len(got) == len(order) && !slices.Equal(got, order) {
				c.Errorf("scan %+v: another order than that of one scan without a limit", s)
			}
		}
	}
}

// search compares the results of a ranking for queries.
func search(r sdk.Ranking, queries ...sdk.Query) step {
	return func(c *collection) { c.compare(r, queries...) }
}

// at takes steps with a second collection, whose name has a suffix.
func at(suffix string, steps ...step) step { return as(suffix, sdk.Schema{}, steps...) }

// as is at, with another schema.
func as(suffix string, schema sdk.Schema, steps ...step) step {
	return func(c *collection) {
		o := c.others[suffix]
		if o == nil {
			o = c.copy(c.name + suffix)
			if schema.Dimension > 0 {
				o.schema = schema
			}
			c.others[suffix] = o
			o.dropAtEnd()
			o.open()
		}
		o.process, o.model = c.process, c.model
		o.do(steps...)
	}
}

// beside takes steps in another process; all steps of a fact share this process.
func beside(steps ...step) step {
	return func(c *collection) {
		o := c.others[""]
		if o == nil {
			o = c.copy(c.name)
			c.others[""], o.process = o, nil
			o.start()
			o.open()
		}
		o.do(steps...)
	}
}

// short skips the fact in a short test.
func short(why string) step {
	return func(c *collection) {
		if c.Options.Short {
			c.Skipf("%s is too much for a short test", why)
		}
	}
}
