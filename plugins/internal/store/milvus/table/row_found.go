package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// Found is a row as it is read; only the fields that were asked for are set.
type Found struct {
	Key      string
	Sequence int64
	Score    float32
	Complete bool // Counts, id and label are known
	Counts   Counts
	Entry    sdk.Entry
}

// DecodeRows makes rows of columns. Columns that are not there are left out.
func DecodeRows(columns []entity.Column) ([]Found, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	rows := make([]Found, columns[0].Len())
	for _, column := range columns {
		if column.Len() != len(rows) {
			return nil, fmt.Errorf("the server returned %d and %d values of the same rows", len(rows), column.Len())
		}
		for i := range rows {
			if err := rows[i].set(column, i); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

func (f *Found) set(column entity.Column, i int) (err error) {
	switch column := column.(type) {
	case *entity.ColumnVarChar:
		err = f.setText(column.Name(), column.Data()[i])
	case *entity.ColumnJSONBytes:
		if f.Entry.Meta, err = decodeMeta(column.Data()[i]); err != nil {
			err = fmt.Errorf("metadata of a row: %w", err)
		}
	case *entity.ColumnFloatVector:
		f.Entry.Vector = column.Data()[i]
	}
	return err
}

func (f *Found) setText(field, text string) (err error) {
	e := &f.Entry
	switch field {
	case FieldKey:
		f.Key = text
		f.Sequence, err = parseKey(text)
	case FieldID:
		e.ID = text
	case FieldLabel:
		e.Label = text
	case FieldContext:
		e.Context = text
	case FieldText:
		e.Text = text
	case FieldDetails:
		if text == "" {
			return nil // a system row
		}
		var d details
		d, err = decodeDetails(text)
		f.Complete = d.complete
		if len(d.hash) > 0 {
			e.Hash = bytes.Clone(d.hash)
		}
		if d.complete {
			e.ID, e.Label, f.Counts = d.id, d.label, d.counts
		}
	}
	return err
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

func decodeMeta(encoded []byte) (m sdk.Meta, err error) {
	if len(encoded) > 0 && string(encoded) != "{}" {
		err = json.Unmarshal(encoded, &m)
	}
	return m, err
}
