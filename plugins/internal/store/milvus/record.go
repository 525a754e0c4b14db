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

// This file manages what is stored about a collection beside its entries. These rows are in a table of their own, the
// books, which all collections with a prefix share: among entries, they would count as texts without words.
//
//	HASH-record-7     the last commit: how many entries there are, and which rows hold the note
//	HASH-note-ID-0    the note of the engine
//	HASH-claim-ID     who writes, until when
//
// HASH is the hash of the collection's name. A record is never changed: a commit adds a record with the next number,
// and the commit after that removes it.

// book holds the rows of one collection in the books.
type book struct {
	*table.Table
	collection string
}

// key returns the key of a row, or the common prefix of keys of a kind.
func (b book) key(kind, rest string) string {
	return table.RowKey(b.collection) + "-" + kind + "-" + rest
}

// keep removes all rows but the used ones.
func (b book) keep(ctx context.Context, used ...string) error {
	texts, err := b.Notes(ctx, table.RowKey(b.collection)+"-")
	unused := slices.DeleteFunc(slices.Collect(maps.Keys(texts)), func(key string) bool { return slices.Contains(used, key) })
	for part := range slices.Chunk(unused, table.LookUp) {
		err = errors.Join(err, b.Remove(ctx, table.Keys(part)))
	}
	return err
}

// record is a row about a commit.
type record struct {
	Number int64 `json:"number"` // always increasing
	// ID is random, since a dropped and recreated collection numbers from the beginning again.
	ID      string `json:"id"`
	Note    string `json:"note"`  // ID of the commit that wrote the note; empty: there is none
	Parts   int    `json:"parts"` // number of rows of the note
	Entries int    `json:"entries"`
	// Changing says that a writer is changing rows. If no writer is at work, one was interrupted; entries and note
	// are of the commit before.
	Changing bool `json:"changing,omitempty"`
}

// keys returns the keys of the rows of the commit.
func (r *record) keys(b book) []string {
	keys := []string{b.key("record", fmt.Sprintf("%019d", r.Number))}
	for i := range r.Parts {
		keys = append(keys, b.key("note", fmt.Sprintf("%s-%d", r.Note, i)))
	}
	return keys
}

// readRecord reads the last record. It returns an empty one if nothing was committed.
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

// renew gives the record the next number and a new ID.
func (r *record) renew() { r.Number, r.ID = r.Number+1, fmt.Sprintf("%016x", rand.Uint64()) }

// write adds the record to the books.
func (r *record) write(ctx context.Context, b book) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return b.Upsert(ctx, []table.Row{table.Note(r.keys(b)[0], string(text))})
}

// partBytes is how much of a note fits into one row as base64.
const partBytes = 45000

// writeNote writes the note of a commit and records where it is.
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

// readNote reads the note of a record.
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
		if err != nil || len(part) == 0 { // later commits may have removed it
			return nil, sdk.Transient(fmt.Errorf("collection %q: row %s is missing or damaged", b.collection, key), 0)
		}
		note = append(note, part...)
	}
	return note, nil
}

// known is what this process knows of a collection. It is immutable.
type known struct {
	*table.Table
	reads  *entries.Collection
	record record
	note   []byte
	empty  bool // without rows
}

// readLast reads the last commit and its note.
func (b book) readLast(ctx context.Context) (r record, note []byte, err error) {
	if b.Table == nil {
		return r, nil, nil
	}
	const times = 3 // a commit may happen in between
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
