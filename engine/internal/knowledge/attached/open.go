package attached

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// Collection is an attached collection that is open for reading.
type Collection struct {
	sdk.Attached
	Store    generation.Store
	Embedder generation.Embedder // nil: not started

	block   *pipeline.Knowledge
	options Options
	bounds  bounds
	place   place
	sample  *sample // nil: the requested one no longer exists
	kept    bool    // an earlier opening read the sample
	found   comparison
}

// Identity identifies the collection, the sample, and what else Moved checks. It covers everything that the
// answers of a run depend on, as far as anybody but the owner of the collection can know.
func (c *Collection) Identity() string {
	looked := fmt.Sprintf("%d %q %t", c.sample.Count, sampled(c.sample.Fields), c.Lexical)
	if norm := c.Norm(); norm != 0 {
		looked += fmt.Sprint(" ", norm)
	}
	return short(c.ID) + "-" + short(c.sample.Digest) + "-" + short(looked)
}

// Norm returns sdk.Search.Norm for the collection.
func (c *Collection) Norm() float64 {
	if c.sample == nil {
		return 0
	}
	return c.sample.Norms.differ()
}

// Sampled returns a folder name for what stages learn from the sample, the sample's identity, and its number
// of entries.
func (c *Collection) Sampled() (folder, digest string, entries int) {
	return "attached-" + nameOf(c.block), c.sample.Digest, c.sample.Entries
}

// Labels returns the labels of the sample, sorted.
func (c *Collection) Labels() []string {
	var all []string
	for _, e := range c.sample.centroids {
		all = append(all, e.Label)
	}
	return all
}

// Moved looks at the collection again. It reports whether the collection was replaced, is searched in another
// way, or has changed so much that its sample no longer represents it.
func (c *Collection) Moved(ctx context.Context) (bool, error) {
	now, err := c.Store.Attach(ctx)
	return err == nil && (!c.sample.fits(now) || now.Lexical != c.Lexical), err
}

// Pages yields the entries of the sample that have the wanted parts. It ends after an error.
func (c *Collection) Pages(_ context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	if c.sample == nil {
		return failing(errors.New("the sample of its collection was read again since"))
	}
	return c.sample.pages(want)
}

// Whole yields the entries of the collection itself, if it is small enough for a complete sample. It ends
// after an error.
func (c *Collection) Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	if c.sample != nil && !c.sample.Whole || c.sample == nil && c.Attached.Entries > maxEntries {
		return failing(fmt.Errorf("collection %s has %s, of which racflow reads no more than %s: search it, or attach a smaller one",
			c.Name, terminal.Plural(c.Attached.Entries, "entry"), terminal.Plural(maxEntries, "entry")))
	}
	return selected(generation.ScanPages(ctx, c.Store, c.Name, want), want)
}

func failing(err error) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) { yield(nil, err) }
}

// Scale projects an extent of the sample to the collection.
func (c *Collection) Scale(e rule.Extent) rule.Extent {
	if !c.sample.Whole {
		e.Tokens = int(float64(e.Tokens) / float64(c.sample.Entries) * float64(c.Attached.Entries))
	}
	e.Entries = max(e.Entries, c.Attached.Entries)
	return e
}

// Nearest returns the nearest label centroids of each vector, at most n.
func (c *Collection) Nearest(_ context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error) {
	all := make([][]sdk.Candidate, len(vectors))
	for i, v := range vectors {
		all[i] = generation.NearestCentroids(c.sample.centroids, v, n)
	}
	return all, nil
}

// Hold does nothing: the collection belongs to another program.
func (c *Collection) Hold(context.Context, string) error { return nil }

// Leave does nothing: the collection belongs to another program.
func (c *Collection) Leave(context.Context, string, bool) (dropped bool, err error) {
	return false, nil
}

// Options configure Open beside the block and its stages.
type Options struct {
	Dir      string // folder of samples: STATE/attached; empty: none is kept
	Refresh  bool   // read the sample again even if one is stored
	Plan     bool   // call no service: do not start an embedder that calls one
	Progress progress.Func
	Waits    *progress.WaitReporter // is notified of what the embedder waits for; may be nil
}

// UnusableError says why a collection cannot be the knowledge of a block, and what to do.
type UnusableError struct {
	Range hcl.Range // of the part of the file to change
	Err   error
}

func (e *UnusableError) Error() string { return e.Err.Error() }

func (e *UnusableError) Unwrap() error { return e.Err }

// bounds limits a sample.
type bounds struct {
	entries int
	bytes   int64
}

// Open starts the embedder and the store of a block, and attaches the collection. It checks that the sample
// and the embedder match the collection.
func Open(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, o Options) (*Collection, error) {
	return open(ctx, block, starter, o, bounds{maxEntries, maxBytes})
}

func open(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, o Options, b bounds) (*Collection, error) {
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

// Reopen attaches a block's collection for reading, not for searching, if the collection still has the given
// Identity. If its sample was replaced in the meantime, the collection opens without a sample.
func Reopen(ctx context.Context, block *pipeline.Knowledge, store generation.Store, dir, identity string) (*Collection, error) {
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

// short returns enough of a hash to compare a few texts.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (c *Collection) attach(ctx context.Context, starter generation.Starter) (err error) {
	if c.Store, err = starter.Store(ctx); err == nil {
		c.Attached, err = c.Store.Attach(ctx)
	}
	return err
}

// check compares the collection with the embedder, and prepares the sample.
func (c *Collection) check(ctx context.Context, starter generation.Starter) (err error) {
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
	if foreign := new(foreignError); c.kept && errors.As(err, &foreign) { // the owner may have embedded the collection again
		if c.found.State != nil { // the embedder has learnt from the old sample
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

// place is where a sample is kept: the path of its files without their suffixes.
type place struct{ path string }

func (p place) rows() string     { return p.path + ".rows" }
func (p place) about() string    { return p.path + ".json" }
func (p place) compared() string { return p.path + ".compared" }

// nameOf names the files of a block and the config of its store.
func nameOf(block *pipeline.Knowledge) string {
	return block.Name + "-" + short(block.Store.Use+string(block.Store.Config.Public))
}

// placeOf returns where the sample of a block is stored.
func placeOf(dir string, block *pipeline.Knowledge) place {
	if dir == "" {
		return place{}
	}
	return place{filepath.Join(dir, nameOf(block))}
}

// load returns the stored sample; nil: none is readable.
func (p place) load() *sample {
	s := &sample{}
	if p.path == "" || readJSON(p.about(), s) != nil || s.Layout != layout || s.open(p.rows()) != nil {
		return nil
	}
	return s
}

// keep gives the sample's new file its final name.
func (p place) keep(s *sample) error {
	if p.path == "" {
		return os.Remove(s.file.Name()) // the file stays readable while it is open
	}
	if err := os.Rename(s.file.Name(), p.rows()); err != nil {
		return err
	}
	return writeJSON(p.about(), s)
}

// unfinished is the prefix of files that are being written.
const unfinished = "new-"

// create creates the file of rows of a new sample, and removes unfinished files of killed
// processes.
func (p place) create() (*os.File, error) {
	if p.path == "" {
		return os.CreateTemp("", "racflow-sample-*")
	}
	dir := filepath.Dir(p.path)
	if err := disk.MakeBelow(filepath.Dir(dir), dir); err != nil {
		return nil, err
	}
	left, _ := filepath.Glob(filepath.Join(dir, unfinished+"*")) // only the pattern could be wrong
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(path)
		}
	}
	return os.CreateTemp(dir, unfinished+"*")
}

func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return disk.WriteFile(path, text, false)
}
