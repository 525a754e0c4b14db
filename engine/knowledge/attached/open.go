package attached

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/waiting"
)

// Options are what Open needs beside the block and its stages.
type Options struct {
	Dir      string // where samples are kept: STATE/attached; empty: they are not
	Refresh  bool   // read the sample again, whatever is kept
	Plan     bool   // call no service: an embedder that calls one is not started
	Progress progress.Func
	Waits    *waiting.Reporter // hears what the embedder waits for; may be nil
}

// UnusableError says why a collection cannot be the knowledge of a block, and what to do about it.
type UnusableError struct {
	Range hcl.Range // of what is to be changed in the file
	Err   error
}

func (e *UnusableError) Error() string { return e.Err.Error() }

func (e *UnusableError) Unwrap() error { return e.Err }

// bounds are those of a sample.
type bounds struct {
	entries int
	bytes   int64
}

// Open starts the embedder and the store of a block, attaches the collection, and makes sure
// that the sample and the embedder belong to it.
func Open(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, o Options) (*Collection, error) {
	return open(ctx, block, starter, o, bounds{MaxEntries, MaxBytes})
}

func open(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, o Options, b bounds) (*Collection, error) {
	c := &Collection{block: block, options: o, bounds: b, place: placeOf(o.Dir, block)}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { return c.attach(gctx, starter) })
	if !o.Plan || !block.Embed.Info.Network {
		g.Go(func() (err error) {
			c.Embedder, err = starter.Embedder(gctx, nil, nil)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		err = c.check(ctx, starter)
	}
	unusable := new(UnusableError)
	switch {
	case errors.As(err, &unusable):
		return nil, &UnusableError{unusable.Range, fmt.Errorf("knowledge %q: %w", block.Name, unusable.Err)}
	case err != nil:
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	return c, nil
}

// Reopen attaches the collection of a block to be read and not searched, where it is still the one
// of an Identity. Its sample may have been replaced since: then nothing is left that needs it.
func Reopen(ctx context.Context, block *pipeline.Knowledge, store stages.Store, dir, identity string) (*Collection, error) {
	c := &Collection{block: block, Store: store, place: placeOf(dir, block)}
	var err error
	if c.Attached, err = store.Attach(ctx); err != nil {
		return nil, err
	}
	id, rest, _ := strings.Cut(identity, "-")
	digest, _, _ := strings.Cut(rest, "-")
	if id != short(c.ID) {
		return nil, fmt.Errorf("another collection stands behind the name %s since", c.Name)
	}
	if s := c.place.load(); s != nil && short(s.Digest) == digest {
		c.sample = s
	}
	return c, nil
}

// short is enough of a hash to tell the few apart that are compared.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (c *Collection) attach(ctx context.Context, starter stages.Starter) (err error) {
	if c.Store, err = starter.Store(ctx); err == nil {
		c.Attached, err = c.Store.Attach(ctx)
	}
	return err
}

// check compares what was found with the embedder, and makes the sample ready.
func (c *Collection) check(ctx context.Context, starter stages.Starter) (err error) {
	if c.Embedder != nil && c.Dimension != c.Embedder.Dimension() {
		return &UnusableError{c.block.Embed.UseRange, fmt.Errorf(
			"the vectors of collection %s have %d dimensions, and those of %s have %d: embed with the model that made the collection, or name another collection or vector field in the store's config",
			c.Name, c.Dimension, c.block.Embed.Use, c.Embedder.Dimension())}
	}
	if c.sample = c.place.load(); c.sample != nil && !c.options.Refresh && c.sample.fits(c.Attached) {
		c.kept = true
	} else if c.sample, err = c.read(ctx); err != nil {
		return err
	}
	if c.sample.Entries == 0 {
		return &UnusableError{c.block.Store.UseRange, fmt.Errorf("collection %s holds no entries that can be read: fill it first, or name another one", c.Name)}
	}
	err = c.judge(ctx, starter)
	if foreign := new(foreignError); c.kept && errors.As(err, &foreign) { // its owner may have embedded it anew
		if c.found.State != nil { // it has learnt from the sample before
			if c.Embedder, err = starter.Embedder(ctx, nil, nil); err != nil {
				return err
			}
		}
		if c.sample, err = c.read(ctx); err == nil {
			c.kept = false
			err = c.judge(ctx, starter)
		}
	}
	return err
}
