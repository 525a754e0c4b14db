package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// This file defines a row on the server: its fields and keys. It converts entries to rows, and data from a server
// back to entries. It makes no calls.

// Row is one row in the form in which it is written.
type Row struct {
	Key   string
	Entry sdk.Entry // the vector has norm 1, or is zero
	Meta  []byte    // of the entry, encoded by encodeMeta
	Words string
}

// CheckRows returns the entries that Milvus accepts as rows, and an error for each that is too long for Milvus. If an
// entry is invalid, it refuses all entries, since some servers would accept such an entry or a part of it.
func (t *Table) CheckRows(entries []sdk.Entry) ([]Row, sdk.RowErrors, error) {
	rows := make([]Row, 0, len(entries))
	long := sdk.RowErrors{}
	for i, e := range entries {
		meta, err := encodeMeta(e.Meta)
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
		r := Row{Key: RowKey(e.ID), Entry: e, Meta: meta}
		if t.Analyzer != nil {
			r.Words = t.Words(e.Context, e.Text)
		}
		if err := r.tooLong(); err != nil {
			long[i] = sdk.Invalid(err)
			continue
		}
		rows = append(rows, r)
	}
	return rows, long, nil
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
		if part.bytes > maxBytes {
			return fmt.Errorf("the %s of entry %.40q has %d bytes and Milvus takes %d: %s", part.name, e.ID, part.bytes, maxBytes, part.advice)
		}
	}
	return nil
}

// UnitVector returns the vector with norm 1. A vector that has norm 1 already, as embedders return it, stays
// unchanged. A zero vector stays zero.
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

var plainWord = regexp.MustCompile(`^([a-z0-9]+|\p{Lo})$`)

// longWord is the length up to which a word is written unchanged: servers skip longer ones.
const longWord = 32

// Words returns the words of texts, for a server that splits them at blanks. A word that the server might split or
// skip is written as a hash. If there are more words than Milvus accepts in a string, only the first ones are
// returned.
func (t *Table) Words(texts ...string) string {
	var words []string
	for _, text := range texts {
		words = t.Analyzer.Append(words, text)
	}
	for i, word := range words {
		if len(word) > longWord || !plainWord.MatchString(word) {
			sum := sha256.Sum256([]byte(word))
			words[i] = "x" + hex.EncodeToString(sum[:5])
		}
	}
	all := strings.Join(words, " ")
	if len(all) > maxBytes {
		all = all[:max(0, strings.LastIndexByte(all[:maxBytes+1], ' '))]
	}
	return all
}

// Finite reports whether a vector contains neither NaN nor an infinity.
func Finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 })
}

// The fields of a row.
const (
	FieldKey     = "key" // for an entry, a hash of its id
	FieldID      = "id"
	FieldLabel   = "label"
	FieldContext = "context"
	FieldText    = "text"
	FieldMeta    = "meta"
	FieldHash    = "hash"   // in hexadecimal
	FieldVector  = "vector" // of norm 1, or zero
	FieldWords   = "words"  // of the context and the text, by racflow's analyzer
	FieldBM25    = "bm25"   // the output of the server's BM25 function
)

// maxBytes is the most bytes that Milvus accepts in a string or in JSON.
const maxBytes = 65535

// RowKey returns the key of an entry's row. It is a hash, since ids may have characters that no expression can
// contain.
func RowKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// Note returns a row that holds a text and is no entry.
func Note(key, text string) Row {
	return Row{Key: key, Entry: sdk.Entry{Text: text}, Meta: []byte("{}")}
}

// Size returns about how many bytes a row takes in a message.
func (r *Row) Size() int {
	e := &r.Entry
	return 128 + len(e.ID) + len(e.Label) + len(e.Context) + len(e.Text) + len(r.Words) + len(r.Meta) + 4*len(e.Vector)
}

// FieldWidth is the dimension of the vectors on the server. The server requires at least two dimensions, and a vector
// in every row.
func FieldWidth(dimension int) int { return max(dimension, 2) }

// Columns converts rows into the columns that are sent to the server.
func Columns(rows []Row, s sdk.Schema) []*schemapb.FieldData {
	text := func(field string, of func(Row) string) entity.Column {
		return entity.NewColumnVarChar(field, each(rows, of))
	}
	columns := []entity.Column{
		text(FieldKey, func(r Row) string { return r.Key }),
		text(FieldID, func(r Row) string { return r.Entry.ID }),
		text(FieldLabel, func(r Row) string { return r.Entry.Label }),
		text(FieldContext, func(r Row) string { return r.Entry.Context }),
		text(FieldText, func(r Row) string { return r.Entry.Text }),
		entity.NewColumnJSONBytes(FieldMeta, each(rows, func(r Row) []byte { return r.Meta })),
		text(FieldHash, func(r Row) string { return hex.EncodeToString(r.Entry.Hash) }),
		entity.NewColumnFloatVector(FieldVector, FieldWidth(s.Dimension), each(rows, func(r Row) []float32 {
			if len(r.Entry.Vector) == FieldWidth(s.Dimension) {
				return r.Entry.Vector
			}
			return append(slices.Clone(r.Entry.Vector), make([]float32, FieldWidth(s.Dimension)-len(r.Entry.Vector))...)
		})),
	}
	if s.Analyzer != "" {
		columns = append(columns, text(FieldWords, func(r Row) string { return r.Words }))
	}
	return each(columns, entity.Column.FieldData)
}

// encodeMeta encodes metadata as JSON in which every number has a point or an exponent, because servers treat whole
// numbers differently.
func encodeMeta(m sdk.Meta) ([]byte, error) {
	values := make(map[string]any, len(m))
	for key, value := range m {
		switch v := value.(type) {
		case string:
			if !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %q that is not UTF-8", key)
			}
			values[key] = v
		case bool:
			values[key] = v
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("metadata %q of %v, which Milvus cannot keep", key, v)
			}
			values[key] = json.RawMessage(floatText(v))
		default:
			return nil, fmt.Errorf("metadata %q that is neither string, float64 nor bool", key)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(values); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// floatText formats a number so that servers do not read it as a whole number.
func floatText(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
