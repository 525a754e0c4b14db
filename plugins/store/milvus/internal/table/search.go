package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
)

// Search returns for each vector the best rows that an expression selects, at
// most limit of them, best first, with the fields and with scores by the inner
// product.
func (t *Table) Search(ctx context.Context, expr string, fields []string, vectors []entity.Vector, field string, limit int) ([][]row.Found, error) {
	lists := make([][]row.Found, len(vectors))
	err := t.call(ctx, "search", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		results, err := c.Search(ctx, t.Name, nil, expr, fields, vectors, field, entity.IP, limit, t.params(field, limit), t.option(AsConfigured))
		if err != nil {
			if server.IsEmpty(err) {
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

func decodeResult(r *client.SearchResult) ([]row.Found, error) {
	if r.ResultCount == 0 || r.Err != nil && server.IsEmpty(r.Err) {
		return nil, nil
	}
	if r.Err != nil {
		return nil, r.Err
	}
	keys, ok := r.IDs.(*entity.ColumnVarChar)
	if !ok || keys.Len() != r.ResultCount || len(r.Scores) != r.ResultCount {
		return nil, errors.New("the server returned scores without keys")
	}
	named := entity.NewColumnVarChar(row.FieldKey, keys.Data())
	rows, err := row.Decode(append([]entity.Column{named}, r.Fields...))
	for i := range rows {
		rows[i].Score = r.Scores[i]
	}
	return rows, err
}

// searchParams are the parameters of a search for the best limit rows.
type searchParams map[string]any

// Params implements entity.SearchParam; its other methods are for searches within
// a radius, which this package does not make.
func (p searchParams) Params() map[string]any      { return maps.Clone(p) }
func (p searchParams) AddRadius(radius float64)    { p["radius"] = radius }
func (p searchParams) AddRangeFilter(edge float64) { p["range_filter"] = edge }

// params are those of a search in a vector field.
func (t *Table) params(field string, limit int) searchParams {
	p := searchParams{}
	if field == row.FieldWords {
		p["drop_ratio_search"] = 0.0
		return p
	}
	switch t.IndexType {
	case "HNSW":
		p["ef"] = max(limit+limit/2, 128) // it may not be below the limit
	case "IVF_FLAT", "IVF_SQ8":
		p["nprobe"] = 16
	}
	for name, text := range t.Options.SearchParams {
		p[name] = text
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			p[name] = n
		} else if f, err := strconv.ParseFloat(text, 64); err == nil {
			p[name] = f
		}
	}
	if ef, ok := p["ef"].(int64); ok && int(ef) < limit {
		p["ef"] = limit
	}
	return p
}
