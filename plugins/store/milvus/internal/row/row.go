package row

import (
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/sdk"
)

// Row is one row as it is written.
type Row struct {
	Key      string
	Sequence int64
	Entry    sdk.Entry // the vector has norm 1, or 0
	Meta     []byte    // of the entry, as EncodeMeta writes it
	Counts   bm25.Counts
}

// System is a row that is no entry and has a text.
func System(key, text string) Row {
	return Row{Key: key, Sequence: SystemSequence, Entry: sdk.Entry{Text: text}, Meta: []byte("{}")}
}

// Size is about what a row takes in a message.
func (r *Row) Size() int {
	e := &r.Entry
	words := len(r.Counts.Words) / 4
	return 128 + len(e.ID) + len(e.Label) + len(e.Context) + len(e.Text) + len(r.Meta) + 4*len(e.Vector) + 14*words
}

// Width is the dimension of the vectors on the server, which wants at least two
// and a vector in every row.
func Width(dimension int) int { return max(dimension, 2) }

// Columns makes of rows what the SDK sends. Their words are weighed by a formula.
func Columns(rows []Row, s sdk.Schema, formula bm25.Formula) []entity.Column {
	text := func(field string, of func(*Row) string) entity.Column {
		return entity.NewColumnVarChar(field, each(rows, of))
	}
	columns := []entity.Column{
		text(FieldKey, func(r *Row) string { return r.Key }),
		text(FieldID, func(r *Row) string { return r.Entry.ID }),
		entity.NewColumnInt64(FieldSequence, each(rows, func(r *Row) int64 { return r.Sequence })),
		entity.NewColumnInt64(FieldIDHash, each(rows, func(r *Row) int64 { return IDHash(r.Entry.ID) })),
		text(FieldLabel, func(r *Row) string { return r.Entry.Label }),
		text(FieldContext, func(r *Row) string { return r.Entry.Context }),
		text(FieldText, func(r *Row) string { return r.Entry.Text }),
		entity.NewColumnJSONBytes(FieldMeta, each(rows, func(r *Row) []byte { return r.Meta })),
		text(FieldDetails, func(r *Row) string {
			if r.Sequence == SystemSequence {
				return ""
			}
			return details{hash: r.Entry.Hash, average: formula.Average, id: r.Entry.ID, label: r.Entry.Label, counts: r.Counts}.encode()
		}),
		entity.NewColumnFloatVector(FieldVector, Width(s.Dimension), each(rows, func(r *Row) []float32 {
			if len(r.Entry.Vector) == Width(s.Dimension) {
				return r.Entry.Vector
			}
			return append(slices.Clone(r.Entry.Vector), make([]float32, Width(s.Dimension)-len(r.Entry.Vector))...)
		})),
	}
	if s.Analyzer != "" {
		columns = append(columns, entity.NewColumnSparseVectors(FieldWords, each(rows, func(r *Row) entity.SparseEmbedding { return formula.Document(r.Counts) })))
	}
	return columns
}

func each[T any](rows []Row, of func(*Row) T) []T {
	all := make([]T, len(rows))
	for i := range rows {
		all[i] = of(&rows[i])
	}
	return all
}
