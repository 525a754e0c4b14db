package table

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
	found, _ := t.rows(NewestTable).Indexes(ctx) // what is not known is made
	names := []string{t.Options.Index}
	if t.Options.Index == IndexAuto {
		names = []string{"HNSW", "AUTOINDEX", "FLAT"}
	}
	var err error
	if t.IndexType, err = t.index(ctx, found, FieldVector, names, t.Options.IndexParams); err != nil {
		return err
	}
	if t.Analyzer != nil {
		if _, err := t.index(ctx, found, FieldWords, []string{t.Options.SparseIndex}, nil); err != nil {
			return err
		}
	}
	return t.load(ctx)
}

// index gives a field the first of the indexes that the server takes, unless
// it has one: making one twice fails on some servers. It returns the index's type.
func (t *Table) index(ctx context.Context, found map[string]map[string]string, field string, names []string, params map[string]string) (string, error) {
	if made := found[field]["index_type"]; made != "" {
		return made, nil
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
		if sdk.CodeOf(err) == sdk.CodeDeadline || ctx.Err() != nil {
			return "", err
		}
		// Where it was refused, another process may have been faster.
		found, _ := t.rows(NewestTable).Indexes(ctx)
		if made := found[field]["index_type"]; err == nil || made != "" {
			return made, nil
		}
		refused = append(refused, err)
	}
	return "", sdk.Invalid(fmt.Errorf("the server takes none of the indexes %s for field %s: %w", strings.Join(names, ", "), field, errors.Join(refused...)))
}

// load brings the table into the server's memory.
func (t *Table) load(ctx context.Context) error {
	return t.Server.Call(ctx, "load collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		// Who may only read has no right to load.
		if state, err := c.GetLoadState(ctx, t.Name, nil); err == nil && state == entity.LoadStateLoaded {
			return nil
		}
		return c.LoadCollection(ctx, t.Name, false, client.WithReplicaNumber(int32(t.Options.Replicas)))
	})
}

// Insert writes rows with keys that no row has, and weighs their words by a formula. A repeated attempt is an
// upsert, which cannot make a row twice.
func (t *Table) Insert(ctx context.Context, rows []Row, formula Formula) error {
	return t.write(ctx, rows, formula, false)
}

// Upsert writes rows in place of those with the same keys, if there are any. On some servers it takes longer.
func (t *Table) Upsert(ctx context.Context, rows []Row, formula Formula) error {
	return t.write(ctx, rows, formula, true)
}

func (t *Table) write(ctx context.Context, rows []Row, formula Formula, replace bool) error {
	columns := Columns(rows, t.Schema, formula)
	return t.call(ctx, fmt.Sprintf("write %d rows", len(rows)), func(ctx context.Context, c *client.GrpcClient, attempt int) error {
		write := c.Upsert
		if !replace && attempt == 0 {
			write = c.Insert
		}
		keys, err := write(ctx, t.Name, "", columns...)
		if err == nil && keys.Len() != len(rows) {
			err = fmt.Errorf("the server took %d of %d rows", keys.Len(), len(rows))
		}
		return err
	})
}

// Remove deletes the rows that an expression selects.
func (t *Table) Remove(ctx context.Context, expr string) error {
	return t.call(ctx, "delete rows", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.Delete(ctx, t.Name, "", expr)
	})
}

// Flush asks the server to end its growing segments, so that they get their
// index. Nothing depends on it, so it is tried once.
func (t *Table) Flush(ctx context.Context) error {
	return t.Server.Once(ctx, func(ctx context.Context, c *client.GrpcClient) error { return c.Flush(ctx, t.Name, true) })
}
