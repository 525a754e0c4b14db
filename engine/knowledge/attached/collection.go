package attached

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/racflow/racflow/engine/knowledge/centroid"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// Collection is a collection that somebody else makes, open to be read.
type Collection struct {
	sdk.Attached
	Store    stages.Store
	Embedder stages.Embedder // nil: it was not started

	block   *pipeline.Knowledge
	options Options
	bounds  bounds
	place   place
	sample  *sample // nil: the one that was asked for is not there
	kept    bool    // the sample was
	found   comparison
}

// Identity names what stands behind the collection's name, the sample, and what else Moved looks at: what
// the answers of a run depend on, as far as anybody but the owner of the collection knows.
func (c *Collection) Identity() string {
	looked := fmt.Sprintf("%d %q %t", c.sample.Count, sampled(c.sample.Fields), c.Lexical)
	if norm := c.Norm(); norm != 0 {
		looked += fmt.Sprint(" ", norm)
	}
	return short(c.ID) + "-" + short(c.sample.Digest) + "-" + short(looked)
}

// Norm is that of an sdk.Search in the collection.
func (c *Collection) Norm() float64 {
	if c.sample == nil {
		return 0
	}
	return c.sample.Norms.differ()
}

// Sampled returns the name of a folder for what stages learn from the sample, what identifies
// the sample, and how many entries it has.
func (c *Collection) Sampled() (folder, digest string, entries int) {
	return "attached-" + nameOf(c.block), c.sample.Digest, c.sample.Entries
}

// Labels are those of the sample, sorted.
func (c *Collection) Labels() []string {
	var all []string
	for _, e := range c.sample.centroids {
		all = append(all, e.Label)
	}
	return all
}

// Moved looks at the collection again, and reports whether it is another one, is searched in another way,
// or has moved so far that its sample does not stand for it any more.
func (c *Collection) Moved(ctx context.Context) (bool, error) {
	now, err := c.Store.Attach(ctx)
	return err == nil && (!c.sample.fits(now) || now.Lexical != c.Lexical), err
}

// Pages yields the entries of the sample that have the parts that are wanted. An error is the last.
func (c *Collection) Pages(_ context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	if c.sample == nil {
		return failing(errors.New("the sample of its collection was read again since"))
	}
	return c.sample.pages(want)
}

// Whole yields the entries of the collection itself, where a sample has all of them. An error is the last.
func (c *Collection) Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	if c.sample != nil && !c.sample.Whole || c.sample == nil && c.Attached.Entries > MaxEntries {
		return failing(fmt.Errorf("collection %s has %s, of which racflow reads no more than %s: search it, or attach a smaller one",
			c.Name, terminal.Plural(c.Attached.Entries, "entry"), terminal.Plural(MaxEntries, "entry")))
	}
	return selected(stages.Pages(ctx, c.Store, c.Name, want), want)
}

func failing(err error) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) { yield(nil, err) }
}

// Scale is what an extent of the sample comes to for all of the collection.
func (c *Collection) Scale(e rule.Extent) rule.Extent {
	if !c.sample.Whole {
		e.Tokens = int(float64(e.Tokens) / float64(c.sample.Entries) * float64(c.Attached.Entries))
	}
	e.Entries = max(e.Entries, c.Attached.Entries)
	return e
}

// Nearest returns for each vector its nearest label centroids, at most n.
func (c *Collection) Nearest(_ context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error) {
	all := make([][]sdk.Candidate, len(vectors))
	for i, v := range vectors {
		all[i] = centroid.Nearest(c.sample.centroids, v, n)
	}
	return all, nil
}

// Hold does nothing: the collection is not racflow's to keep.
func (c *Collection) Hold(context.Context, string) error { return nil }

// Leave does nothing: the collection is not racflow's to remove.
func (c *Collection) Leave(context.Context, string, bool) (dropped bool, err error) {
	return false, nil
}
