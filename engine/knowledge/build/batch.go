package build

import (
	"strings"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/sdk"
)

// batch is what is embedded and stored together.
type batch struct {
	delimiter string // between an entry's text and its terms
	entries   []sdk.Entry
	contexts  []string   // of each entry, as it is embedded; nil: its own
	units     []produced // those that end in it
	whole     bool       // the last entry is the last of its unit
}

// produced is a unit of which entries were made.
type produced struct {
	id      string
	entries int
}

// texts are what is embedded: an entry's context stands before its text, and terms
// stand behind it.
func (m batch) texts() []string {
	all := make([]string, len(m.entries))
	for i, e := range m.entries {
		context := e.Context
		if m.contexts != nil {
			context = m.contexts[i]
		}
		before, terms := sdk.SplitContext(context)
		if all[i] = e.Text; before != "" {
			all[i] = before + "\n" + all[i]
		}
		if len(terms) > 0 {
			all[i] += "\n" + m.delimiter + "\n" + strings.Join(terms, "\n")
		}
	}
	return all
}

// batcher makes batches of the entries of units.
type batcher struct {
	delimiter string
	n         int // entries, at most
	f         func(batch) error
	pending   batch
	size      int
}

// add takes the entries of a unit, and the contexts that are embedded in place of
// theirs; nil: their own.
func (c *batcher) add(id string, entries []sdk.Entry, contexts []string) error {
	bytes := 0
	for _, e := range entries {
		bytes += sizeOf(e)
	}
	if len(c.pending.entries)+len(entries) > c.n || c.size+bytes > stages.BatchBytes {
		if err := c.flush(true); err != nil {
			return err
		}
	}
	for i, e := range entries {
		if len(c.pending.entries) == c.n || c.size > 0 && c.size+sizeOf(e) > stages.BatchBytes {
			if err := c.flush(false); err != nil {
				return err
			}
		}
		c.pending.entries, c.size = append(c.pending.entries, e), c.size+sizeOf(e)
		if contexts != nil {
			c.pending.contexts = append(c.pending.contexts, contexts[i])
		}
	}
	c.pending.units = append(c.pending.units, produced{id, len(entries)})
	return nil
}

func (c *batcher) flush(whole bool) error {
	if len(c.pending.entries)+len(c.pending.units) == 0 {
		return nil
	}
	c.pending.whole = whole
	full := c.pending
	full.delimiter = c.delimiter
	c.pending, c.size = batch{}, 0
	return c.f(full)
}

// sizeOf is about what an entry adds to a message. Metadata counts, too: each chunk
// has that of its document, however much it is.
func sizeOf(e sdk.Entry) int {
	size := len(e.Text) + len(e.Context)
	for key, value := range e.Meta {
		size += len(key)
		if text, ok := value.(string); ok {
			size += len(text)
		}
	}
	return size
}
