package knowledge

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// hashBytes is the length of the hash of a unit's content.
const hashBytes = 16

// The metadata that every chunk has beside what its document and its chunker
// know.
const (
	metaDocument = "document" // id of the document
	metaStart    = "start"    // first byte of the chunk in the document's text
	metaEnd      = "end"      // the byte after its last
)

// place says how the place of a chunk is told to people, from 1: by what ends a
// line or a page, and the names of the first and the last.
type place struct{ end, first, last string }

// placeOf is empty where a text has no lines that a reader of the file knows.
func placeOf(format any) place {
	switch format {
	case "pdf":
		return place{"\f", "first_page", "last_page"}
	case "html":
		return place{}
	}
	return place{"\n", "first_line", "last_line"}
}

// entriesOf makes the entries of a document that is cut into chunks. Their
// hashes tell how many they are: where one is missing, the document is redone.
func entriesOf(u unit, chunks []sdk.Chunk) []sdk.Entry {
	hash := binary.BigEndian.AppendUint32(bytes.Clone(u.Hash), uint32(len(chunks)))
	entries := make([]sdk.Entry, len(chunks))
	in := placeOf(u.Meta["format"])
	number, counted := 1, 0 // of lines or pages up to a byte
	for i, c := range chunks {
		meta := make(sdk.Meta, len(u.Meta)+len(c.Meta)+5)
		maps.Copy(meta, u.Meta)
		maps.Copy(meta, c.Meta)
		meta[metaDocument], meta[metaStart], meta[metaEnd] = u.ID, float64(c.Start), float64(c.End)
		text := u.Text[c.Start:c.End]
		if in.end != "" {
			number += strings.Count(u.Text[counted:c.Start], in.end)
			counted = c.Start
			meta[in.first] = float64(number)
			meta[in.last] = float64(number + strings.Count(strings.TrimRight(text, "\r\n\f"), in.end))
		}
		entries[i] = sdk.Entry{ID: chunkID(u.ID, i), Text: text, Label: u.Label, Context: u.Context, Meta: meta, Hash: hash}
	}
	return entries
}

// chunkID names a chunk after its document and its number in it, from 0.
func chunkID(document string, number int) string { return document + "#" + strconv.Itoa(number) }

// unitOf returns the unit that an entry belongs to, and the entry's number in it.
func (b *builder) unitOf(id string) (unit string, number int) {
	at := strings.LastIndexByte(id, '#')
	if b.chunker == nil || at < 0 {
		return id, 0
	}
	number, _ = strconv.Atoi(id[at+1:])
	return id[:at], number
}

// idsOf is the inverse of unitOf.
func (b *builder) idsOf(unit string, numbers []int) []string {
	ids := make([]string, len(numbers))
	for i, n := range numbers {
		if ids[i] = unit; b.chunker != nil {
			ids[i] = chunkID(unit, n)
		}
	}
	return ids
}

// stored is what is known of the entries of a unit in the store.
type stored struct {
	label   string
	hash    []byte // of the unit
	count   uint32 // entries that it should have
	numbers []int  // of those that it has
	whole   bool   // all of them are there, made of one content
}

// stored lists the units of the main collection.
func (b *builder) stored(ctx context.Context) (map[string]stored, error) {
	all := map[string]stored{}
	err := scan(ctx, b.store, b.main, sdk.Scan{}, func(e sdk.Entry) {
		id, number := b.unitOf(e.ID)
		hash, count := e.Hash, uint32(1)
		if b.chunker != nil && len(hash) == hashBytes+4 {
			count = binary.BigEndian.Uint32(hash[hashBytes:])
			hash = hash[:hashBytes]
		}
		s, known := all[id]
		if !known {
			s = stored{label: e.Label, hash: hash, count: count, whole: true}
		}
		s.whole = s.whole && s.count == count && bytes.Equal(s.hash, hash)
		s.numbers = append(s.numbers, number)
		all[id] = s
	})
	for id, s := range all {
		s.whole = s.whole && int(s.count) == len(s.numbers)
		all[id] = s
	}
	return all, err
}

// compare counts what a batch changes, and returns the ids of the entries that
// its units no longer have.
func (b *builder) compare(m batch) (surplus []string) {
	for _, u := range m.units {
		var kept, gone []int
		for _, n := range b.old[u.id].numbers {
			if n < u.entries {
				kept = append(kept, n)
			} else {
				gone = append(gone, n)
			}
		}
		delete(b.old, u.id)
		for _, id := range b.idsOf(u.id, kept) {
			b.changed[id] = true
		}
		b.Report.Changed += len(kept)
		b.Report.Added += u.entries - len(kept)
		surplus = append(surplus, b.idsOf(u.id, gone)...)
	}
	return surplus
}

// countDocuments says how many documents the entries are made of.
func (b *builder) countDocuments() {
	if b.chunker != nil || b.block.Source.Documents != nil {
		b.Report.Documents = len(b.rows.units) - len(b.unusable)
	}
}
