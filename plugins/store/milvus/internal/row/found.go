package row

import (
	"bytes"
	"fmt"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/sdk"
)

// Found is a row as it is read; only the fields that were asked for are set.
type Found struct {
	Key                string
	Position, Sequence int64
	Score              float32
	Average            float64 // length that its words are weighed with
	Complete           bool    // Counts, id and label are known
	Counts             bm25.Counts
	Entry              sdk.Entry
}

// Decode makes rows of columns. Columns that are not there are left out.
func Decode(columns []entity.Column) ([]Found, error) {
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
		f.Position, f.Sequence, err = parseKey(text)
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
		f.Average, f.Complete = d.average, d.complete
		if len(d.hash) > 0 {
			e.Hash = bytes.Clone(d.hash)
		}
		if d.complete {
			e.ID, e.Label, f.Counts = d.id, d.label, d.counts
		}
	}
	return err
}
