package milvus

import (
	"context"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// insert writes rows with keys that no row has. A try that may have reached the
// server is repeated as an upsert, which cannot make a row twice.
func (c *collection) insert(ctx context.Context, rows []row) error {
	return c.write(ctx, rows, false)
}

// upsert writes rows in place of those with the same keys.
func (c *collection) upsert(ctx context.Context, rows []row) error {
	return c.write(ctx, rows, true)
}

func (c *collection) write(ctx context.Context, rows []row, replace bool) error {
	if len(rows) == 0 {
		return nil
	}
	columns := columns(rows, c.known().schema)
	return c.callLoaded(ctx, fmt.Sprintf("write %d rows", len(rows)), func(ctx context.Context, m *client.GrpcClient, attempt int) error {
		write := m.Upsert
		if !replace && attempt == 0 {
			write = m.Insert
		}
		keys, err := write(ctx, c.table, "", columns...)
		if err == nil && keys.Len() != len(rows) {
			err = fmt.Errorf("the server took %d of %d rows", keys.Len(), len(rows))
		}
		return err
	})
}

// writeSpecial writes rows that are no entries. They are few and large.
func (c *collection) writeSpecial(ctx context.Context, rows []row) error {
	for part := range slices.Chunk(rows, 64) {
		if err := c.upsert(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the rows that an expression selects.
func (c *collection) remove(ctx context.Context, expr string) error {
	return c.callLoaded(ctx, "delete rows", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		return m.Delete(ctx, c.table, "", expr)
	})
}

// removeKeys deletes rows by their keys.
func (c *collection) removeKeys(ctx context.Context, keys []string) error {
	for part := range slices.Chunk(keys, 1000) {
		if err := c.remove(ctx, withKeys(part)); err != nil {
			return err
		}
	}
	return nil
}

// flushRows is how many new rows make it worth while that the server ends its
// growing segments, so that they get their index. It limits how often that may
// be asked for.
const flushRows = 10_000

// flush asks for that. Nothing depends on it.
func (c *collection) flush(ctx context.Context) {
	m, err := c.server.client(ctx)
	if err == nil {
		err = c.server.once(ctx, func(ctx context.Context) error { return m.Flush(ctx, c.table, true) })
	}
	if err != nil {
		c.log.Debug("the server did not flush", "collection", c.name, "error", c.server.mask(err))
	}
}

// withoutLong parts entries with a string that is too long for Milvus from the
// others.
func withoutLong(entries []sdk.Entry) ([]sdk.Entry, sdk.RowErrors) {
	failed := sdk.RowErrors{}
	var fit []sdk.Entry
	for i, e := range entries {
		if err := tooLong(e); err != nil {
			if len(failed) == 0 {
				fit = slices.Clone(entries[:i])
			}
			failed[i] = sdk.Invalid(err)
		} else if len(failed) > 0 {
			fit = append(fit, e)
		}
	}
	if len(failed) == 0 {
		return entries, nil
	}
	return fit, failed
}

func tooLong(e sdk.Entry) error {
	for _, part := range []struct {
		name   string
		bytes  int
		advice string
	}{
		{"id", len(e.ID), "shorten it"}, {"text", len(e.Text), "split it into several rows"}, {"label", len(e.Label), "shorten it"},
		{"context", len(e.Context), "shorten it"}, {"metadata", metaSize(e.Meta), "keep fewer columns as metadata"}, {"hash", 2 * len(e.Hash), "shorten it"},
	} {
		if part.bytes > maxBytes {
			return fmt.Errorf("the %s of entry %.40q has %d bytes and Milvus takes %d: %s", part.name, e.ID, part.bytes, maxBytes, part.advice)
		}
	}
	return nil
}

// metaSize is the length of metadata as it is kept, or a lesser one that is
// short enough in any case.
func metaSize(m sdk.Meta) int {
	n := 2
	for key, value := range m {
		text, _ := value.(string)
		n += 6*len(key) + 6*len(text) + 40 // JSON writes a byte as six at most
	}
	if n <= maxBytes {
		return n
	}
	encoded, _ := encodeMeta(m) // what is wrong with it refuses the batch
	return len(encoded)
}

// checkEntries reports the first entry that Milvus cannot take. Some servers
// would take it, or a part of it, all the same.
func checkEntries(s sdk.Schema, entries []sdk.Entry) ([][]byte, error) {
	metas := make([][]byte, len(entries))
	for i, e := range entries {
		if e.ID == "" {
			return nil, fmt.Errorf("entry %d of the batch has no id", i)
		}
		if len(e.Vector) != s.Dimension {
			return nil, fmt.Errorf("entry %q has a vector of %d dimensions and the collection's have %d", e.ID, len(e.Vector), s.Dimension)
		}
		if !finite(e.Vector) {
			return nil, fmt.Errorf("entry %q has NaN or an infinity in its vector", e.ID)
		}
		meta, err := encodeMeta(e.Meta)
		if err != nil {
			return nil, fmt.Errorf("entry %q has %w", e.ID, err)
		}
		metas[i] = meta
	}
	return metas, nil
}

var _ entity.SearchParam = searchParams{}
