package caller

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
)

const (
	// overKept is how long a run that is over stays whose caller died before it removed it: long enough
	// for a person to resume it, which takes its last results.
	overKept = 24 * time.Hour
	// filesKept is how long a file stays that no run needs: the next run over the same knowledge finds
	// it there. Files of the run that has just ended stay, however old they are.
	filesKept = 7 * 24 * time.Hour
)

// Sweep removes what nobody needs any more from the servers: runs that are over or never began, and files. What
// cannot be removed is logged.
//
// A file may be removed while another caller is about to begin a run that needs it, which has
// seen that it is there: callers look again once their run is there (see create). Between that and the
// reading of the definitions here only the moment remains that these take.
func (c *Caller) Sweep(ctx context.Context) {
	if err := c.sweep(ctx, time.Now()); err != nil {
		c.o.Log.Warn("what nobody needs any more could not be removed from the servers", "servers", c.o.Servers, "error", err)
	}
}

func (c *Caller) sweep(ctx context.Context, now time.Time) error {
	files, err := c.conn.Files(ctx)
	if err != nil {
		return err
	}
	ids, err := c.conn.Runs(ctx)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	need := func(d *definition.Definition) {
		for _, f := range d.Files {
			needed[f.Digest] = true
		}
		for _, digest := range d.Bundle.Digests() {
			needed[digest] = true
		}
	}
	if c.defined != nil {
		need(c.defined)
	}
	var failed []error
	for _, id := range ids {
		r, err := c.conn.Open(ctx, id)
		if errors.Is(err, bus.ErrNoRun) {
			continue
		}
		if err != nil {
			return err // nobody knows what it needs
		}
		ended, err := endedAt(ctx, r)
		if err == nil && !ended.IsZero() && now.Sub(ended) > overKept {
			failed = append(failed, r.Remove(ctx))
			continue
		}
		d, err := definition.Decode(r.Definition())
		if err != nil {
			return errors.Join(append(failed, err)...) // of a newer racflow: nobody here knows what it needs
		}
		need(d)
	}
	for _, f := range files {
		if !needed[f.Digest] && now.Sub(f.At) > filesKept {
			failed = append(failed, c.conn.RemoveFile(ctx, f.Digest))
		}
	}
	return errors.Join(append(failed, c.sweepUnlisted(ctx, now))...)
}

// sweepUnlisted removes streams of runs whose callers died before they entered them, or after they took
// them out.
func (c *Caller) sweepUnlisted(ctx context.Context, now time.Time) error {
	all, err := c.conn.Unlisted(ctx)
	failed := []error{err}
	for _, r := range all {
		if definition.IsID(r.ID()) && now.Sub(r.Made) > overKept {
			failed = append(failed, r.Remove(ctx))
		}
	}
	return errors.Join(failed...)
}

// endedAt is when a run was over; zero: it is not.
func endedAt(ctx context.Context, r *bus.Run) (time.Time, error) {
	all, err := r.All(ctx, definition.EndKey)
	return all[definition.EndKey].At, err
}
