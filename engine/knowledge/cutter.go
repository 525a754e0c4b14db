package knowledge

import "github.com/racflow/racflow/sdk"

// cutter makes batches of the entries of units.
type cutter struct {
	n       int
	f       func(batch) error
	pending batch
	size    int
}

// add takes the entries of a unit, and the contexts that are embedded in place of
// theirs; nil: their own.
func (c *cutter) add(id string, entries []sdk.Entry, contexts []string) error {
	bytes := 0
	for _, e := range entries {
		bytes += sizeOf(e)
	}
	if len(c.pending.entries)+len(entries) > c.n || c.size+bytes > batchBytes {
		if err := c.flush(true); err != nil {
			return err
		}
	}
	for i, e := range entries {
		if len(c.pending.entries) == c.n || c.size > 0 && c.size+sizeOf(e) > batchBytes {
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

func (c *cutter) flush(whole bool) error {
	if len(c.pending.entries)+len(c.pending.units) == 0 {
		return nil
	}
	c.pending.whole = whole
	full := c.pending
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
