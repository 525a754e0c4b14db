package milvus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
)

// answer is what a server returned for one probe.
type answer struct {
	rows   []found // of the state; dead ones too
	hidden int     // rows that came and are not of the state
	lowest float32 // score of all that came; infinite where nothing did
}

// ask makes one search for several probes with the same condition. A server that
// has to leave out what is not of the state takes longer for it, and most often
// there is little of that: only where narrow is set it is asked to.
func (c *collection) ask(ctx context.Context, s *state, probes []*probe, limit int, narrow bool, by side, texts bool) ([]answer, error) {
	expr := probes[0].condition.expr
	switch {
	case narrow && expr != "":
		expr = s.visible() + " and " + expr
	case narrow:
		expr = s.visible()
	}
	vectors := make([]entity.Vector, len(probes))
	for i, p := range probes {
		vectors[i] = by.vector(p)
	}
	fields := []string{fieldDetails}
	switch {
	case texts:
		fields = append(fields, fieldsTexts...)
	case probes[0].filter != nil:
		fields = append(fields, fieldMeta)
	}
	lists, err := c.searchRows(ctx, expr, fields, vectors, by.field(), limit, by.params(c, s, limit))
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(lists))
	for i, rows := range lists {
		answers[i] = newAnswer(s, rows)
		if err := c.fillIn(ctx, s.analyzer, answers[i].rows); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func newAnswer(s *state, rows []found) answer {
	a := answer{lowest: float32(math.Inf(1))}
	for i := range rows {
		a.lowest = min(a.lowest, rows[i].score)
	}
	a.rows = slices.DeleteFunc(rows, func(r found) bool { return !s.sees(r.sequence) })
	a.hidden = len(rows) - len(a.rows)
	return a
}

// searchRows searches the rows that an expression selects.
func (c *collection) searchRows(ctx context.Context, expr string, fields []string, vectors []entity.Vector, field string, limit int, params entity.SearchParam) ([][]found, error) {
	lists := make([][]found, len(vectors))
	err := c.callLoaded(ctx, "search", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		results, err := m.Search(ctx, c.table, nil, expr, fields, vectors, field, entity.IP, limit, params, c.level())
		if err != nil {
			if isEmpty(err) {
				return nil
			}
			return err
		}
		// Some servers return no result at all where nothing matched.
		if len(results) != len(vectors) && len(results) > 0 {
			return fmt.Errorf("the server returned %d results for %d queries", len(results), len(vectors))
		}
		for i := range results {
			if lists[i], err = decodeResult(&results[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return lists, err
}

func decodeResult(r *client.SearchResult) ([]found, error) {
	if r.ResultCount == 0 || r.Err != nil && isEmpty(r.Err) {
		return nil, nil
	}
	if r.Err != nil {
		return nil, r.Err
	}
	keys, ok := r.IDs.(*entity.ColumnVarChar)
	if !ok || keys.Len() != r.ResultCount || len(r.Scores) != r.ResultCount {
		return nil, errors.New("the server returned scores without keys")
	}
	rows := make([]found, r.ResultCount)
	for _, column := range r.Fields {
		if column.Len() != len(rows) {
			return nil, fmt.Errorf("the server returned %d values for %d rows", column.Len(), len(rows))
		}
		if err := decodeColumn(rows, column); err != nil {
			return nil, err
		}
	}
	for i, key := range keys.Data() {
		if err := rows[i].setText(fieldKey, key); err != nil {
			return nil, err
		}
		rows[i].score = r.Scores[i]
	}
	return rows, nil
}
