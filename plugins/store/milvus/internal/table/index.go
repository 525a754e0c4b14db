package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/sdk"
)

// IndexAuto names no index of Milvus: the server's best is taken.
const IndexAuto = "auto"

// Defaults of the indexes that want parameters. Those of HNSW are usual.
var indexDefaults = map[string]map[string]string{
	"HNSW":        {"M": "16", "efConstruction": "200"},
	"IVF_FLAT":    {"nlist": "128"},
	"IVF_SQ8":     {"nlist": "128"},
	"SPARSE_WAND": {"drop_ratio_build": "0"}, "SPARSE_INVERTED_INDEX": {"drop_ratio_build": "0"},
}

// Prepare makes sure that every vector field has an index, without which no
// search works, and that the table is in the server's memory. It sets IndexType.
func (t *Table) Prepare(ctx context.Context) error {
	names := []string{t.Options.Index}
	if t.Options.Index == IndexAuto {
		names = []string{"HNSW", "AUTOINDEX", "FLAT"}
	}
	if err := t.index(ctx, row.FieldVector, names, t.Options.IndexParams); err != nil {
		return err
	}
	if t.Analyzer != nil {
		if err := t.index(ctx, row.FieldWords, []string{t.Options.SparseIndex}, nil); err != nil {
			return err
		}
	}
	t.IndexType = t.indexed(ctx, row.FieldVector)
	return t.load(ctx)
}

// index gives a field the first of the indexes that the server takes, unless
// it has one: making one twice fails on some servers.
func (t *Table) index(ctx context.Context, field string, names []string, params map[string]string) error {
	if t.indexed(ctx, field) != "" {
		return nil
	}
	var refused []error
	for _, name := range names {
		all := map[string]string{"metric_type": string(entity.IP)}
		maps.Copy(all, indexDefaults[name])
		maps.Copy(all, params)
		index := entity.NewGenericIndex(field, entity.IndexType(name), all)
		err := t.Server.Call(ctx, "make the index "+name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
			return c.CreateIndex(ctx, t.Name, field, index, true)
		})
		switch {
		case err == nil:
			return nil
		case sdk.CodeOf(err) == sdk.CodeDeadline || ctx.Err() != nil:
			return err
		case t.indexed(ctx, field) != "":
			return nil // another process was faster
		}
		refused = append(refused, err)
	}
	return sdk.Invalid(fmt.Errorf("the server takes none of the indexes %s for field %s: %w", strings.Join(names, ", "), field, errors.Join(refused...)))
}

// indexed returns the type of a field's index; empty: none, or not known.
func (t *Table) indexed(ctx context.Context, field string) (typ string) {
	_ = t.Server.Call(ctx, "look for an index", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		indexes, err := c.DescribeIndex(ctx, t.Name, field)
		for _, i := range indexes {
			typ = string(i.IndexType())
		}
		return err
	})
	return typ
}

// load brings the table into the server's memory.
func (t *Table) load(ctx context.Context) error {
	if loaded, err := t.Loaded(ctx); loaded || err != nil && ctx.Err() != nil {
		return err
	}
	return t.Server.Call(ctx, "load collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.LoadCollection(ctx, t.Name, false, client.WithReplicaNumber(int32(t.Options.Replicas)))
	})
}

// Loaded reports whether the table is in the server's memory.
func (t *Table) Loaded(ctx context.Context) (bool, error) {
	state := entity.LoadStateNotLoad
	err := t.Server.Call(ctx, "ask for the load state", func(ctx context.Context, c *client.GrpcClient, _ int) (err error) {
		state, err = c.GetLoadState(ctx, t.Name, nil)
		return err
	})
	return state == entity.LoadStateLoaded, err
}

// Release takes the table out of the server's memory.
func (t *Table) Release(ctx context.Context) error {
	return t.Server.Call(ctx, "release collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.ReleaseCollection(ctx, t.Name)
	})
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
