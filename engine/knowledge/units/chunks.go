package units

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// The metadata that every chunk has beside what its document and its chunker
// know.
const (
	metaDocument = "document" // id of the document
	metaStart    = "start"    // first byte of the chunk in the document's text
	metaEnd      = "end"      // the byte after its last
	metaHeader   = "header"   // bytes of the entry's text that stand elsewhere in the document's; absent: none
)

// numbering says how people find a chunk, from 1: by what ends a line or a page, and
// the names of the first and the last.
type numbering struct{ end, first, last string }

// numberingOf is empty where a text has no lines that a reader of the file knows.
func numberingOf(format any) numbering {
	switch format {
	case "pdf":
		return numbering{"\f", "first_page", "last_page"}
	case "html", "docx", "pptx", "xlsx", "notebook", "mail":
		return numbering{}
	}
	return numbering{"\n", "first_line", "last_line"}
}

// Entries makes an entry of each chunk: its header and its text, with the place of the text
// alone. From their hashes it shows how many they are:
// where one is missing, the document is redone.
func (d Document) Entries() []sdk.Entry {
	hash := binary.BigEndian.AppendUint32(bytes.Clone(d.Hash), uint32(len(d.Chunks)))
	entries := make([]sdk.Entry, len(d.Chunks))
	by := numberingOf(d.Meta["format"])
	number, counted := 1, 0 // of lines or pages up to a byte
	for i, c := range d.Chunks {
		meta := make(sdk.Meta, len(d.Meta)+len(c.Meta)+6)
		maps.Copy(meta, d.Meta)
		maps.Copy(meta, c.Meta)
		meta[metaDocument], meta[metaStart], meta[metaEnd] = d.ID, float64(c.Start), float64(c.End)
		own := d.Text[c.Start:c.End]
		if n := c.Header.End - c.Header.Start; n > 0 {
			meta[metaHeader] = float64(n)
		}
		if by.end != "" {
			number += strings.Count(d.Text[counted:c.Start], by.end)
			counted = c.Start
			meta[by.first] = float64(number)
			meta[by.last] = float64(number + strings.Count(strings.TrimRight(own, "\r\n\f"), by.end))
		}
		entries[i] = sdk.Entry{ID: chunkID(d.ID, i), Text: c.In(d.Text), Label: d.Label, Context: d.Context, Meta: meta, Hash: hash}
	}
	return entries
}

// chunkID names a chunk after its document and its number in it, from 0.
func chunkID(document string, number int) string { return document + "#" + strconv.Itoa(number) }

// DocumentOf is the id of the document that an entry is a chunk of; its own where it is no
// chunk.
func DocumentOf(e sdk.Entry) string {
	if document, ok := e.Meta[metaDocument].(string); ok {
		return document
	}
	return e.ID
}

// InOrder compares candidates by their documents' ids, and within a document by
// place; a row is a document of its own.
func InOrder(a, b sdk.Candidate) int {
	documentA, startA := placed(a)
	documentB, startB := placed(b)
	return cmp.Or(cmp.Compare(documentA, documentB), cmp.Compare(startA, startB), cmp.Compare(a.ID, b.ID))
}

func placed(c sdk.Candidate) (document string, start float64) {
	document, ok := c.Meta[metaDocument].(string)
	if start, isNumber := c.Meta[metaStart].(float64); ok && isNumber {
		return document, start
	}
	return c.ID, 0
}
