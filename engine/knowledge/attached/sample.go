package attached

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

// The bounds of a sample.
const (
	MaxEntries = 50_000
	MaxBytes   = 512 << 20 // of ids, labels, texts, contexts, metadata and vectors together
)

// layout is that of the files of a sample: raise it when they are written in another way.
const layout = 2

// moved is the part of the entries by which their number may differ before a sample is read
// again.
const moved = 5

// sample is what is known of a sample beside its rows.
type sample struct {
	Layout    int                 `json:"layout"`
	ID        string              `json:"id"` // of the collection
	Dimension int                 `json:"dimension"`
	Fields    []sdk.AttachedField `json:"fields"`
	Count     int                 `json:"count"` // entries of the collection, as the server counted them then
	Read      time.Time           `json:"read"`

	Entries   int    `json:"entries"`             // of the sample
	Bytes     int64  `json:"bytes"`               // as MaxBytes counts them
	Whole     bool   `json:"whole"`               // it has every entry that there was
	Textless  int    `json:"textless,omitempty"`  // entries without a text
	Pointless int    `json:"pointless,omitempty"` // entries whose vector has no direction
	Norms     norms  `json:"norms"`               // of the other vectors
	Rows      int64  `json:"rows"`                // bytes of the entries in the file; the centroids follow
	Size      int64  `json:"size"`                // of the file
	Digest    string `json:"digest"`              // of the file

	file      *os.File    // ends with the sample: the runtime closes it
	centroids []sdk.Entry // of the labels, sorted by them
}

// norms are those of the vectors with a direction: a file of rows has the directions alone.
type norms struct{ Least, Most, Mean float64 }

// unit is how far from 1 a norm may be, so that a score by it is a cosine but for 0.005 by every metric.
const unit = 0.0025

// add counts the norm of the nth vector.
func (n *norms) add(norm float64, nth int) {
	if nth == 1 {
		n.Least = norm
	}
	n.Least, n.Most, n.Mean = min(n.Least, norm), max(n.Most, norm), n.Mean+(norm-n.Mean)/float64(nth)
}

// differ is the mean where a norm is not 1, else 0.
func (n norms) differ() float64 {
	if n.Least >= 1-unit && n.Most <= 1+unit {
		return 0
	}
	return n.Mean
}

// fits reports whether the sample may stand for what was found now.
func (s *sample) fits(now sdk.Attached) bool {
	difference := max(now.Entries-s.Count, s.Count-now.Entries)
	return s.Layout == layout && s.ID == now.ID && s.Dimension == now.Dimension && slices.Equal(sampled(s.Fields), sampled(now.Fields)) && moved*difference <= s.Count
}

// sampled are the fields with which a sample changes, whyever they were chosen. Which metadata there are, a
// store may tell from the first rows that it meets.
func sampled(fields []sdk.AttachedField) (all []sdk.AttachedField) {
	for _, f := range fields {
		if f.Part != "meta" {
			all = append(all, sdk.AttachedField{Part: f.Part, Field: f.Field})
		}
	}
	return all
}

// pages yields the entries that have the parts that are wanted, and no other parts.
func (s *sample) pages(want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return selected(readPages(s.file, 0, s.Rows), want)
}

// selected yields the entries of pages that have the parts that are wanted, and no other parts.
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

// open opens the file of rows, and checks that it is the one that the sample describes.
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
