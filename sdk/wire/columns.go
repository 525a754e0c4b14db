package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Valid returns s with U+FFFD in the place of bytes that are not UTF-8, which
// protobuf refuses to carry: one such byte would end the whole stream.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// ValidAll returns a copy of all with every string made valid.
func ValidAll(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	valid := make([]string, len(all))
	for i, s := range all {
		valid[i] = Valid(s)
	}
	return valid
}

// column collects one string per row, or nothing where all are empty.
func column[T any](rows []T, field func(*T) string) []string {
	var values []string
	for i := range rows {
		s := field(&rows[i])
		if s == "" {
			continue
		}
		if values == nil {
			values = make([]string, len(rows))
		}
		values[i] = Valid(s)
	}
	return values
}

// at returns a value of a column that may be absent.
func at[T any](column []T, i int) T {
	if len(column) == 0 {
		var none T
		return none
	}
	return column[i]
}

// whole checks that a column has a value per row.
func whole(name string, length, rows int) error {
	if length != rows {
		return fmt.Errorf("column %s has %d values for %d rows", name, length, rows)
	}
	return nil
}

// optional checks that a column is absent or has a value per row.
func optional(name string, length, rows int) error {
	if length == 0 {
		return nil
	}
	return whole(name, length, rows)
}

// spans checks the offsets of a ragged column: rows + 1 of them, from 0 to
// elements, never falling.
func spans(name string, offsets []uint32, rows, elements int) error {
	if rows == 0 && len(offsets) == 0 && elements == 0 {
		return nil
	}
	if err := whole(name+".offsets", len(offsets), rows+1); err != nil {
		return err
	}
	if err := few(name, elements, MaxElements); err != nil {
		return err
	}
	before := uint32(0)
	for i, o := range offsets {
		if o < before || (i == 0 && o != 0) {
			return fmt.Errorf("column %s: offset %d of row %d is out of order", name, o, i)
		}
		before = o
	}
	if int(before) != elements {
		return fmt.Errorf("column %s has %d elements, but its offsets end at %d", name, elements, before)
	}
	return nil
}

// dictionary numbers the distinct strings of a column.
type dictionary struct {
	names  []string
	index  map[string]uint32
	recent [64]numbered // a label comes again and again: this is faster than the index
}

type numbered struct {
	name   string
	number uint32
	known  bool
}

func (d *dictionary) number(s string) uint32 {
	slot := &d.recent[0]
	if n := len(s); n > 0 {
		slot = &d.recent[(uint(n)+31*uint(s[n-1])+7*uint(s[n/2]))%uint(len(d.recent))]
	}
	if slot.known && slot.name == s {
		return slot.number
	}
	i, ok := d.index[s]
	if !ok {
		if d.index == nil {
			d.index = map[string]uint32{}
		}
		i = uint32(len(d.names))
		d.index[s] = i
		d.names = append(d.names, Valid(s))
	}
	*slot = numbered{s, i, true}
	return i
}

func encodeMeta(m sdk.Meta) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return raw, nil
}

func decodeMeta(raw []byte) (sdk.Meta, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > MaxMeta {
		return nil, fmt.Errorf("metadata of %d bytes; there are at most %d", len(raw), MaxMeta)
	}
	var m sdk.Meta
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("metadata is not a JSON object: %w", err)
	}
	for key, value := range m {
		switch value.(type) {
		case string, float64, bool:
		default:
			return nil, fmt.Errorf("metadata %q is neither a string, a number nor a boolean", key)
		}
	}
	return m, nil
}

// metas encodes a column of metadata, or nothing where all are empty.
func metas[T any](rows []T, field func(*T) sdk.Meta) ([][]byte, error) {
	var values [][]byte
	for i := range rows {
		raw, err := encodeMeta(field(&rows[i]))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		if raw == nil {
			continue
		}
		if values == nil {
			values = make([][]byte, len(rows))
		}
		values[i] = raw
	}
	return values, nil
}
