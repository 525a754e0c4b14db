package units

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
)

// HashBytes is the length of the hash of a unit's content.
const HashBytes = source.HashBytes

func readRows(_ context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
	s := &Source{places: map[string]InvalidRow{}, load: loadHeld}
	again := false
	if block.Chunk != nil && !block.Stdin() {
		again = true
		for _, one := range block.Sources {
			again = again && (one.Reviewed || source.Regular(one.Path))
		}
	}
	if again {
		s.load = loadRows(block)
	}
	var err error
	s.Digest, err = eachUnit(block, stdin, s.places, s.reject, func(u Unit) error {
		if again {
			u.Text, u.Meta, u.Context = "", nil, ""
		}
		s.Units = append(s.Units, u)
		return nil
	})
	return s, err
}

func loadHeld(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
	for _, u := range wanted {
		if err := cmp.Or(ctx.Err(), f(u, nil)); err != nil {
			return err
		}
	}
	return nil
}

// loadRows reads the files again.
func loadRows(block *pipeline.Knowledge) loader {
	return func(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
		ids := make(map[string]bool, len(wanted))
		for _, u := range wanted {
			ids[u.ID] = true
		}
		_, err := eachUnit(block, nil, map[string]InvalidRow{}, func(InvalidRow) {}, func(u Unit) error {
			if err := ctx.Err(); err != nil || !ids[u.ID] {
				return err
			}
			return f(u, nil)
		})
		return err
	}
}

// eachUnit calls f with each unit of a knowledge made of rows, and reject with the rows that
// cannot be used. It notes the places of the units, by id, and returns the digest of the sources.
// What people have decided changes or drops rows of the others, and comes after them.
func eachUnit(block *pipeline.Knowledge, stdin io.Reader, places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) (digest string, err error) {
	decided, err := readDecided(block.Reviewed(), reject)
	if err != nil {
		return "", &SourceError{block.Sources[len(block.Sources)-1].Range, err}
	}
	var digests []string
	for _, s := range block.Sources {
		if s.Reviewed {
			continue
		}
		digest, err := eachRow(s, stdin, places, reject, func(u Unit) error {
			if !decided.revise(&u) {
				return nil
			}
			return f(u)
		})
		if err != nil {
			return "", &SourceError{s.Range, err}
		}
		digests = append(digests, digest)
	}
	if decided != nil {
		digests = append(digests, decided.digest)
		if err := decided.rest(places, reject, f); err != nil {
			return "", err
		}
	}
	return digestOf(digests), nil
}

// eachRow calls f with each usable row of a source and its place, and reject with the others.
// places are those of the rows before, by id. It returns the digest of the source.
func eachRow(s pipeline.Source, stdin io.Reader, places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) (digest string, err error) {
	r, err := s.Open(stdin)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Digest(), nil
		}
		if err != nil {
			return "", named(s.Path, err)
		}
		file, line := row.Place()
		at := InvalidRow{Path: cmp.Or(file, s.Path), Line: line}
		if first, ok := places[row.ID]; row.Err == nil && row.ID != "" && ok {
			row.Err = repeated(row.ID, first, at)
		}
		if row.Err != nil {
			at.Err = row.Err
			reject(at)
			continue
		}
		u := Unit{Text: row.Text, Label: row.Label, Context: row.Context, Meta: row.Meta, Hash: row.Hash()}
		u.ID = source.EntryID(row, u.Hash, places)
		places[u.ID] = at
		if err := f(u); err != nil {
			return "", err
		}
	}
}

// repeated says that the id of a row is that of another one.
func repeated(id string, first, at InvalidRow) error {
	other := ""
	if first.Path != at.Path {
		other = " of " + first.Path
	}
	return fmt.Errorf("its id %q stands on line %d%s already; ids must be unique", id, first.Line, other)
}

// named says of an error what was read, unless it says that itself.
func named(path string, err error) error {
	if file := new(source.FileError); errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("read %s: %w", path, err)
}
