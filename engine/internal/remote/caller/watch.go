package caller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/support"
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

// settleEvery is how often the end of a run looks whether its workers have left.
const settleEvery = 50 * time.Millisecond

// crew is what a caller has said about a run's workers.
type crew struct {
	said   map[string]string // by worker, the last message about it
	alone  time.Time         // since when nobody takes part; zero: somebody does
	missed bool              // it was said that nobody takes part
}

// look reads the status of the run, and reports what has changed to people and to the observers of the pipeline.
func (c *Caller) look(ctx context.Context) (*Status, error) {
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done(): // another look waits for servers that are away
		return nil, ctx.Err()
	}
	s, err := statusOf(ctx, c.run, c.defined)
	if err != nil {
		return nil, err
	}
	if s.State != RunEnded {
		c.announce(s, time.Now())
	}
	if c.watched != nil {
		c.mu.Lock()
		done := c.state.Done
		c.mu.Unlock()
		c.watched.Cluster(s.Pipeline, outcome.Cluster{Workers: s.present(), Waiting: s.Batches.Waiting, UnderWay: s.Batches.UnderWay, Done: int(done)})
	}
	return s, nil
}

// present counts the present workers by state.
func (s *Status) present() map[string]int {
	n := map[string]int{}
	for _, w := range s.Workers {
		if w.present() {
			n[w.State]++
		}
	}
	return n
}

// announce says what has changed of workers, and that there are none.
func (c *Caller) announce(s *Status, now time.Time) {
	for _, w := range s.Workers {
		text := ""
		switch {
		case !w.present():
			text = "has left"
		case w.State == Working:
			text = "takes part"
		case w.State == Lacks:
			text = "takes no part: " + strings.Join(w.Lacks, "; ")
		}
		before := c.crew.said[w.Name]
		if text == "" || text == before || text == "has left" && before == "" {
			continue
		}
		c.crew.said[w.Name] = text
		if text = fmt.Sprintf("worker %s on %s %s", w.Name, w.Host, text); len(s.Workers) <= maxNamed || w.State == Lacks {
			c.o.Say("%s", text)
		} else {
			c.o.Log.Info(text, "run", c.Run())
		}
	}
	switch alone := &c.crew.alone; {
	case s.present()[Working] > 0:
		*alone, c.crew.missed = time.Time{}, false
	case alone.IsZero():
		*alone = now
	case !c.crew.missed && now.Sub(*alone) >= c.o.Idle:
		c.crew.missed = true
		c.o.Say("run %s: nobody takes part: start racflow worker --on %s on the machines that are to answer", c.Run(), c.o.Servers)
	}
}

// settle waits until the workers have left, and returns their calls of services.
func (c *Caller) settle(ctx context.Context) (spent governor.Snapshot) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	for {
		s, err := c.look(ctx)
		if err != nil {
			return spent
		}
		spent = s.spent()
		if s.present()[Working] == 0 || support.SleepFor(ctx, settleEvery) != nil {
			return spent
		}
	}
}

// spent adds up the workers' calls of services.
func (s *Status) spent() (all governor.Snapshot) {
	for _, w := range s.Workers {
		all = all.Plus(w.Calls)
	}
	return all
}
