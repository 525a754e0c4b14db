package engine

import (
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/progress"
)

// Progress is how far a piece of work is.
type Progress = progress.Step

// progress passes on how far work is, with what was paid so far.
func (w *Workspace) progress(s progress.Step) {
	if w.options.Events.Progress == nil {
		return
	}
	if spent, any := w.Spent(); any {
		s.Paid = spent.Total.Cost
	}
	w.options.Events.Progress(s)
}

// tuning passes on how far Tune is.
func (w *Workspace) tuning(doing string, done, total int) {
	w.progress(progress.Step{Doing: doing, Done: int64(done), Total: int64(total)})
}

// tally counts the results of one way over the input. The zero value is ready.
type tally struct{ done, flagged, failed int64 }

// add counts results, and says how far the way is.
func (c *tally) add(all []outcome.Result, s progress.Step) progress.Step {
	for _, r := range all {
		c.done++
		if r.Flagged {
			c.flagged++
		}
		if r.Failure != nil {
			c.failed++
		}
	}
	s.Unit, s.Done, s.Flagged, s.Failed = "item", c.done, c.flagged, c.failed
	return s
}

// step is how far the reading is.
func (r *Rows) step(doing string) progress.Step {
	total, about := r.Total()
	return progress.Step{Doing: doing, Total: total, About: about}
}
