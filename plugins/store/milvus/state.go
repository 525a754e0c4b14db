package milvus

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// record is what a commit leaves behind: the one row whose replacement is the
// commit.
type record struct {
	Version int   `json:"version"` // schemaVersion
	Commit  int64 `json:"commit"`  // number; rises, with gaps
	Next    int64 `json:"next"`    // sequence number
	Floor   int64 `json:"floor"`   // rows with lower sequence numbers are dead
	Entries int   `json:"entries"`
	Words   int64 `json:"words"` // of all entries together
	// The average lengths that the words of the rows are weighed with.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`

	Note       blob   `json:"note"`
	Statistics []blob `json:"statistics"` // later ones replace what earlier ones say
	Dead       []blob `json:"dead"`
	Time       int64  `json:"time"` // of the commit, in seconds since 1970, by the writer's clock
}

// average is the average length of a text; 1 where there are no words.
func (r *record) average() float64 {
	if r.Entries == 0 || r.Words == 0 {
		return 1
	}
	return float64(r.Words) / float64(r.Entries)
}

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

// state is what is known of the last commit. It is never changed.
type state struct {
	record record
	note   []byte
	df     map[uint32]uint32  // entries that have a word, by the word's number
	dead   map[int64]struct{} // sequence numbers

	shape
	seen time.Time // when it was found to be the last; set anew in copies
}

// shape is what does not change while a collection is open.
type shape struct {
	schema    sdk.Schema
	analyzer  *analyze.Analyzer // nil: no lexical side
	indexType string            // of the vectors; empty: not known
}

// visible is the expression for the rows of the state, dead ones included.
func (s *state) visible() string {
	return between(s.record.Floor, s.record.Next)
}

// between is the expression for the rows with sequence numbers from a first one
// on and below a last one.
func between(from, to int64) string {
	e := fmt.Sprintf("%s < %d", fieldSequence, to)
	if from > 0 {
		e += fmt.Sprintf(" and %s >= %d", fieldSequence, from)
	}
	return e
}

// readState reads the last commit. What old, the state known before, has in
// common with it is not read again. A collection without a record is empty.
func (c *collection) readState(ctx context.Context, has shape, old *state) (*state, error) {
	now := time.Now()
	r, err := c.readRecord(ctx)
	if err != nil {
		return nil, err
	}
	s := &state{record: r, seen: now, shape: has}
	if old != nil && old.record.Commit == s.record.Commit {
		same := *old
		same.seen, same.shape = now, has
		return &same, nil
	}
	return s, c.readBlobs(ctx, s, old)
}

// readRecord reads the record; an empty one where nothing was committed yet.
func (c *collection) readRecord(ctx context.Context) (record, error) {
	var r record
	texts, err := c.special(ctx, []string{keyRecord})
	if err != nil {
		return r, err
	}
	if text, ok := texts[keyRecord]; ok {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return r, fmt.Errorf("collection %q: its record is not readable: %w", c.name, err)
		}
	}
	if r.Version > schemaVersion {
		return r, sdk.Invalid(fmt.Errorf("collection %q was written by a newer racflow: use that", c.name))
	}
	return r, nil
}

// readNote reads the last commit without the statistics that a search needs.
func (c *collection) readNote(ctx context.Context) (record, []byte, error) {
	for try := 1; ; try++ {
		r, err := c.readRecord(ctx)
		var note []byte
		if err == nil {
			note, err = c.readBlob(ctx, kindNote, r.Note)
		}
		if err == nil || try == 5 || sdk.CodeOf(err) != sdk.CodeTransient {
			return r, note, err
		}
	}
}

// readBlobs reads what the record refers to.
func (c *collection) readBlobs(ctx context.Context, s, old *state) error {
	var err error
	if s.note, err = c.readBlob(ctx, kindNote, s.record.Note); err != nil {
		return err
	}
	unread := s.record.Statistics
	s.df = map[uint32]uint32{}
	if old != nil {
		if n := len(old.record.Statistics); n <= len(unread) && slices.Equal(old.record.Statistics, unread[:n]) {
			unread = unread[n:]
			s.df = maps.Clone(old.df)
		}
	}
	for _, b := range unread {
		content, err := c.readBlob(ctx, kindTerms, b)
		if err == nil {
			err = readTerms(content, s.df)
		}
		if err != nil {
			return err
		}
	}
	s.dead = map[int64]struct{}{}
	for _, b := range s.record.Dead {
		content, err := c.readBlob(ctx, kindDead, b)
		if err == nil {
			err = readDead(content, s.dead)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
