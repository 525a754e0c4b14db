package milvus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
)

// found is a row as it is read; only what was asked for is set.
type found struct {
	key             string
	place, sequence int64
	score           float32
	average         float64
	whole           bool // counts, id and label are known
	counts          packed
	entry           sdk.Entry
}

// The fields of what is read.
var (
	fieldsScan  = []string{fieldKey, fieldID, fieldLabel, fieldDetails}
	fieldsTexts = []string{fieldText, fieldContext, fieldMeta}
)

// levels are the consistency levels of the config.
var levels = map[string]entity.ConsistencyLevel{
	"strong": entity.ClStrong, "session": entity.ClSession, "bounded": entity.ClBounded, "eventually": entity.ClEventually,
}

func (c *collection) level() client.SearchQueryOptionFunc {
	return client.WithSearchQueryConsistencyLevel(levels[c.server.config.Consistency])
}

// newest sees everything that any process has written.
func newest() client.SearchQueryOptionFunc {
	return client.WithSearchQueryConsistencyLevel(entity.ClStrong)
}

// maxLimit is the most rows that a server returns at a time.
const maxLimit = 16384

// query returns the rows that an expression selects, in no order. There may be
// no more than maxLimit.
func (c *collection) query(ctx context.Context, expr string, fields []string, level client.SearchQueryOptionFunc) ([]found, error) {
	var rows []found
	err := c.callLoaded(ctx, "read rows", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		// Without a limit of its own a server may fall back on a small one.
		result, err := m.Query(ctx, c.table, nil, expr, fields, level, client.WithLimit(maxLimit))
		if err != nil && !isEmpty(err) {
			return err
		}
		rows = nil
		if err == nil {
			rows, err = decodeRows(result)
			return err
		}
		return nil
	})
	return rows, err
}

// isEmpty reports that an error of the SDK means that no row matched: some
// servers then leave out the columns.
func isEmpty(err error) bool {
	var fault *statusError
	if _, ok := status.FromError(err); ok || errors.As(err, &fault) {
		return false // of the server, not of the SDK
	}
	for _, text := range []string{"extra output fields", "unsupported element type None", "FieldData type not matched"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// special reads rows that are no entries: key to text.
func (c *collection) special(ctx context.Context, keys []string) (map[string]string, error) {
	texts := map[string]string{}
	err := c.callLoaded(ctx, "read the record", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		clear(texts)
		result, err := m.Query(ctx, c.table, nil, withKeys(keys), []string{fieldKey, fieldText}, newest(), client.WithLimit(maxLimit))
		if err != nil {
			if isEmpty(err) {
				return nil
			}
			return err
		}
		key, text := strs(result, fieldKey), strs(result, fieldText)
		for i := range key {
			texts[key[i]] = text[i]
		}
		return nil
	})
	return texts, err
}

// count returns how many rows an expression selects.
func (c *collection) count(ctx context.Context, expr string) (int, error) {
	n := 0
	err := c.callLoaded(ctx, "count rows", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		result, err := m.Query(ctx, c.table, nil, expr, []string{"count(*)"}, newest())
		if err != nil {
			return err
		}
		column, ok := result.GetColumn("count(*)").(*entity.ColumnInt64)
		if !ok || column.Len() != 1 {
			return errors.New("the server does not count")
		}
		n = int(column.Data()[0])
		return nil
	})
	return n, err
}

// withKeys is an expression for the rows that have one of the keys, which need no
// escapes. A server may not take an empty list.
func withKeys(keys []string) string {
	return fieldKey + ` in ["` + strings.Join(keys, `","`) + `"]`
}

func strs(r client.ResultSet, name string) []string {
	if column, ok := r.GetColumn(name).(*entity.ColumnVarChar); ok {
		return column.Data()
	}
	return nil
}

// decodeRows turns columns into rows. Columns that are not there are left out.
func decodeRows(r client.ResultSet) ([]found, error) {
	rows := make([]found, r.Len())
	for _, column := range r {
		if column.Len() != len(rows) {
			return nil, fmt.Errorf("the server returned %d and %d values of the same rows", len(rows), column.Len())
		}
		if err := decodeColumn(rows, column); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func decodeColumn(rows []found, column entity.Column) error {
	switch column := column.(type) {
	case *entity.ColumnVarChar:
		for i, text := range column.Data() {
			if err := rows[i].setText(column.Name(), text); err != nil {
				return err
			}
		}
	case *entity.ColumnJSONBytes:
		for i, encoded := range column.Data() {
			meta, err := decodeMeta(encoded)
			if err != nil {
				return fmt.Errorf("metadata of a row: %w", err)
			}
			rows[i].entry.Meta = meta
		}
	case *entity.ColumnFloatVector:
		for i, x := range column.Data() {
			rows[i].entry.Vector = x
		}
	}
	return nil
}

func (f *found) setText(field, text string) (err error) {
	e := &f.entry
	switch field {
	case fieldKey:
		f.key = text
		if strings.HasPrefix(text, "~") {
			f.place, f.sequence = noEntry, noEntry
			return nil
		}
		f.place, f.sequence, err = parseKey(text)
	case fieldID:
		e.ID = text
	case fieldLabel:
		e.Label = text
	case fieldContext:
		e.Context = text
	case fieldText:
		e.Text = text
	case fieldDetails:
		if text == "" {
			return nil // no entry
		}
		var d details
		d, err = decodeDetails(text)
		f.average, f.whole = d.average, d.whole
		if len(d.hash) > 0 {
			e.Hash = bytes.Clone(d.hash)
		}
		if d.whole {
			e.ID, e.Label, f.counts = d.id, d.label, d.counts
		}
	}
	return err
}
