package milvus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// row is one row on the server, as it is written.
type row struct {
	key      string
	sequence int64
	entry    sdk.Entry // the vector has norm 1, or 0
	meta     []byte
	details  string
	words    entity.SparseEmbedding // nil: no lexical side
}

// keyDigits is the length of a number in a key: enough for one of 63 bits in
// base 36, so that keys are in the order of the numbers.
const keyDigits = 13

func digits(n int64) string {
	text := strconv.FormatInt(n, 36)
	return strings.Repeat("0", keyDigits-len(text)) + text
}

// keyOf is the key of an entry's row. Its place in a scan is the sequence
// number that the entry was put with; that of the row differs where the row was
// put again since.
func keyOf(place, sequence int64) string {
	if place == sequence {
		return digits(place)
	}
	return digits(place) + digits(sequence)
}

func parseKey(key string) (place, sequence int64, err error) {
	if len(key) != keyDigits && len(key) != 2*keyDigits {
		return 0, 0, fmt.Errorf("%q is no key of an entry", key)
	}
	place, err = strconv.ParseInt(key[:keyDigits], 36, 64)
	if sequence = place; err == nil && len(key) > keyDigits {
		sequence, err = strconv.ParseInt(key[keyDigits:], 36, 64)
	}
	return place, sequence, err
}

// slotOf is the hash by which an id is found. Two ids of a million share one
// with a probability of 3 in 100 million.
func slotOf(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

// noEntry is the sequence number of rows that are no entries.
const noEntry = int64(math.MaxInt64)

// specialRow is a row that is no entry.
func specialRow(key, text string) row {
	return row{key: key, sequence: noEntry, entry: sdk.Entry{Text: text}, meta: []byte("{}")}
}

// size is about what a row takes in a message.
func (r *row) size() int {
	n := 128 + len(r.entry.ID) + len(r.entry.Label) + len(r.entry.Context) + len(r.entry.Text) + len(r.meta) + len(r.details) + 4*len(r.entry.Vector)
	if r.words != nil {
		n += 8 * r.words.Len()
	}
	return n
}

// columns makes of rows what the SDK sends.
func columns(rows []row, s sdk.Schema) []entity.Column {
	n := len(rows)
	keys, ids, labels, contexts := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	texts, details := make([]string, n), make([]string, n)
	sequences, slots := make([]int64, n), make([]int64, n)
	metas, vectors, words := make([][]byte, n), make([][]float32, n), make([]entity.SparseEmbedding, n)
	none := sparse([]uint32{noWords}, []float32{1})
	for i, r := range rows {
		e := r.entry
		keys[i], ids[i], labels[i], contexts[i], texts[i] = r.key, e.ID, e.Label, e.Context, e.Text
		sequences[i], slots[i], metas[i], details[i] = r.sequence, slotOf(e.ID), r.meta, r.details
		vectors[i] = e.Vector
		if len(vectors[i]) < width(s.Dimension) {
			vectors[i] = make([]float32, width(s.Dimension))
			copy(vectors[i], e.Vector)
		}
		words[i] = r.words
		if words[i] == nil {
			words[i] = none
		}
	}
	all := []entity.Column{
		entity.NewColumnVarChar(fieldKey, keys), entity.NewColumnVarChar(fieldID, ids),
		entity.NewColumnInt64(fieldSequence, sequences), entity.NewColumnInt64(fieldSlot, slots),
		entity.NewColumnVarChar(fieldLabel, labels), entity.NewColumnVarChar(fieldContext, contexts), entity.NewColumnVarChar(fieldText, texts),
		entity.NewColumnJSONBytes(fieldMeta, metas), entity.NewColumnVarChar(fieldDetails, details),
		entity.NewColumnFloatVector(fieldVector, width(s.Dimension), vectors),
	}
	if s.Analyzer != "" {
		all = append(all, entity.NewColumnSparseVectors(fieldWords, words))
	}
	return all
}

// encodeMeta writes metadata as JSON in which every number has a point or an
// exponent: servers tell whole numbers from others.
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

// floatText writes a number so that it is not taken for a whole one.
func floatText(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func decodeMeta(encoded []byte) (sdk.Meta, error) {
	if len(encoded) == 0 || string(encoded) == "{}" {
		return nil, nil
	}
	var m sdk.Meta
	err := json.Unmarshal(encoded, &m)
	return m, err
}

// unit returns a vector with norm 1; one that has norm 1 already, as those of
// embedders do, unchanged, and one without direction as zeros.
func unit(x []float32) []float32 {
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

// finite reports whether a vector holds neither NaN nor an infinity.
func finite(x []float32) bool {
	for _, v := range x {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}
