package table

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Found is a row as it is read; only the fields that were asked for are set.
type Found struct {
	Key   string
	Entry sdk.Entry
}

// Decode reads a row of racflow's own.
func Decode(r *ReplyRow) (f Found, err error) {
	text := func(field string) string {
		text, _ := r.Value(field).(string)
		return text
	}
	f.Key = text(FieldKey)
	e := &f.Entry
	e.ID, e.Label, e.Context, e.Text = text(FieldID), text(FieldLabel), text(FieldContext), text(FieldText)
	e.Vector, _ = r.Value(FieldVector).([]float32)
	if meta, _ := r.Value(FieldMeta).(map[string]any); len(meta) > 0 {
		e.Meta = meta
	}
	if hash := text(FieldHash); hash != "" {
		e.Hash, err = hex.DecodeString(hash)
	}
	return f, err
}

// EncodeMeta writes metadata as JSON in which every number has a point or an
// exponent: servers tell whole numbers from others.
func EncodeMeta(m sdk.Meta) ([]byte, error) {
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
			values[key] = json.RawMessage(FloatText(v))
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

// FloatText writes a number so that it is not taken for a whole one.
func FloatText(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
