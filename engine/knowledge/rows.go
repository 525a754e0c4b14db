package knowledge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// unit is what a source is made of, and what is redone as a whole: a row or a
// document. Hash is that of its content alone. Where a source is read again for
// what has changed, the text and the metadata come with that.
type unit struct {
	sdk.Entry
	line int // in a file of rows
}

// rows is what a source holds.
type rows struct {
	units  []unit
	places map[string]InvalidRow // where units stand, by id, without an error
	digest string
	faults []InvalidRow // the first maxFaults
	count  int          // of all faults
	// load calls f with each of the wanted units, complete, or with why it cannot
	// be used. An error of f ends it.
	load func(ctx context.Context, wanted []unit, f func(unit, error) error) error
}

func (r *rows) fault(f InvalidRow) {
	if r.count++; len(r.faults) < maxFaults {
		r.faults = append(r.faults, f)
	}
}

// readSource reads what a source holds. Of rows that are to be cut into chunks
// only the hashes are kept, unless they can be read only once.
func readSource(ctx context.Context, block *pipeline.Knowledge, stdin io.Reader) (*rows, error) {
	s := block.Source
	if s.Documents != nil {
		return listDocuments(ctx, s)
	}
	all := &rows{places: map[string]InvalidRow{}, load: loadKept}
	again := false
	if block.Chunk != nil {
		if info, err := os.Stat(s.Path); err == nil && info.Mode().IsRegular() {
			again = true
			all.load = loadRows(s)
		}
	}
	var err error
	all.digest, err = eachRow(s, stdin, all.fault, func(u unit) error {
		all.places[u.ID] = InvalidRow{Path: s.Path, Line: u.line}
		if again {
			u.Text, u.Meta, u.Context = "", nil, ""
		}
		all.units = append(all.units, u)
		return nil
	})
	return all, err
}

// loadKept is the load of rows that are kept.
func loadKept(ctx context.Context, wanted []unit, f func(unit, error) error) error {
	for _, u := range wanted {
		if err := cmp.Or(ctx.Err(), f(u, nil)); err != nil {
			return err
		}
	}
	return nil
}

// loadRows returns a load that reads a file again.
func loadRows(s pipeline.Source) func(context.Context, []unit, func(unit, error) error) error {
	return func(ctx context.Context, wanted []unit, f func(unit, error) error) error {
		ids := make(map[string]bool, len(wanted))
		for _, u := range wanted {
			ids[u.ID] = true
		}
		_, err := eachRow(s, nil, func(InvalidRow) {}, func(u unit) error {
			if err := ctx.Err(); err != nil || !ids[u.ID] {
				return err
			}
			return f(u, nil)
		})
		return err
	}
}

// eachRow calls f with each usable row and fault with the others. It returns the
// digest of the source.
func eachRow(s pipeline.Source, stdin io.Reader, fault func(InvalidRow), f func(unit) error) (digest string, err error) {
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
			return "", fmt.Errorf("read %s: %w", s.Path, err)
		}
		if row.Err == nil && row.ID != "" && lines[row.ID] != 0 {
			row.Err = fmt.Errorf("its id %q stands on line %d already; ids must be unique", row.ID, lines[row.ID])
		}
		if row.Err != nil {
			fault(InvalidRow{s.Path, row.Line, row.Err})
			continue
		}
		e := sdk.Entry{ID: row.ID, Text: row.Text, Label: row.Label, Context: row.Context, Meta: row.Meta, Hash: contentHash(row)}
		if e.ID == "" {
			e.ID = contentID(e.Hash, lines)
		}
		lines[e.ID] = row.Line
		if err := f(unit{e, row.Line}); err != nil {
			return "", err
		}
	}
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
	return sum[:hashBytes]
}
