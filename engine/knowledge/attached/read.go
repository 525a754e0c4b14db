package attached

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/racflow/racflow/engine/knowledge/centroid"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// read reads a sample from the collection and keeps it.
func (c *Collection) read(ctx context.Context) (*sample, error) {
	file, err := c.place.create()
	if err != nil {
		return nil, fmt.Errorf("keep a sample of it: %w", err)
	}
	s := &sample{
		Layout: layout, ID: c.ID, Dimension: c.Dimension, Fields: c.Fields, Count: c.Attached.Entries,
		Read: time.Now().UTC().Truncate(time.Second), file: file,
	}
	w := newRowsWriter(file)
	if err = c.fill(ctx, s, w); err == nil {
		err = c.keep(s, w)
	}
	if err != nil {
		file.Close()
		_ = os.Remove(file.Name()) // an error: it has another name by now
		return nil, err
	}
	return s, nil
}

func (c *Collection) keep(s *sample, w *rowsWriter) (err error) {
	if s.Digest, err = w.end(); err == nil {
		s.Size = w.size
		err = c.place.keep(s)
	}
	if err != nil {
		return fmt.Errorf("keep a sample of it: %w", err)
	}
	return nil
}

// fill reads entries until the collection or the bounds of a sample end, and makes the centroids
// of their labels.
func (c *Collection) fill(ctx context.Context, s *sample, w *rowsWriter) error {
	total := int64(min(c.bounds.entries, c.Attached.Entries))
	sums := centroid.Sums{}
	s.Whole = true
	for page, err := range stages.Pages(ctx, c.Store, c.Name, sdk.Scan{Texts: true, Vectors: true}) {
		if err != nil {
			return fmt.Errorf("read a sample of it: %w", err)
		}
		for i := range page {
			bytes := sizeOf(page[i])
			if s.Entries == c.bounds.entries || s.Bytes+bytes > c.bounds.bytes {
				page, s.Whole = page[:i], false
				break
			}
			s.add(&page[i], bytes)
			sums.Add(page[i].Label, page[i].Vector)
		}
		if err := w.write(page); err != nil {
			return fmt.Errorf("keep a sample of it: %w", err)
		}
		c.options.Progress.Report(progress.Step{
			Doing: "reading a sample", Name: c.block.Name, Unit: "row", Done: int64(s.Entries), Total: max(total, int64(s.Entries)),
		})
		if !s.Whole {
			break
		}
	}
	s.Rows, s.centroids = w.size, sums.Entries()
	return w.write(s.centroids)
}

// add counts an entry, and leaves of its vector the direction.
func (s *sample) add(e *sdk.Entry, bytes int64) {
	s.Entries++
	s.Bytes += bytes
	if isBlank(e.Text) {
		s.Textless++
	} else if len(e.Hash) == 0 { // twins are kept out of each other's evidence
		e.Hash = source.Row{Text: e.Text, Label: e.Label}.Hash()
	}
	if len(e.Vector) != s.Dimension || !hasDirection(e.Vector) {
		s.Pointless++
		e.Vector = make([]float32, s.Dimension) // which changes no centroid
		return
	}
	norm := math.Sqrt(centroid.Dot(e.Vector, e.Vector))
	s.Norms.add(norm, s.Entries-s.Pointless)
	for i, x := range e.Vector {
		e.Vector[i] = float32(float64(x) / norm)
	}
}

func sizeOf(e sdk.Entry) int64 {
	var meta []byte
	if len(e.Meta) > 0 {
		meta, _ = json.Marshal(e.Meta) // what cannot be written is refused when it is
	}
	return int64(len(e.ID) + len(e.Label) + len(e.Text) + len(e.Context) + len(meta) + 4*len(e.Vector))
}

// hasDirection reports whether a vector is neither missing nor all zero, and all of it finite.
func hasDirection(v []float32) bool {
	square := centroid.Dot(v, v)
	return square > 0 && !math.IsInf(square, 0) // NaN is neither
}
