package knowledge

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
)

// TestBatchesCountMetadata has a document whose metadata alone would exceed a message, since each
// chunk repeats the metadata.
func TestBatchesCountMetadata(t *testing.T) {
	meta := sdk.Meta{"abstract": strings.Repeat("x", generation.BatchBytes/4)}
	entries := make([]sdk.Entry, 9)
	for i := range entries {
		entries[i] = sdk.Entry{Text: "short", Meta: meta}
	}
	var sizes []int
	c := batcher{n: 100, f: func(m batch) error {
		sizes = append(sizes, len(m.entries))
		return nil
	}}
	if err := c.add("a", entries, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.flush(); err != nil {
		t.Fatal(err)
	}
	for i, n := range sizes {
		if n > 4 {
			t.Errorf("batch %d of %d has %d entries", i, len(sizes), n)
		}
	}
	if sum(sizes) != len(entries) {
		t.Errorf("batches of %v entries, of %d", sizes, len(entries))
	}
}

func sum(all []int) (total int) {
	for _, n := range all {
		total += n
	}
	return total
}
