package units

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
)

// HashBytes is the length of the hash of a unit's content.
const HashBytes = 16

func readRows(_ context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
	s := &Source{places: map[string]InvalidRow{}, load: loadHeld}
	again := false
	if block.Chunk != nil {
		if source.Regular(block.Source.Path) {
			again, s.load = true, loadRows(block.Source)
		}
	}
	var err error
	s.Digest, err = eachRow(block.Source, stdin, s.reject, func(u Unit, at InvalidRow) error {
		s.places[u.ID] = at
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

// loadRows reads the file again.
func loadRows(s pipeline.Source) loader {
	return func(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
		ids := make(map[string]bool, len(wanted))
		for _, u := range wanted {
			ids[u.ID] = true
		}
		_, err := eachRow(s, nil, func(InvalidRow) {}, func(u Unit, _ InvalidRow) error {
			if err := ctx.Err(); err != nil || !ids[u.ID] {
				return err
			}
			return f(u, nil)
		})
		return err
	}
}

// eachRow calls f with each usable row and its place, and reject with the others. It
// returns the digest of the source.
func eachRow(s pipeline.Source, stdin io.Reader, reject func(InvalidRow), f func(Unit, InvalidRow) error) (digest string, err error) {
	r, err := s.Open(stdin)
	if err != nil {
		return "", err
	}
	defer r.Close()
	lines := map[string]int{} // id -> line
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
		if first := lines[row.ID]; row.Err == nil && row.ID != "" && first != 0 {
			other, line := r.Place(first)
			if other != "" && other != file {
				other = " of " + other
			} else {
				other = ""
			}
			row.Err = fmt.Errorf("its id %q stands on line %d%s already; ids must be unique", row.ID, line, other)
		}
		if row.Err != nil {
			at.Err = row.Err
			reject(at)
			continue
		}
		u := Unit{ID: row.ID, Text: row.Text, Label: row.Label, Context: row.Context, Meta: row.Meta, Hash: contentHash(row)}
		if u.ID == "" {
			u.ID = contentID(u.Hash, lines)
		}
		lines[u.ID] = row.Line
		if err := f(u, at); err != nil {
			return "", err
		}
	}
}

// named says of an error what was read, unless it says that itself.
func named(path string, err error) error {
	if file := new(source.FileError); errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// contentID names a row that has no id after its content, so that adding or
// removing rows elsewhere does not rename it. Equal rows are counted.
func contentID(hash []byte, taken map[string]int) string {
	id := hex.EncodeToString(hash[:8])
	for n := 2; taken[id] != 0; n++ {
		id = hex.EncodeToString(hash[:8]) + "-" + strconv.Itoa(n)
	}
	return id
}

func contentHash(row source.Row) []byte {
	parts := []any{row.Text, row.Label, row.Meta}
	if row.Context != "" { // entries without one keep the hash that they always had
		parts = append(parts, row.Context)
	}
	content, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	sum := sha256.Sum256(content)
	return sum[:HashBytes]
}
