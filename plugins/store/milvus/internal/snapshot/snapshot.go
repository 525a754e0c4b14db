package snapshot

import (
	"context"
	"slices"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
)

// Snapshot is what is known of the last commit. It is never changed.
type Snapshot struct {
	*table.Table
	Record      Record
	Note        []byte
	Frequencies map[uint32]uint32  // entries that have a word, by the word's number
	Dead        map[int64]struct{} // sequence numbers
	OnServer    bool               // else the table is yet to be created
	Seen        time.Time          // when it was the last for certain
}

// Empty is a snapshot of a table without entries.
func Empty(t *table.Table, onServer bool) *Snapshot {
	return &Snapshot{Table: t, Frequencies: map[uint32]uint32{}, Dead: map[int64]struct{}{}, OnServer: onServer, Seen: time.Now()}
}

// Expression selects the rows up to the commit, dead ones included.
func (s *Snapshot) Expression() string {
	expr := expression.Between(s.Record.Floor, s.Record.Next)
	for _, g := range s.Record.Gaps {
		expr = expression.And(expr, expression.Outside(g.From, g.To))
	}
	return expr
}

// Contains reports whether a row is up to the commit, dead or not.
func (s *Snapshot) Contains(sequence int64) bool {
	r := &s.Record
	return r.Floor <= sequence && sequence < r.Next &&
		!slices.ContainsFunc(r.Gaps, func(g Gap) bool { return g.From <= sequence && sequence < g.To })
}

// Walk is Table.Walk without what is below the floor and in gaps, which are wide.
func (s *Snapshot) Walk(ctx context.Context, l table.Level, from, to int64, expr string, fields []string, f func(row.Found) error) error {
	from = max(from, s.Record.Floor)
	for _, g := range s.Record.Gaps {
		if err := s.Table.Walk(ctx, l, from, min(g.From, to), expr, fields, f); err != nil {
			return err
		}
		from = max(from, g.To)
	}
	return s.Table.Walk(ctx, l, from, to, expr, fields, f)
}

// IsDead reports that a row was replaced or deleted.
func (s *Snapshot) IsDead(sequence int64) bool {
	_, dead := s.Dead[sequence]
	return dead
}

// Formula weighs words by the average length.
func (s *Snapshot) Formula() bm25.Formula {
	return bm25.NewFormula(s.Options.K1, s.Options.B, s.Record.Average())
}
