package milvus

import (
	"context"
	"errors"
	"fmt"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
)

// ask makes one search for several probes with the same condition.
func (c *collection) ask(ctx context.Context, s *state, probes []*probe, limit int, by side, texts bool) ([][]found, error) {
	expr := s.visible()
	if cond := probes[0].condition.expr; cond != "" {
		expr += " and " + cond
	}
	vectors := make([]entity.Vector, len(probes))
	for i, p := range probes {
		vectors[i] = by.vector(p)
	}
	fields := []string{fieldID, fieldLabel}
	switch {
	case texts:
		fields = append(fields, fieldsTexts...)
	case probes[0].filter != nil:
		fields = append(fields, fieldMeta)
	}
	if by.counts() {
		fields = append(fields, fieldDetails)
	}
	lists, err := c.searchRows(ctx, expr, fields, vectors, by.field(), limit, by.params(c, s, limit))
	if err == nil && by.counts() {
		for _, rows := range lists {
			if err := c.countMissing(ctx, *s.analyzer, rows); err != nil {
				return nil, err
			}
		}
	}
	return lists, err
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
