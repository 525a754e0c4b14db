package knowledge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// rows is what a source holds.
type rows struct {
	entries []sdk.Entry // without vectors; Hash is that of the row alone
	lines   []int       // of the entries
	digest  string
	faults  []Fault // the first maxFaults
	count   int     // of all faults
}

// readSource reads all rows.
func readSource(s pipeline.Source, stdin io.Reader) (*rows, error) {
	all := &rows{}
	r, err := s.Open(stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	lines := map[string]int{} // id -> line
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			all.digest = r.Digest()
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Path, err)
		}
		if row.Fault == nil && row.ID != "" && lines[row.ID] != 0 {
			row.Fault = fmt.Errorf("its id %q stands on line %d already; ids must be unique", row.ID, lines[row.ID])
		}
		if row.Fault != nil {
			if all.count++; len(all.faults) < maxFaults {
				all.faults = append(all.faults, Fault{s.Path, row.Line, row.Fault})
			}
			continue
		}
		e := sdk.Entry{ID: row.ID, Text: row.Text, Label: row.Label, Context: row.Context, Meta: row.Meta, Hash: contentHash(row)}
		if e.ID == "" {
			e.ID = contentID(e.Hash, lines)
		}
		lines[e.ID] = row.Line
		all.entries, all.lines = append(all.entries, e), append(all.lines, row.Line)
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
	return sum[:16]
}
