package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// resume starts another part of a run at the servers.
func (c *Caller) resume(ctx context.Context, earlier *bus.Run, b engine.Beginning) error {
	state, revision, err := callerState(ctx, earlier)
	if err != nil {
		return err
	}
	_, over, err := earlier.Get(ctx, EndKey)
	if err != nil {
		return err
	}
	c.run, c.stated = earlier, revision
	if err := c.claim(ctx, SeenCaller{Part: state.Part + 1}); err != nil { // before the drop, so that no caller waits for dropped batches
		return err
	}
	_ = earlier.Tell(CallerKey, nil) // workers drop their batches of earlier parts; those that miss this notice it with the next batch
	if err := earlier.Drop(ctx, state.Part+1); err != nil {
		return err
	}
	if c.after, err = earlier.Stored(ctx); err != nil {
		return err
	}
	if b.Keep != nil {
		if err := c.recall(ctx, earlier, c.after, b.Keep); err != nil {
			return err
		}
	}
	same, err := c.defines(earlier)
	if err != nil {
		return err
	}
	if over == 0 && same {
		return nil
	}
	if _, err := earlier.Put(ctx, EndKey, []byte(`{}`)); err != nil {
		return err
	}
	if err := c.bring(ctx, earlier); err != nil {
		return err
	}
	if err := c.move(b); err != nil {
		return err
	}
	if err := earlier.Remove(ctx); err != nil {
		return err
	}
	c.run, c.stated, c.after = nil, 0, 0
	return c.create(ctx, b.Pipeline)
}

// move gives a resumed run a new ID, so that no worker confuses it with the old one.
func (c *Caller) move(b engine.Beginning) error {
	before := c.defined.Run
	c.defined.Run = NewRunID()
	to := journal.ManifestCluster{Run: c.defined.Run, Servers: c.o.Servers}
	c.defined.Manifest.Cluster = &to
	c.o.Say("run %s goes on as run %s", before, c.defined.Run)
	if b.Place == nil {
		return nil
	}
	return b.Place(to)
}

// defines reports whether a run at the servers has the same definition as this one.
func (c *Caller) defines(earlier *bus.Run) (bool, error) {
	before, err := DecodeDefinition(earlier.Definition())
	if err != nil {
		return false, nil //nolint:nilerr // the run is replaced
	}
	old, err := before.Digest()
	if err != nil {
		return false, err
	}
	now, err := c.defined.Digest()
	return old == now, err
}

// recall copies stored results of earlier parts into the journal. Items that failed or lack a
// voter's answer are asked again, as in any resumed run.
func (c *Caller) recall(ctx context.Context, earlier *bus.Run, upTo uint64, keep func([]outcome.Result) (int, error)) error {
	items := 0
	for r, err := range stored(ctx, earlier, upTo) {
		if err != nil {
			return err
		}
		_, answers, err := packet.DecodeAnswers(r.Data)
		if err != nil {
			c.o.Log.Warn("a result at the servers cannot be read: its items are asked again", "run", c.Run(), "part", r.Part, "batch", r.Seq, "error", err)
			continue
		}
		var whole []outcome.Result
		for i, one := range answers.Results {
			if _, left := answers.Left[i]; !left && one.Failure == nil && len(one.Missing) == 0 {
				whole = append(whole, one)
			}
		}
		fresh, err := keep(whole) // an item may have answers in several parts
		if err != nil {
			return err
		}
		items += fresh
	}
	if items > 0 {
		c.o.Say("run %s: %s answered meanwhile at %s", c.Run(), terminal.Plural(items, "item"), c.o.Servers)
	}
	return nil
}

// stored yields the results of a run up to a sequence number.
func stored(ctx context.Context, of *bus.Run, upTo uint64) func(func(bus.Result, error) bool) {
	return func(yield func(bus.Result, error) bool) {
		if upTo == 0 {
			return
		}
		for r, err := range of.Results(ctx, 0) {
			if !yield(r, err) || err != nil || r.Sequence >= upTo {
				return
			}
		}
	}
}

// callerState returns the progress of a run's caller; zero: it has not reported any.
func callerState(ctx context.Context, of *bus.Run) (state SeenCaller, revision uint64, err error) {
	text, revision, err := of.Get(ctx, CallerKey)
	if err != nil || revision == 0 {
		return state, 0, err
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, 0, fmt.Errorf("run %s: what its caller says of it cannot be read: %w", of.ID(), err)
	}
	return state, revision, nil
}

// spool stores results in a file until they are read. They arrive in any order and are read by
// position. The file has no name if the system allows that.
type spool struct {
	file *os.File

	mu    sync.Mutex
	size  int64
	spans map[int]span  // by batch number
	added chan struct{} // closed and replaced when a result is added
}

type span struct {
	from   int64
	length int
	worker string
}

func newSpool(folder string) (*spool, error) {
	err := disk.MakeFolder(folder)
	var file *os.File
	if err == nil {
		file, err = os.CreateTemp(folder, "results-*.tmp")
	}
	if err != nil {
		return nil, fmt.Errorf("a file for results that come out of order: %w", err)
	}
	_ = os.Remove(file.Name()) // if the system refuses, close removes it
	return &spool{file: file, spans: map[int]span{}, added: make(chan struct{})}, nil
}

// add stores a result.
func (s *spool) add(r bus.Result) error {
	if _, err := s.file.WriteAt(r.Data, s.size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans[r.Seq] = span{s.size, len(r.Data), r.Worker}
	s.size += int64(len(r.Data))
	close(s.added)
	s.added = make(chan struct{})
	return nil
}

// get waits for the result of a batch.
func (s *spool) get(ctx context.Context, seq int) (data []byte, worker string, err error) {
	for {
		s.mu.Lock()
		at, ok := s.spans[seq]
		added := s.added
		s.mu.Unlock()
		if ok {
			data = make([]byte, at.length)
			_, err = s.file.ReadAt(data, at.from)
			return data, at.worker, err
		}
		select {
		case <-added:
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
	}
}

func (s *spool) close() error {
	err := s.file.Close()
	_ = os.Remove(s.file.Name()) // newSpool may have removed it
	return err
}

// tellEvery is how often the caller reports its progress.
const tellEvery = 2 * time.Second

// takenError says that another caller works on the run.
type takenError struct{ run, by string }

func (e *takenError) Error() string {
	return fmt.Sprintf("run %s was taken over by %s: this caller has left it, and what it has is kept", e.run, e.by)
}

// claim announces the part that this caller works on. A later announcement is another caller's.
func (c *Caller) claim(ctx context.Context, s SeenCaller) error {
	c.mu.Lock()
	c.state = s
	c.mu.Unlock()
	return c.put(ctx)
}

// put stores the caller's progress. A takenError says that another caller has taken over the run.
func (c *Caller) put(ctx context.Context) error {
	c.mu.Lock()
	s := c.state
	c.mu.Unlock()
	s.Name, s.Host, s.At = c.conn.Name(), c.host, time.Now().UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	revision, err := c.run.Swap(ctx, CallerKey, text, c.stated)
	if errors.Is(err, bus.ErrRevision) {
		if now, at, e := callerState(ctx, c.run); e == nil && now.Name == s.Name && now.Part == s.Part {
			c.stated = at // it was stored, and only the reply got lost
			return nil
		} else if e == nil {
			return &takenError{c.Run(), now.Name}
		}
	}
	if err == nil {
		c.stated = revision
	}
	return err
}

// report stores the caller's progress from time to time, until the work ends.
func (c *Caller) report() {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.work.Done():
			return
		}
		err := c.put(c.work)
		switch {
		case err == nil:
			c.observe()
		case c.work.Err() != nil:
		case errors.Is(err, bus.ErrNoRun) || errors.As(err, new(*takenError)):
			c.stop(err)
		default:
			c.o.Log.Warn("how far the run is could not be reported", "run", c.Run(), "error", err)
		}
	}
}
