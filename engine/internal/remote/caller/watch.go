package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
)

const (
	// overKept is how long a finished run stays if its caller crashed before removing it: long
	// enough for a person to resume it, which saves its last results.
	overKept = 24 * time.Hour
	// filesKept is how long an unneeded file stays, so that the next run over the same knowledge
	// need not upload it. Files of the run that has just ended stay whatever their age.
	filesKept = 7 * 24 * time.Hour
)

// Sweep removes unneeded data from the servers: runs that are over or never began, and files. It
// logs what it cannot remove.
//
// Sweep may remove a file just after another caller has found it and before that caller's run
// exists. Callers therefore check their files again once their run exists (see create). A race
// remains only while Sweep reads the definitions.
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
	need := func(d *Definition) {
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
			return err // its files are unknown
		}
		ended, err := endedAt(ctx, r)
		if err == nil && !ended.IsZero() && now.Sub(ended) > overKept {
			failed = append(failed, r.Remove(ctx))
			continue
		}
		d, err := DecodeDefinition(r.Definition())
		if err != nil {
			return errors.Join(append(failed, err)...) // of a newer racflow: its files are unknown
		}
		need(d)
	}
	for _, f := range files {
		if !needed[f.Digest] && now.Sub(f.At) > filesKept {
			failed = append(failed, c.conn.RemoveFile(ctx, f.Digest))
		}
	}
	return errors.Join(append(failed, c.conn.Sweep(ctx, now.Add(-overKept)))...)
}

// endedAt returns when a run was over; zero: it is not.
func endedAt(ctx context.Context, r *bus.Run) (time.Time, error) {
	all, err := r.All(ctx, EndKey)
	return all[EndKey].At, err
}

// maxNamed limits the workers that are named on the terminal one by one; beyond it the log names them.
const maxNamed = 16

// crew holds the workers of a run, as they report themselves.
type crew struct {
	run     string
	servers string
	say     func(format string, args ...any)
	log     *slog.Logger
	idle    time.Duration // how long to wait before reporting that no worker takes part

	ahead time.Duration // how far this machine's clock is ahead of the servers'

	mu      sync.Mutex
	over    bool // the run is over: report nothing more
	workers map[string]*seen
	changed chan struct{} // closed and replaced when a worker has reported
}

func newCrew(run string, o Options) *crew {
	return &crew{run: run, servers: o.Servers, say: o.Say, log: o.Log, idle: o.Idle, workers: map[string]*seen{}, changed: make(chan struct{})}
}

// synchronise measures how far the servers' clock is behind this machine's, by a key that was just stored.
func (c *crew) synchronise(ctx context.Context, run *bus.Run, key string) error {
	all, err := run.All(ctx, key)
	if at := all[key].At; !at.IsZero() {
		c.ahead = time.Since(at)
	}
	return err
}

// seen is the last report of a worker.
type seen struct {
	WorkerState
	at       time.Time // when it arrived; zero: the worker is gone
	reported string    // the last message about it
}

func (w *seen) takesPart() bool {
	return !w.at.IsZero() && (w.State == Working || w.State == Joining)
}

// watch receives the reports of workers until ctx ends, and calls joined after each.
func (c *crew) watch(ctx context.Context, changes <-chan bus.Change, joined func()) {
	tick := time.NewTicker(WorkerGone / 3)
	defer tick.Stop()
	var late <-chan time.Time // nil: it waits for no first worker
	for said := false; ; {
		switch {
		case c.anyone():
			said, late = false, nil
		case !said && late == nil:
			late = time.After(c.idle)
		}
		select {
		case change, ok := <-changes:
			if !ok {
				return
			}
			c.heard(change, time.Now())
			joined()
		case now := <-tick.C:
			c.miss(now)
		case <-late:
			said, late = true, nil
			c.say("run %s: nobody takes part: start racflow worker --on %s on the machines that are to answer", c.run, c.servers)
		case <-ctx.Done():
			return
		}
	}
}

// anyone reports whether some worker takes part.
func (c *crew) anyone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if w.takesPart() && w.State == Working {
			return true
		}
	}
	return false
}

// heard records a report of a worker.
func (c *crew) heard(change bus.Change, now time.Time) {
	name := strings.TrimPrefix(change.Key, WorkerPrefix)
	c.mu.Lock()
	w := c.workers[name]
	if w == nil {
		if change.Deleted {
			c.mu.Unlock()
			return
		}
		w = &seen{}
		c.workers[name] = w
	}
	if change.Deleted {
		w.at = time.Time{}
	} else if err := json.Unmarshal(change.Value, &w.WorkerState); err != nil {
		c.log.Warn("what a worker says cannot be read", "worker", name, "error", err)
	} else if w.Name, w.at = name, now; now.Sub(change.At)-c.ahead > WorkerGone {
		w.at = time.Time{} // the state is from an earlier part of the run
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.announce(w)
}

// miss records which workers have not reported for long.
func (c *crew) miss(now time.Time) {
	c.mu.Lock()
	var gone []*seen
	for _, w := range c.workers {
		if !w.at.IsZero() && now.Sub(w.at) > WorkerGone {
			w.at = time.Time{}
			gone = append(gone, w)
		}
	}
	c.mu.Unlock()
	for _, w := range gone {
		c.announce(w)
	}
}

// announce reports changes of a worker's state, on the terminal or in the log.
func (c *crew) announce(w *seen) {
	c.mu.Lock()
	text := ""
	switch {
	case w.at.IsZero() && w.reported == "":
	case w.at.IsZero():
		text = "has left"
	case w.State == Working:
		text = "takes part"
	case w.State == Lacks:
		text = "takes no part: " + strings.Join(w.Lacks, "; ")
	}
	changed := text != "" && text != w.reported && !c.over
	if changed {
		w.reported = text
	}
	many, who := len(c.workers) > maxNamed, fmt.Sprintf("worker %s on %s", w.Name, w.Host)
	lacks := w.State == Lacks && c.lacking(text) <= maxNamed
	c.mu.Unlock()
	if !changed {
		return
	}
	if !many || lacks {
		c.say("%s %s", who, text)
		return
	}
	c.log.Info(who+" "+text, "run", c.run)
}

// lacking counts the workers with the same message. The caller holds mu.
func (c *crew) lacking(text string) (n int) {
	for _, w := range c.workers {
		if w.reported == text {
			n++
		}
	}
	return n
}

// spent adds up the workers' calls of services.
func (c *crew) spent() governor.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all governor.Snapshot
	for _, w := range c.workers {
		all = all.Plus(w.Calls)
	}
	return all
}

// batches returns how many batches keep the workers busy: two for each that they can work on.
func (c *crew) batches() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if w.takesPart() {
			n += 2 * max(w.Jobs, jobs)
		}
	}
	return n
}

// settle waits until the workers have left, because their last reports say what they spent.
func (c *crew) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	for {
		c.mu.Lock()
		c.over = true
		changed := c.changed
		c.mu.Unlock()
		if !c.anyone() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
