package attached

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// sample describes a sample; its rows are in a file.
type sample struct {
	Layout    int                 `json:"layout"`
	ID        string              `json:"id"` // ID of the collection
	Dimension int                 `json:"dimension"`
	Fields    []sdk.AttachedField `json:"fields"`
	Count     int                 `json:"count"` // entries of the collection, as the server counted them then
	Read      time.Time           `json:"read"`

	Entries   int    `json:"entries"`             // number of entries in the sample
	Bytes     int64  `json:"bytes"`               // as maxBytes counts them
	Whole     bool   `json:"whole"`               // the sample has all entries
	Textless  int    `json:"textless,omitempty"`  // entries without a text
	Pointless int    `json:"pointless,omitempty"` // entries whose vector has no direction
	Norms     norms  `json:"norms"`               // of vectors with a direction
	Rows      int64  `json:"rows"`                // bytes of the entries in the file; the centroids follow
	Size      int64  `json:"size"`                // bytes of the file
	Digest    string `json:"digest"`              // of the file

	file      *os.File    // the runtime closes it with the sample
	centroids []sdk.Entry // of the labels, sorted by label
}

// read reads a sample from the collection and stores it.
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
		_ = os.Remove(file.Name()) // fails after keep has renamed it
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

// fill reads entries until the collection or the limits of a sample end, and makes the centroids of
// their labels.
func (c *Collection) fill(ctx context.Context, s *sample, w *rowsWriter) error {
	total := int64(min(c.bounds.entries, c.Attached.Entries))
	sums := generation.LabelSums{}
	s.Whole = true
	for page, err := range generation.ScanPages(ctx, c.Store, c.Name, sdk.Scan{Texts: true, Vectors: true}) {
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

// add counts an entry, and scales its vector to length 1.
func (s *sample) add(e *sdk.Entry, bytes int64) {
	s.Entries++
	s.Bytes += bytes
	if isBlank(e.Text) {
		s.Textless++
	} else if len(e.Hash) == 0 { // duplicates, by hash, do not confirm each other
		e.Hash = source.Row{Text: e.Text, Label: e.Label}.Hash()
	}
	if len(e.Vector) != s.Dimension || !hasDirection(e.Vector) {
		s.Pointless++
		e.Vector = make([]float32, s.Dimension) // zero: changes no centroid
		return
	}
	norm := math.Sqrt(generation.Dot(e.Vector, e.Vector))
	s.Norms.add(norm, s.Entries-s.Pointless)
	for i, x := range e.Vector {
		e.Vector[i] = float32(float64(x) / norm)
	}
}

func sizeOf(e sdk.Entry) int64 {
	var meta []byte
	if len(e.Meta) > 0 {
		meta, _ = json.Marshal(e.Meta) // invalid metadata fails when it is written
	}
	return int64(len(e.ID) + len(e.Label) + len(e.Text) + len(e.Context) + len(meta) + 4*len(e.Vector))
}

// hasDirection reports whether a vector is present, finite and not zero.
func hasDirection(v []float32) bool {
	square := generation.Dot(v, v)
	return square > 0 && !math.IsInf(square, 0) // false for NaN, too
}

// A file of rows is a sequence of pages of entries. Each page is a message as processes exchange it, preceded by
// its size.

// rowsWriter writes a file of rows.
type rowsWriter struct {
	file *os.File
	to   *bufio.Writer
	hash hash.Hash
	size int64
}

func newRowsWriter(f *os.File) *rowsWriter {
	w := &rowsWriter{file: f, hash: sha256.New()}
	w.to = bufio.NewWriterSize(io.MultiWriter(f, w.hash), 1<<20)
	return w
}

func (w *rowsWriter) write(page []sdk.Entry) error {
	rows, err := wire.EncodeEntries(page)
	if err != nil {
		return err
	}
	n, err := protodelim.MarshalTo(w.to, rows)
	w.size += int64(n)
	return err
}

// end flushes the file and returns its digest.
func (w *rowsWriter) end() (digest string, err error) {
	if err := w.to.Flush(); err != nil {
		return "", err
	}
	return hex.EncodeToString(w.hash.Sum(nil)), nil
}

// digestOf returns the digest of a file of rows.
func digestOf(f io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readPages yields the pages of a file of rows, from an offset on. It ends after an error.
func readPages(f io.ReaderAt, from, size int64) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(f, from, size-from), 1<<20)
		for {
			page, err := readPage(r, size)
			if err == io.EOF || !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// readPage reads a page of at most most bytes; io.EOF after the last page.
func readPage(r *bufio.Reader, most int64) ([]sdk.Entry, error) {
	rows := &stagepb.Rows{}
	if err := (protodelim.UnmarshalOptions{MaxSize: most}).UnmarshalFrom(r, rows); err == io.EOF {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	return wire.DecodeEntries(rows, int(rows.GetN()))
}

// The limits of a sample.
const (
	maxEntries = 50_000
	maxBytes   = 512 << 20 // of ids, labels, texts, contexts, metadata and vectors together
)

// layout is the version of a sample's files: raise it when their format changes.
const layout = 3

// moved is the divisor for a fifth: if the number of entries has changed by more, a sample is read again.
const moved = 5

// norms summarizes the lengths of the vectors that have a direction, because a file of rows keeps
// only the directions.
type norms struct{ Least, Most, Mean float64 }

// unit is how far a norm may be from 1. Within this range, a score by any metric differs from the cosine by at
// most 0.005.
const unit = 0.0025

// add counts the norm of the nth vector.
func (n *norms) add(norm float64, nth int) {
	if nth == 1 {
		n.Least = norm
	}
	n.Least, n.Most, n.Mean = min(n.Least, norm), max(n.Most, norm), n.Mean+(norm-n.Mean)/float64(nth)
}

// differ returns the mean norm if some norm is not about 1, else 0.
func (n norms) differ() float64 {
	if n.Least >= 1-unit && n.Most <= 1+unit {
		return 0
	}
	return n.Mean
}

// fits reports whether the sample still represents the collection.
func (s *sample) fits(now sdk.Attached) bool {
	difference := max(now.Entries-s.Count, s.Count-now.Entries)
	return s.Layout == layout && s.ID == now.ID && s.Dimension == now.Dimension && slices.Equal(sampled(s.Fields), sampled(now.Fields)) && moved*difference <= s.Count
}

// sampled returns the fields that a sample depends on, however they were chosen. It omits metadata fields, since
// a store may learn them from the first rows that it sees.
func sampled(fields []sdk.AttachedField) (all []sdk.AttachedField) {
	for _, f := range fields {
		if f.Part != "meta" {
			all = append(all, sdk.AttachedField{Part: f.Part, Field: f.Field})
		}
	}
	return all
}

// pages yields the entries that have the wanted parts, and only those parts.
func (s *sample) pages(want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return selected(readPages(s.file, 0, s.Rows), want)
}

// selected yields the entries of pages that have the wanted parts, and only those parts.
func selected(pages iter.Seq2[[]sdk.Entry, error], want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) {
		for page, err := range pages {
			page = slices.DeleteFunc(page, func(e sdk.Entry) bool {
				return want.Texts && isBlank(e.Text) || want.Vectors && !hasDirection(e.Vector) || len(want.Labels) > 0 && !slices.Contains(want.Labels, e.Label)
			})
			for i := range page {
				e := &page[i]
				if !want.Texts {
					e.Text, e.Context, e.Meta = "", "", nil
				}
				if !want.Vectors {
					e.Vector = nil
				}
			}
			if !yield(page, err) {
				return
			}
		}
	}
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// open opens the file of rows, and checks that the sample describes this file.
func (s *sample) open(path string) (err error) {
	if s.file, err = os.Open(path); err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err == nil && (info.Size() != s.Size || s.Rows > s.Size || s.Rows < 0) {
		err = fmt.Errorf("%s has %d bytes, not %d", path, info.Size(), s.Size)
	}
	var digest string
	if err == nil {
		digest, err = digestOf(s.file, s.Size)
	}
	if err == nil && digest != s.Digest {
		err = fmt.Errorf("%s has another hash than it was written with", path)
	}
	if err == nil {
		err = s.readCentroids()
	}
	if err != nil {
		s.file.Close()
	}
	return err
}

func (s *sample) readCentroids() error {
	for page, err := range readPages(s.file, s.Rows, s.Size) {
		if err != nil {
			return err
		}
		s.centroids = append(s.centroids, page...)
	}
	return nil
}
