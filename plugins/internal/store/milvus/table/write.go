package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// IndexAuto means the server's best index.
const IndexAuto = "auto"

// Default parameters of indexes that need parameters. Those of HNSW are usual.
var indexDefaults = map[string]map[string]string{
	"HNSW":     {"M": "16", "efConstruction": "200"},
	"IVF_FLAT": {"nlist": "128"},
	"IVF_SQ8":  {"nlist": "128"},
}

// Prepare makes sure that every vector field has an index, without which searches fail, and that the table is in the
// server's memory. It sets IndexType.
func (t *Table) Prepare(ctx context.Context) error {
	found, _ := t.Rows(true).Indexes(ctx) // unknown indexes are created
	names := []string{t.Options.Index}
	if t.Options.Index == IndexAuto {
		names = []string{"HNSW", "AUTOINDEX", "FLAT"}
	}
	var err error
	if t.IndexType, err = t.index(ctx, found, FieldVector, MetricIP, names, t.Options.IndexParams); err != nil {
		return err
	}
	if t.Analyzer != nil {
		formula := map[string]string{"bm25_k1": floatText(t.Options.K1), "bm25_b": floatText(t.Options.B)}
		if _, err := t.index(ctx, found, FieldBM25, MetricBM25, []string{t.Options.SparseIndex}, formula); err != nil {
			return err
		}
	}
	return t.load(ctx)
}

// index creates the first of the indexes that the server accepts, unless the field has one: creating an index twice
// fails on some servers. It returns the index's type.
func (t *Table) index(ctx context.Context, found map[string]map[string]string, field, metric string, names []string, params map[string]string) (string, error) {
	if made := found[field]["index_type"]; made != "" {
		return made, nil
	}
	var refused []error
	for _, name := range names {
		all := map[string]string{"metric_type": metric}
		maps.Copy(all, indexDefaults[name])
		maps.Copy(all, params)
		index := entity.NewGenericIndex(field, entity.IndexType(name), all)
		err := t.Server.Call(ctx, "make the index "+name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
			return c.CreateIndex(ctx, t.Name, field, index, true)
		})
		if sdk.CodeOf(err) == sdk.CodeDeadline || ctx.Err() != nil {
			return "", err
		}
		// If the server refused, another process may have created it meanwhile.
		found, _ := t.Rows(true).Indexes(ctx)
		if made := found[field]["index_type"]; err == nil || made != "" {
			return made, nil
		}
		refused = append(refused, err)
	}
	return "", sdk.Invalid(fmt.Errorf("the server takes none of the indexes %s for field %s: %w", strings.Join(names, ", "), field, errors.Join(refused...)))
}

// load loads the table into the server's memory.
func (t *Table) load(ctx context.Context) error {
	return t.Server.Call(ctx, "load collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		// A user with read access only may not load.
		if state, err := c.GetLoadState(ctx, t.Name, nil); err == nil && state == entity.LoadStateLoaded {
			return nil
		}
		return c.LoadCollection(ctx, t.Name, false, client.WithReplicaNumber(int32(t.Options.Replicas)))
	})
}

// Upsert writes rows, and replaces rows with the same keys.
func (t *Table) Upsert(ctx context.Context, rows []Row) error { return t.write(ctx, rows, true) }

// Insert writes rows with new keys, which is faster. A repeated attempt is an upsert, so that no row is written
// twice.
func (t *Table) Insert(ctx context.Context, rows []Row) error { return t.write(ctx, rows, false) }

// write does not use the SDK's methods: they require a value for every field, even for those that functions fill.
func (t *Table) write(ctx context.Context, rows []Row, replace bool) error {
	n, fields := uint32(len(rows)), Columns(rows, t.Schema)
	return t.call(ctx, fmt.Sprintf("write %d rows", n), func(ctx context.Context, c *client.GrpcClient, attempt int) (err error) {
		var reply *milvuspb.MutationResult
		if replace || attempt > 0 {
			reply, err = c.Service.Upsert(ctx, &milvuspb.UpsertRequest{CollectionName: t.Name, NumRows: n, FieldsData: fields})
		} else {
			reply, err = c.Service.Insert(ctx, &milvuspb.InsertRequest{CollectionName: t.Name, NumRows: n, FieldsData: fields})
		}
		if took := len(reply.GetIDs().GetStrId().GetData()); err == nil && took != len(rows) {
			err = fmt.Errorf("the server took %d of %d rows", took, n)
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
