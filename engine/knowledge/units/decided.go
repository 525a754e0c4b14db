package units

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reviewed"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// The metadata that say who has decided about an entry, and when.
const (
	metaReviewer = "reviewer"
	metaReviewed = "reviewed_at"
)

// decided are what people have decided about the rows of a knowledge.
type decided struct {
	path    string
	digest  string
	rows    []reviewed.Row
	changes map[string]reviewed.Row // by the ids of the rows that they replace; those that were not met yet
}

// readDecided reads the decisions in a file; nil: the path is empty.
func readDecided(path string, reject func(InvalidRow)) (*decided, error) {
	if path == "" {
		return nil, nil
	}
	digest, err := digestOfDecisions(path) // of what is read, or of what was before that: then it is read again
	if err != nil {
		return nil, err
	}
	d := &decided{path: path, digest: digest, changes: map[string]reviewed.Row{}}
	var errs []error
	d.rows, errs = reviewed.Read(path)
	for _, err := range errs {
		line := new(reviewed.LineError)
		if !errors.As(err, &line) {
			return nil, err
		}
		reject(InvalidRow{Path: path, Line: line.Line, Err: line.Err})
	}
	for _, r := range d.rows {
		if r.Replaces != "" {
			d.changes[r.Replaces] = r
		}
	}
	return d, nil
}

// revise makes of a unit what was decided about it, and reports whether it stays.
func (d *decided) revise(u *Unit) (stays bool) {
	if d == nil {
		return true
	}
	r, ok := d.changes[u.ID]
	if !ok {
		return true
	}
	delete(d.changes, u.ID)
	if r.Drops() {
		return false
	}
	u.Text, u.Label, u.Meta = r.Text, r.Label, signed(u.Meta, r)
	u.Hash = source.Row{Text: u.Text, Label: u.Label, Meta: u.Meta, Context: u.Context}.Hash()
	return true
}

// rest calls f with the units that were decided beside those of other sources.
func (d *decided) rest(places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) error {
	for _, r := range d.rows {
		at := InvalidRow{Path: d.path, Line: r.Line}
		if _, missed := d.changes[r.Replaces]; r.Replaces != "" {
			if missed && !r.Drops() { // a row that is gone needs not be dropped
				at.Err = fmt.Errorf("it replaces the row %q, which no other source has any more: remove the line or, to keep it as a row of its own, its member replaces", r.Replaces)
				reject(at)
			}
			continue
		}
		if first, ok := places[r.ID]; ok {
			at.Err = repeated(r.ID, first, at)
			reject(at)
			continue
		}
		places[r.ID] = at
		u := Unit{ID: r.ID, Text: r.Text, Label: r.Label, Meta: signed(nil, r)}
		u.Hash = source.Row{Text: u.Text, Label: u.Label, Meta: u.Meta}.Hash()
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

// signed adds to metadata who has decided, and when.
func signed(meta sdk.Meta, r reviewed.Row) sdk.Meta {
	all := make(sdk.Meta, len(meta)+2)
	maps.Copy(all, meta)
	if r.Reviewer != "" {
		all[metaReviewer] = r.Reviewer
	}
	if !r.ReviewedAt.IsZero() {
		all[metaReviewed] = r.ReviewedAt.UTC().Format(time.RFC3339)
	}
	return all
}

// Digest is what Source.Digest is of a knowledge made of rows, without parsing them; empty where
// that is not known before they are read.
func Digest(block *pipeline.Knowledge) (string, error) {
	var all []string
	for _, s := range block.Sources {
		var digest string
		var err error
		if s.Reviewed {
			digest, err = digestOfDecisions(s.Path)
		} else {
			digest, err = source.Digest(s.Path)
		}
		if err != nil {
			return "", &SourceError{s.Range, err}
		}
		if digest == "" {
			return "", nil
		}
		all = append(all, digest)
	}
	return digestOf(all), nil
}

// digestOf is the digest of several sources: of one alone its own.
func digestOf(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:])
}

// none is the digest of a file of decisions that is not there yet.
const none = "none"

func digestOfDecisions(path string) (string, error) {
	digest, err := source.Digest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	return digest, err
}
