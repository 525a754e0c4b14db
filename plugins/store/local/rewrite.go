package local

import (
	"os"
	"slices"
)

// smallLog is the size in bytes below which a log is left alone.
const smallLog = 64 << 10

// wasteful reports whether a rewrite would at least halve the log.
func (c *collection) wasteful() bool {
	return c.state.end > smallLog && c.state.end > 2*c.table.live
}

// rewrite replaces the log, and the table, by one without holes. It runs inside
// a transaction, whose lock keeps other writers away; readers go on with the
// old table until the new one is ready.
func (c *collection) rewrite() error {
	a, err := createLog(c.path()+".new", c.state.schema, c.config.Sync)
	if err != nil {
		return err
	}
	defer a.f.Close()
	if err := c.writeLiving(a); err != nil {
		_ = os.Remove(a.f.Name()) // the first error is the one to tell
		return err
	}
	now, err := inspect(a.f, state{})
	if err != nil {
		return err
	}
	t, err := c.emptyTable(now.schema)
	if err != nil {
		return err
	}
	if err := replay(a.f, now, t); err != nil {
		return err
	}
	if err := a.rename(c.path()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.table = now, t
	return nil
}

// writeLiving writes the living rows and a commit to a new log.
func (c *collection) writeLiving(a *appender) error {
	rows := make([]int32, 0, len(c.table.place))
	for _, r := range c.table.place {
		rows = append(rows, r)
	}
	slices.Sort(rows)
	for len(rows) > 0 {
		n, size := 0, int64(0)
		for n < len(rows) && size < frameBytes {
			size += c.table.size(rows[n])
			n++
		}
		part := c.table.batch(rows[:n])
		if _, err := a.append(kindPut, func(b []byte) []byte { return appendPut(b, part) }); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return a.commit(c.state.next, c.state.note)
}
