package status

import (
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/terminal"
)

// Attended reports whether a caller is at work on the run.
func (s *Status) Attended() bool {
	return s.State != Ended && s.Caller != nil && !s.Caller.Gone && !s.Caller.Detached
}

// Working is how many workers take part in the run now.
func (s *Status) Working() (n int) {
	for _, w := range s.Workers {
		if !w.Gone && w.State != definition.Lacks {
			n++
		}
	}
	return n
}

// Is says how the worker is, in a word.
func (w Worker) Is() string {
	if w.Gone {
		return "gone since " + w.Seen.Format(time.TimeOnly)
	}
	return w.State
}

// String says who has the run's input and output.
func (c *Caller) String() string {
	text := fmt.Sprintf("%s on %s", c.Name, c.Host)
	if c.Part > 1 {
		text += fmt.Sprintf(", part %d", c.Part)
	}
	switch {
	case c.Detached && c.Attached != "":
		text += ", has left the run to its workers; " + c.Attached + " has come back to it"
	case c.Detached:
		text += ", has left the run to its workers"
	case c.Gone:
		text += ", gone since " + c.Seen.Format(time.TimeOnly)
	}
	return text
}

// String says who hands out leases, and what of.
func (k *Keeper) String() string {
	text := k.Name
	switch {
	case text == "":
		text = "nobody"
	case k.Gone:
		text += ", gone since " + k.Seen.Format(time.TimeOnly) + ","
	}
	text += " leases to " + terminal.Plural(k.Holders, "worker")
	if k.Budget.Cost > 0 {
		text += fmt.Sprintf(", %s of %s", governor.Money(k.Leased.Cost), governor.Money(k.Budget.Cost))
	}
	if k.Budget.Tokens > 0 {
		text += fmt.Sprintf(", %d of %d tokens", k.Leased.Tokens, k.Budget.Tokens)
	}
	for _, l := range k.Blocks {
		text += fmt.Sprintf(", limit %q of %d at a time", l.Name, l.Concurrency)
	}
	if k.Spent != "" {
		text += "; " + k.Spent
	}
	return text
}
