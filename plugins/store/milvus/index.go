package milvus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// What an index of the vectors can be named, besides those of Milvus.
const indexAuto = "auto"

// Defaults of the indexes that want parameters. Those of HNSW are usual.
var indexDefaults = map[string]map[string]string{
	"HNSW":        {"M": "16", "efConstruction": "200"},
	"IVF_FLAT":    {"nlist": "128"},
	"IVF_SQ8":     {"nlist": "128"},
	"SPARSE_WAND": {"drop_ratio_build": "0"}, "SPARSE_INVERTED_INDEX": {"drop_ratio_build": "0"},
}

// prepare makes sure that every vector field has an index, without which no
// search of its collection works, and that the collection is in the server's
// memory.
func (c *collection) prepare(ctx context.Context, s sdk.Schema) error {
	config := c.server.config
	names := []string{config.Index}
	if config.Index == indexAuto {
		names = []string{"HNSW", "AUTOINDEX", "FLAT"}
	}
	if err := c.index(ctx, fieldVector, names, config.IndexParams); err != nil {
		return err
	}
	if s.Analyzer != "" {
		if err := c.index(ctx, fieldWords, []string{config.SparseIndex}, nil); err != nil {
			return err
		}
	}
	return c.load(ctx)
}

// index gives a field the first of the indexes that the server takes, unless
// it has one: making one twice fails on some servers.
func (c *collection) index(ctx context.Context, field string, names []string, params map[string]string) error {
	if c.indexed(ctx, field) != "" {
		return nil
	}
	var refused []error
	for _, name := range names {
		all := map[string]string{"metric_type": string(entity.IP)}
		maps.Copy(all, indexDefaults[name])
		maps.Copy(all, params)
		index := entity.NewGenericIndex(field, entity.IndexType(name), all)
		err := c.server.call(ctx, "make the index "+name, func(ctx context.Context, m *client.GrpcClient, _ int) error {
			return m.CreateIndex(ctx, c.table, field, index, true)
		})
		if err == nil {
			return nil
		}
		if sdk.CodeOf(err) == sdk.CodeDeadline || ctx.Err() != nil {
			return err
		}
		if c.indexed(ctx, field) != "" {
			return nil // another process was faster
		}
		refused = append(refused, err)
	}
	return sdk.Invalid(fmt.Errorf("the server takes none of the indexes %s for field %s: %w", strings.Join(names, ", "), field, errors.Join(refused...)))
}

// indexed returns the type of a field's index; empty: none, or not known.
func (c *collection) indexed(ctx context.Context, field string) string {
	var found string
	_ = c.server.call(ctx, "look for an index", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		indexes, err := m.DescribeIndex(ctx, c.table, field)
		for _, i := range indexes {
			found = string(i.IndexType())
		}
		return err
	})
	return found
}

// load brings the collection into the server's memory.
func (c *collection) load(ctx context.Context) error {
	if loaded, err := c.loaded(ctx); loaded || err != nil && ctx.Err() != nil {
		return err
	}
	return c.server.call(ctx, "load collection "+c.table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
		return m.LoadCollection(ctx, c.table, false, client.WithReplicaNumber(int32(c.server.config.Replicas)))
	})
}

// loaded reports whether the collection is in the server's memory.
func (c *collection) loaded(ctx context.Context) (bool, error) {
	state := entity.LoadStateNotLoad
	err := c.server.call(ctx, "ask for the load state", func(ctx context.Context, m *client.GrpcClient, _ int) (err error) {
		state, err = m.GetLoadState(ctx, c.table, nil)
		return err
	})
	return state == entity.LoadStateLoaded, err
}

// searchParams are the parameters of a search for the best limit rows.
type searchParams map[string]any

// Params implements entity.SearchParam; the other methods of it are for
// searches within a radius, which there are none of.
func (p searchParams) Params() map[string]any      { return maps.Clone(p) }
func (p searchParams) AddRadius(radius float64)    { p["radius"] = radius }
func (p searchParams) AddRangeFilter(edge float64) { p["range_filter"] = edge }

func (c *collection) denseParams(indexType string, limit int) searchParams {
	p := searchParams{}
	switch indexType {
	case "HNSW":
		p["ef"] = max(limit+limit/2, 128) // it may not be below the limit
	case "IVF_FLAT", "IVF_SQ8":
		p["nprobe"] = 16
	}
	for name, value := range c.server.config.SearchParams {
		p[name] = number(value)
	}
	if ef, ok := p["ef"].(int64); ok && int(ef) < limit {
		p["ef"] = limit
	}
	return p
}

func lexicalParams() searchParams { return searchParams{"drop_ratio_search": 0.0} }
