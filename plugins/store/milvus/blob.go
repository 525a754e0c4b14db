package milvus

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// blob is something that may be too large for one row.
type blob struct {
	Commit int64 `json:"commit"` // that wrote it
	Parts  int   `json:"parts"`
	Items  int   `json:"items,omitempty"`
}

// The kinds of blobs, and the keys of other rows that are no entries. A key of
// an entry begins with a digit or a small letter.
const (
	kindNote  = "note"
	kindTerms = "terms"
	kindDead  = "dead"
	keyRecord = "~record"
	keyLease  = "~lease"
)

// partBytes is what fits into one row as base64.
const partBytes = 45000

func (b blob) keys(kind string) []string {
	keys := make([]string, b.Parts)
	for i := range keys {
		keys[i] = fmt.Sprintf("~%s-%d-%d", kind, b.Commit, i)
	}
	return keys
}

func (c *collection) readBlob(ctx context.Context, kind string, b blob) ([]byte, error) {
	var content []byte
	for keys := range slices.Chunk(b.keys(kind), 64) {
		texts, err := c.special(ctx, keys)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			part, err := base64.StdEncoding.DecodeString(texts[key])
			if err != nil || texts[key] == "" {
				// A newer commit may have taken it away meanwhile.
				return nil, sdk.Transient(fmt.Errorf("collection %q: row %s is missing or damaged", c.name, key), 0)
			}
			content = append(content, part...)
		}
	}
	return content, nil
}

// blobRows cuts a blob into rows.
func blobRows(kind string, commit int64, content []byte) (blob, []row) {
	b := blob{Commit: commit, Parts: (len(content) + partBytes - 1) / partBytes}
	var rows []row
	for i, key := range b.keys(kind) {
		part := content[i*partBytes : min((i+1)*partBytes, len(content))]
		rows = append(rows, specialRow(key, base64.StdEncoding.EncodeToString(part)))
	}
	return b, rows
}

// appendTerms writes how many entries have a word, for some words: the
// distance to the word before, and the number.
func appendTerms(b []byte, df map[uint32]uint32) []byte {
	previous := uint32(0)
	for _, word := range slices.Sorted(maps.Keys(df)) {
		b = binary.AppendUvarint(b, uint64(word-previous))
		b = binary.AppendUvarint(b, uint64(df[word]))
		previous = word
	}
	return b
}

var errDamaged = errors.New("the statistics of the collection are damaged: build it anew under another prefix")

// readTerms reads what appendTerms wrote into df. A word that no entry has any
// more is taken out.
func readTerms(b []byte, df map[uint32]uint32) error {
	word := uint64(0)
	for len(b) > 0 {
		gap, n := binary.Uvarint(b)
		if n <= 0 {
			return errDamaged
		}
		number, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return errDamaged
		}
		b = b[n+m:]
		if word += gap; number == 0 {
			delete(df, uint32(word))
			continue
		}
		df[uint32(word)] = uint32(number)
	}
	return nil
}

// appendDead writes sequence numbers as distances.
func appendDead(b []byte, dead []int64) []byte {
	previous := int64(0)
	for _, n := range slices.Sorted(slices.Values(dead)) {
		b = binary.AppendUvarint(b, uint64(n-previous))
		previous = n
	}
	return b
}

func readDead(b []byte, dead map[int64]struct{}) error {
	at := int64(0)
	for len(b) > 0 {
		gap, n := binary.Uvarint(b)
		if n <= 0 {
			return errDamaged
		}
		b = b[n:]
		at += int64(gap)
		dead[at] = struct{}{}
	}
	return nil
}
