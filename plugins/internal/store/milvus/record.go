package milvus

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// This file is what is known of a collection beside its entries. It stands in system rows:
//
//	~record-7      the last commit: how many entries there are, and which rows hold the state
//	~state-ID-0    the note of the engine and the statistics of the words
//
// A record is never changed: a commit adds one with the next number, and the commit after that removes it.

// record is what one row says of a commit.
type record struct {
	Number int64 `json:"number"` // rising
	// ID is random. A collection that was dropped and made again counts from the beginning.
	ID    string `json:"id"`
	State string `json:"state"` // ID of the commit that wrote the state; empty: there is none
	Parts int    `json:"parts"` // rows that the state takes

	Entries int     `json:"entries"`
	Words   int64   `json:"words"`  // of all entries together
	Lowest  float64 `json:"lowest"` // of the average lengths that the words of the rows are weighed with
	// Changing says that rows are written. If no writer is at work, one was cut off: the numbers are those of before.
	Changing bool `json:"changing,omitempty"`
}

// average is the average length of a text in words; 1 where there are none.
func (r *record) average() float64 {
	if r.Entries == 0 || r.Words == 0 {
		return 1
	}
	return float64(r.Words) / float64(r.Entries)
}

const recordPrefix = table.SystemPrefix + "record-"

func (r *record) key() string { return fmt.Sprintf("%s%019d", recordPrefix, r.Number) }

// keys are those of the rows that the commit consists of.
func (r *record) keys() []string {
	keys := []string{r.key()}
	for i := range r.Parts {
		keys = append(keys, fmt.Sprintf("%sstate-%s-%d", table.SystemPrefix, r.State, i))
	}
	return keys
}

// readRecord reads the last record; an empty one where nothing was committed.
func readRecord(ctx context.Context, t *table.Table) (last record, err error) {
	texts, err := t.System(ctx, recordPrefix)
	for key, text := range texts {
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return last, fmt.Errorf("collection %q: row %s is damaged: build it anew under another prefix: %w", t.Collection, key, err)
		}
		if r.Number > last.Number {
			last = r
		}
	}
	return last, err
}

// renew makes it another record, which comes behind.
func (r *record) renew() { r.Number, r.ID = r.Number+1, fmt.Sprintf("%016x", rand.Uint64()) }

// write adds the record to the table.
func (r *record) write(ctx context.Context, t *table.Table) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return t.Upsert(ctx, []table.Row{table.System(r.key(), string(text))}, table.Formula{})
}

// state is what has no room in the record.
type state struct {
	Note        []byte            // of the engine
	Frequencies map[uint32]uint32 // entries that have a word, by the word's number
}

// partBytes is what of an encoded state fits into one row as base64.
const partBytes = 45000

// write writes the state of a commit, and sets where the record says where it is.
func (s *state) write(ctx context.Context, t *table.Table, r *record) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		panic(err) // bytes and maps of numbers always encode
	}
	parts := slices.Collect(slices.Chunk(b.Bytes(), partBytes))
	r.State, r.Parts = r.ID, len(parts)
	var rows []table.Row
	for i, key := range r.keys()[1:] {
		rows = append(rows, table.System(key, base64.StdEncoding.EncodeToString(parts[i])))
	}
	for some := range slices.Chunk(rows, 64) { // they are large
		if err := t.Upsert(ctx, some, table.Formula{}); err != nil {
			return err
		}
	}
	return nil
}

// read reads the state that a record names.
func (s *state) read(ctx context.Context, t *table.Table, r *record) error {
	s.Frequencies = map[uint32]uint32{}
	if r.State == "" {
		return nil
	}
	texts, err := t.System(ctx, table.SystemPrefix+"state-"+r.State+"-")
	if err != nil {
		return err
	}
	var content []byte
	for _, key := range r.keys()[1:] {
		part, err := base64.StdEncoding.DecodeString(texts[key])
		if err != nil || len(part) == 0 { // later commits may have removed it meanwhile
			return sdk.Transient(fmt.Errorf("collection %q: row %s is missing or damaged", t.Collection, key), 0)
		}
		content = append(content, part...)
	}
	if err := gob.NewDecoder(bytes.NewReader(content)).Decode(s); err != nil {
		return fmt.Errorf("the statistics of collection %q are damaged: build it anew under another prefix: %w", t.Collection, err)
	}
	return nil
}

// known is what this process knows of a collection. It is never changed.
type known struct {
	*table.Table
	state
	record   record
	onServer bool      // else the table is yet to be created
	counted  bool      // after a change that was cut off: the numbers are those of the rows
	seen     time.Time // when it was the last for certain
}

// empty is what is known of a table without entries.
func empty(t *table.Table, onServer bool) *known {
	return &known{Table: t, state: state{Frequencies: map[uint32]uint32{}}, onServer: onServer, seen: time.Now()}
}

// look reads what is known of a table; the state of old, which may be nil, is not read again.
func look(ctx context.Context, t *table.Table, old *known) (k *known, err error) {
	const times = 3 // commits may come in between
	for range times {
		k = empty(t, true)
		if k.record, err = readRecord(ctx, t); err != nil {
			return nil, err
		}
		switch {
		case old == nil || old.counted && old.record.ID != k.record.ID || old.record.State != k.record.State:
		case old.record.ID == k.record.ID:
			k.record, k.counted = old.record, old.counted
			fallthrough
		default:
			k.state = old.state
			return k, nil
		}
		if err = k.state.read(ctx, t, &k.record); sdk.CodeOf(err) != sdk.CodeTransient {
			break
		}
	}
	return k, err
}

// recount makes the numbers anew from all rows: a change of them was cut off.
func (k *known) recount(ctx context.Context) error {
	k.record.Entries, k.record.Words, k.Frequencies = 0, 0, map[uint32]uint32{}
	k.counted = true
	return k.Walk(ctx, table.NewestTable, "", "", []string{table.FieldKey, table.FieldDetails}, func(r table.Found) bool {
		if r.IsEntry() {
			k.count(r.Counts, 1)
		}
		return r.IsEntry()
	})
}

// count counts an entry in or, with sign -1, out.
func (k *known) count(c table.Counts, sign int) {
	k.record.Entries += sign
	k.record.Words += int64(sign * c.Length)
	for _, w := range c.Words {
		k.Frequencies[w.Word] += uint32(sign) // of -1 it wraps around: one less
	}
}

// fresh is how long a reader relies on what it knows of a collection.
const fresh = 2 * time.Second

// view is what this process knows last of a collection. It is safe for concurrent use.
type view struct {
	collection string
	looking    sync.Mutex // held by the reader that looks for a newer commit
	latest     atomic.Pointer[known]
}

// opened is what is known, whether it is new or not.
func (v *view) opened() (*known, error) {
	if k := v.latest.Load(); k != nil {
		return k, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("collection %q is not open", v.collection))
}

// current is what is known, as new as a reader needs it.
func (v *view) current(ctx context.Context) (*known, error) {
	isCurrent := func(k *known) bool { return time.Since(k.seen) < fresh || !k.onServer }
	k, err := v.opened()
	if err != nil || isCurrent(k) {
		return k, err
	}
	v.looking.Lock()
	defer v.looking.Unlock()
	if k, err = v.opened(); err != nil || isCurrent(k) {
		return k, err
	}
	newer, err := look(ctx, k.Table, k)
	if err != nil {
		return nil, err
	}
	v.latest.CompareAndSwap(k, newer) // else this process has committed, opened or dropped it meanwhile
	return v.opened()
}
