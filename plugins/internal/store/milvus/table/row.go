package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/racflow/racflow/sdk"
)

// This file says what one row on the server is: its fields and keys, how an
// entry becomes a row, and how what a server returns becomes entries again. No row
// of an entry is ever changed: an entry that is put again has another row. It
// makes no calls.

// CheckRows returns the entries that Milvus can take as rows, of which the keys are not set, and an
// error for each that is too long for it. It refuses all for an entry that is wrong: some servers would
// take that, or a part of it, all the same.
func (t *Table) CheckRows(entries []sdk.Entry) ([]Row, sdk.RowErrors, error) {
	rows := make([]Row, 0, len(entries))
	long := sdk.RowErrors{}
	for i, e := range entries {
		meta, err := EncodeMeta(e.Meta)
		switch {
		case e.ID == "":
			err = fmt.Errorf("entry %d of the batch has no id", i)
		case len(e.Vector) != t.Schema.Dimension:
			err = fmt.Errorf("entry %q has a vector of %d dimensions and the collection's have %d", e.ID, len(e.Vector), t.Schema.Dimension)
		case !Finite(e.Vector):
			err = fmt.Errorf("entry %q has NaN or an infinity in its vector", e.ID)
		case err != nil:
			err = fmt.Errorf("entry %q has %w", e.ID, err)
		}
		if err != nil {
			return nil, nil, sdk.Invalid(fmt.Errorf("%w; nothing of the batch was put", err))
		}
		e.Vector = UnitVector(e.Vector)
		r := Row{Entry: e, Meta: meta, Counts: t.counts(e)}
		if err := r.tooLong(); err != nil {
			long[i] = sdk.Invalid(err)
			continue
		}
		rows = append(rows, r)
	}
	return rows, long, nil
}

// counts are those of an entry's words.
func (t *Table) counts(e sdk.Entry) Counts {
	if t.Analyzer == nil {
		return Counts{}
	}
	return CountWords(*t.Analyzer, e.Context, e.Text)
}

func (r *Row) tooLong() error {
	e := &r.Entry
	for _, part := range []struct {
		name   string
		bytes  int
		advice string
	}{
		{"id", len(e.ID), "shorten it"}, {"text", len(e.Text), "split it into several rows"}, {"label", len(e.Label), "shorten it"},
		{"context", len(e.Context), "shorten it"}, {"metadata", len(r.Meta), "keep fewer columns as metadata"}, {"hash", 2 * len(e.Hash), "shorten it"},
	} {
		if part.bytes > MaxBytes {
			return fmt.Errorf("the %s of entry %.40q has %d bytes and Milvus takes %d: %s", part.name, e.ID, part.bytes, MaxBytes, part.advice)
		}
	}
	return nil
}

// UnitVector returns a vector with norm 1; one that has norm 1 already, as those of
// embedders do, unchanged, and one without direction as zeros.
func UnitVector(x []float32) []float32 {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	const tolerance = 1e-6
	if square == 0 || math.Abs(square-1) <= tolerance {
		return x
	}
	norm := math.Sqrt(square)
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(float64(v) / norm)
	}
	return out
}

// Finite reports whether a vector holds neither NaN nor an infinity.
func Finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 })
}

// details writes in base64 what a search wants to know of a row, and what only this package reads:
// the hash and, where a string has room for them, the id, the label, the length of the text and its words. Every
// field costs a server time, when it is written and when it is read.
func (r *Row) details() string {
	b := protowire.AppendBytes(nil, r.Entry.Hash)
	short := len(b)
	length := binary.AppendUvarint(nil, uint64(r.Counts.Length))
	for _, part := range [][]byte{[]byte(r.Entry.ID), []byte(r.Entry.Label), length, r.Counts.Packed} {
		b = protowire.AppendBytes(b, part)
	}
	if base64.RawStdEncoding.EncodedLen(len(b)) > MaxBytes {
		b = b[:short]
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// readDetails sets what details has written.
func (f *Found) readDetails(text string) error {
	b, err := base64.RawStdEncoding.DecodeString(text)
	parts := make([][]byte, 0, 5)
	for err == nil && len(b) > 0 {
		part, n := protowire.ConsumeBytes(b)
		if err = protowire.ParseError(n); err == nil {
			parts, b = append(parts, part), b[n:]
		}
	}
	f.short = len(parts) == 1
	if err != nil || !f.short && (len(parts) != 5 || len(parts[4])%packed != 0) {
		return errors.New("the details of a row are damaged: build the collection anew under another prefix")
	}
	if len(parts[0]) > 0 {
		f.Entry.Hash = bytes.Clone(parts[0])
	}
	if !f.short {
		f.Entry.ID, f.Entry.Label = string(parts[1]), string(parts[2])
		length, _ := binary.Uvarint(parts[3])
		f.Counts = Counts{Length: int(length), Packed: parts[4]}
	}
	return nil
}

// The fields of a row.
const (
	FieldKey      = "key"      // of an entry the sequence number as text; of a system row another one
	FieldSequence = "sequence" // number of the row
	FieldIDHash   = "id_hash"  // for finding a row by its id
	FieldID       = "id"
	FieldLabel    = "label"
	FieldContext  = "context"
	FieldText     = "text" // of a system row: what it says
	FieldMeta     = "meta"
	FieldDetails  = "details" // what no server has to understand, in one string
	FieldVector   = "vector"  // of norm 1, or 0
	FieldWords    = "words"
)

// What is read of rows.
var (
	FieldsScan  = []string{FieldKey, FieldID, FieldLabel, FieldDetails}
	FieldsTexts = []string{FieldText, FieldContext, FieldMeta}
)

// MaxBytes is the most that Milvus takes in a string or in JSON.
const MaxBytes = 65535

// SystemSequence is the sequence number of system rows, which are no entries.
const SystemSequence = int64(math.MaxInt64)

// systemPrefix begins the key of a system row. That of an entry begins with a
// digit or a small letter.
const systemPrefix = "~"

// SystemKey is the key of the system row with a name.
func SystemKey(name string) string { return systemPrefix + name }

// keyDigits is the length of a number in a key: enough for one of 63 bits in
// base 36, so that keys are in the order of the numbers.
const keyDigits = 13

// RowKey is the key of an entry's row.
func RowKey(sequence int64) string {
	text := strconv.FormatInt(sequence, 36)
	return strings.Repeat("0", keyDigits-len(text)) + text
}

func parseKey(key string) (sequence int64, err error) {
	if strings.HasPrefix(key, systemPrefix) {
		return SystemSequence, nil
	}
	return strconv.ParseInt(key, 36, 64)
}

// IDHash is the hash by which an id is found. Two ids of a million share one
// with a probability of 3 in 100 million.
func IDHash(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

// Row is one row as it is written.
type Row struct {
	Key      string
	Sequence int64
	Entry    sdk.Entry // the vector has norm 1, or 0
	Meta     []byte    // of the entry, as EncodeMeta writes it
	Counts   Counts
}

// System is a row that is no entry and has a text.
func System(key, text string) Row {
	return Row{Key: key, Sequence: SystemSequence, Entry: sdk.Entry{Text: text}, Meta: []byte("{}")}
}

// Size is about what a row takes in a message.
func (r *Row) Size() int {
	e := &r.Entry
	words := len(r.Counts.Packed) / packed
	return 128 + len(e.ID) + len(e.Label) + len(e.Context) + len(e.Text) + len(r.Meta) + 4*len(e.Vector) + 14*words
}

// FieldWidth is the dimension of the vectors on the server, which wants at least two
// and a vector in every row.
func FieldWidth(dimension int) int { return max(dimension, 2) }

// Columns makes of rows what the SDK sends. Their words are weighed by a formula.
func Columns(rows []Row, s sdk.Schema, formula Formula) []entity.Column {
	text := func(field string, of func(Row) string) entity.Column {
		return entity.NewColumnVarChar(field, each(rows, of))
	}
	columns := []entity.Column{
		text(FieldKey, func(r Row) string { return r.Key }),
		text(FieldID, func(r Row) string { return r.Entry.ID }),
		entity.NewColumnInt64(FieldSequence, each(rows, func(r Row) int64 { return r.Sequence })),
		entity.NewColumnInt64(FieldIDHash, each(rows, func(r Row) int64 { return IDHash(r.Entry.ID) })),
		text(FieldLabel, func(r Row) string { return r.Entry.Label }),
		text(FieldContext, func(r Row) string { return r.Entry.Context }),
		text(FieldText, func(r Row) string { return r.Entry.Text }),
		entity.NewColumnJSONBytes(FieldMeta, each(rows, func(r Row) []byte { return r.Meta })),
		text(FieldDetails, func(r Row) string {
			if r.Sequence == SystemSequence {
				return ""
			}
			return r.details()
		}),
		entity.NewColumnFloatVector(FieldVector, FieldWidth(s.Dimension), each(rows, func(r Row) []float32 {
			if len(r.Entry.Vector) == FieldWidth(s.Dimension) {
				return r.Entry.Vector
			}
			return append(slices.Clone(r.Entry.Vector), make([]float32, FieldWidth(s.Dimension)-len(r.Entry.Vector))...)
		})),
	}
	if s.Analyzer != "" {
		columns = append(columns, entity.NewColumnSparseVectors(FieldWords, each(rows, func(r Row) entity.SparseEmbedding { return formula.Document(r.Counts) })))
	}
	return columns
}
