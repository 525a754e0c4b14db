package caller

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/terminal"
)

// resume begins another part of a run that is at the servers.
func (c *Caller) resume(ctx context.Context, earlier *bus.Run, b engine.Beginning) error {
	state, revision, err := callerState(ctx, earlier)
	if err != nil {
		return err
	}
	_, over, err := earlier.Get(ctx, definition.EndKey)
	if err != nil {
		return err
	}
	c.run, c.stated = earlier, revision
	if err := c.tell(ctx, definition.CallerState{Part: state.Part + 1}); err != nil { // nobody waits for what is dropped now
		return err
	}
	_ = earlier.Tell(definition.CallerKey, nil) // workers drop what they have in hand of earlier parts; who does not hear it sees a batch of this one
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
	if _, err := earlier.Put(ctx, definition.EndKey, []byte(`{}`)); err != nil {
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

// move gives a resumed run a new ID, so that no worker takes it for what it was.
func (c *Caller) move(b engine.Beginning) error {
	before := c.defined.Run
	c.defined.Run = definition.NewID()
	to := manifest.Cluster{Run: c.defined.Run, Servers: c.o.Servers}
	c.defined.Manifest.Cluster = &to
	c.o.Say("run %s goes on as run %s", before, c.defined.Run)
	if b.Place == nil {
		return nil
	}
	return b.Place(to)
}

// defines reports whether a run at the servers has the definition that it would have now.
func (c *Caller) defines(earlier *bus.Run) (bool, error) {
	before, err := definition.Decode(earlier.Definition())
	if err != nil {
		return false, nil //nolint:nilerr // it is replaced
	}
	old, err := before.Digest()
	if err != nil {
		return false, err
	}
	now, err := c.defined.Digest()
	return old == now, err
}

// recall gives the journal what is stored of earlier parts. Items that failed or lack a voter are asked
// again, as in any resumed run.
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
		fresh, err := keep(whole) // an item may have an answer in several parts
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

// stored yields the results of a run up to one that is there.
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

// callerState is how far the caller of a run was; zero where it has not said it.
func callerState(ctx context.Context, of *bus.Run) (state definition.CallerState, revision uint64, err error) {
	text, revision, err := of.Get(ctx, definition.CallerKey)
	if err != nil || revision == 0 {
		return state, 0, err
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, 0, fmt.Errorf("run %s: what its caller says of it cannot be read: %w", of.ID(), err)
	}
	return state, revision, nil
}
