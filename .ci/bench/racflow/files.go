package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

const dimension = 384

// lines reads a file of one text a line.
func (b *bench) lines(name string) ([]string, error) {
	raw, err := os.ReadFile(b.path(name))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n"), nil
}

// labelled reads a TSV file of texts and labels below a header.
func (b *bench) labelled(name string) (texts, labels []string, err error) {
	rows, err := b.lines(name)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows[1:] {
		text, label, _ := strings.Cut(row, "\t")
		texts, labels = append(texts, text), append(labels, label)
	}
	return texts, labels, nil
}

// matrix reads a file of little-endian float32 vectors.
func (b *bench) matrix(name string) ([][]float32, error) {
	f, err := os.Open(b.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	flat := make([]float32, info.Size()/4)
	if err := binary.Read(f, binary.LittleEndian, flat); err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(flat, dimension)), nil
}

// collection puts texts into a collection "c" of a store, the number of their
// line as their id, in the way that the engine does.
func (b *bench) collection(store writer, analyzer string, texts, labels []string, vectors [][]float32) error {
	schema := sdk.Schema{Analyzer: analyzer}
	if vectors != nil {
		schema.Dimension = dimension
	}
	if _, err := store.Open(b.ctx, "c", schema); err != nil {
		return err
	}
	entries := make([]sdk.Entry, len(texts))
	for i, text := range texts {
		entries[i] = sdk.Entry{ID: strconv.Itoa(i), Text: text}
		if labels != nil {
			entries[i].Label = labels[i]
		}
		if vectors != nil {
			entries[i].Vector = vectors[i]
		}
	}
	for batch := range slices.Chunk(entries, 1000) {
		if err := store.Put(b.ctx, "c", batch); err != nil {
			return fmt.Errorf("put: %w", err)
		}
	}
	return store.Commit(b.ctx, "c", nil)
}
