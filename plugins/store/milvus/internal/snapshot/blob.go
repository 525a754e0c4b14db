package snapshot

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/sdk"
)

// Blob is something that may be too large for one row.
type Blob struct {
	Commit int64 `json:"commit"` // that wrote it
	Parts  int   `json:"parts"`
	Items  int   `json:"items,omitempty"`
}

// The kinds of blobs.
const (
	KindNote       = "note"
	KindStatistics = "statistics"
	KindDead       = "dead"
)

// partBytes is what fits into one row as base64.
const partBytes = 45000

// Keys are the keys of the system rows that hold the blob.
func (b Blob) Keys(kind string) []string {
	keys := make([]string, b.Parts)
	for i := range keys {
		keys[i] = row.SystemKey(fmt.Sprintf("%s-%d-%d", kind, b.Commit, i))
	}
	return keys
}

func readBlob(ctx context.Context, t *table.Table, kind string, b Blob) ([]byte, error) {
	var content []byte
	for keys := range slices.Chunk(b.Keys(kind), 64) {
		texts, err := t.System(ctx, keys...)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			part, err := base64.StdEncoding.DecodeString(texts[key])
			if err != nil || texts[key] == "" {
				// A newer commit may have removed it meanwhile.
				return nil, sdk.Transient(fmt.Errorf("collection %q: row %s is missing or damaged", t.Collection, key), 0)
			}
			content = append(content, part...)
		}
	}
	return content, nil
}

// NewBlob cuts a blob of a commit into system rows.
func NewBlob(kind string, commit int64, content []byte) (Blob, []row.Row) {
	parts := slices.Collect(slices.Chunk(content, partBytes))
	b := Blob{Commit: commit, Parts: len(parts)}
	var rows []row.Row
	for i, key := range b.Keys(kind) {
		rows = append(rows, row.System(key, base64.StdEncoding.EncodeToString(parts[i])))
	}
	return b, rows
}

// Encode writes the content of a blob that is not a note: a map[uint32]uint32 of
// words and how many entries have each, or a []int64 of dead rows.
func Encode(content any) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(content); err != nil {
		panic(err) // both types always encode
	}
	return b.Bytes()
}

func decode(b []byte, content any) error {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(content); err != nil {
		return fmt.Errorf("the statistics of the collection are damaged: build it anew under another prefix: %w", err)
	}
	return nil
}
