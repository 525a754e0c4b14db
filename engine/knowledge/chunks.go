package knowledge

import (
	"bytes"
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

// countDocuments says how many documents the entries are made of.
func (b *builder) countDocuments() {
	if b.chunker != nil || b.block.Source.Documents != nil {
		b.Report.Documents = len(b.rows.units) - len(b.unusable)
	}
}
