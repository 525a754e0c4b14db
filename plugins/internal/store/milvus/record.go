package milvus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// This file is what is kept of a collection beside its entries. It stands in a table of its own, the books, which all
// collections of a prefix share: among entries, such rows would count as texts without words.
//
//	HASH-record-7     the last commit: how many entries there are, and which rows hold the note
//	HASH-note-ID-0    the note of the engine
//	HASH-claim-ID     who writes, until when
//
// HASH is one of the collection's name. A record is never changed: a commit adds one with the next number, and
// the commit after that removes it.

// book is what the books say of one collection.
type book struct {
	*table.Table
	collection string
}

// key is that of a row, or what keys of a kind begin with.
func (b book) key(kind, rest string) string {
	return table.RowKey(b.collection) + "-" + kind + "-" + rest
}

// keep removes all rows but some.
func (b book) keep(ctx context.Context, used ...string) error {
	texts, err := b.Notes(ctx, table.RowKey(b.collection)+"-")
	unused := slices.DeleteFunc(slices.Collect(maps.Keys(texts)), func(key string) bool { return slices.Contains(used, key) })
	for part := range slices.Chunk(unused, table.LookUp) {
		err = errors.Join(err, b.Remove(ctx, table.Keys(part)))
	}
	return err
}

// record is what one row says of a commit.
type record struct {
	Number int64 `json:"number"` // rising
	// ID is random. A collection that was dropped and made again counts from the beginning.
	ID      string `json:"id"`
	Note    string `json:"note"`  // ID of the commit that wrote the note; empty: there is none
	Parts   int    `json:"parts"` // rows that the note takes
	Entries int    `json:"entries"`
	// Changing says that rows are written. If no writer is at work, one was cut off: entries and note are those of
	// before.
	Changing bool `json:"changing,omitempty"`
}

// keys are those of the rows that the commit consists of.
func (r *record) keys(b book) []string {
	keys := []string{b.key("record", fmt.Sprintf("%019d", r.Number))}
	for i := range r.Parts {
		keys = append(keys, b.key("note", fmt.Sprintf("%s-%d", r.Note, i)))
	}
	return keys
}

// readRecord reads the last record; an empty one where nothing was committed.
func (b book) readRecord(ctx context.Context) (last record, err error) {
	texts, err := b.Notes(ctx, b.key("record", ""))
	for key, text := range texts {
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return last, b.damaged(key, err)
		}
		if r.Number > last.Number {
			last = r
		}
	}
	return last, err
}

func (b book) damaged(key string, err error) error {
	return fmt.Errorf("collection %q: row %s is damaged: build it anew under another prefix: %w", b.collection, key, err)
}

// renew makes it another record, which comes behind.
func (r *record) renew() { r.Number, r.ID = r.Number+1, fmt.Sprintf("%016x", rand.Uint64()) }

// write adds the record to the book.
func (r *record) write(ctx context.Context, b book) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return b.Upsert(ctx, []table.Row{table.Note(r.keys(b)[0], string(text))})
}

// partBytes is what of a note fits into one row as base64.
const partBytes = 45000

// writeNote writes the note of a commit, and sets where the record says where it is.
func (r *record) writeNote(ctx context.Context, b book, note []byte) error {
	parts := slices.Collect(slices.Chunk(note, partBytes))
	r.Note, r.Parts = r.ID, len(parts)
	var rows []table.Row
	for i, key := range r.keys(b)[1:] {
		rows = append(rows, table.Note(key, base64.StdEncoding.EncodeToString(parts[i])))
	}
	for some := range slices.Chunk(rows, 64) { // they are large
		if err := b.Upsert(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// readNote reads the note that a record names.
func (r *record) readNote(ctx context.Context, b book) (note []byte, err error) {
	if r.Parts == 0 {
		return nil, nil
	}
	texts, err := b.Notes(ctx, b.key("note", r.Note+"-"))
	if err != nil {
		return nil, err
	}
	for _, key := range r.keys(b)[1:] {
		part, err := base64.StdEncoding.DecodeString(texts[key])
		if err != nil || len(part) == 0 { // later commits may have removed it meanwhile
			return nil, sdk.Transient(fmt.Errorf("collection %q: row %s is missing or damaged", b.collection, key), 0)
		}
		note = append(note, part...)
	}
	return note, nil
}

// known is what this process knows of a collection. It is never changed.
type known struct {
	*table.Table
	reads  *entries.Collection
	record record
	note   []byte
	empty  bool // it has no rows
}

// readLast reads the last commit and its note.
func (b book) readLast(ctx context.Context) (r record, note []byte, err error) {
	if b.Table == nil {
		return r, nil, nil
	}
	const times = 3 // commits may come in between
	for range times {
		if r, err = b.readRecord(ctx); err != nil {
			return r, nil, err
		}
		if note, err = r.readNote(ctx, b); sdk.CodeOf(err) != sdk.CodeTransient {
			break
		}
	}
	return r, note, err
}
