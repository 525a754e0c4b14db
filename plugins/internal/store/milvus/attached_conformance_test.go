package milvus

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestAttachedConformance runs the suite on collections with keys of both types, metadata in fields and in JSON, with
// and without words. TestAttached covers every metric, and the dynamic field.
func TestAttachedConformance(t *testing.T) {
	e := startEngine(t)
	conformsAttached(t, e.config(), fmt.Sprintf(`{"address": %q}`, e.address))
}

// TestAttachedConformanceElsewhere does the same on a running server.
func TestAttachedConformanceElsewhere(t *testing.T) {
	conformsAttached(t, elsewhere(t), os.Getenv(configVariable))
}

// plan says how a collection holds the rows of the suite.
type plan struct {
	metric  string
	numbers bool   // its keys are whole numbers
	meta    string // "fields" or "json"
	words   bool
}

func conformsAttached(t *testing.T, c config, server string) {
	o := newOwner(t, c)
	for name, p := range map[string]plan{
		"cosine": {"COSINE", true, "fields", true},
		"ip":     {"IP", false, "json", false},
	} {
		p.words = p.words && hasWords()
		t.Run(name, func(t *testing.T) {
			sdktest.Attached(t, Stage(), sdktest.Foreign{
				Make: func(t testing.TB, rows []sdk.Entry) string { return o.in(t).make(name, p, rows, server) },
				Look: func(t testing.TB, given string) string {
					var config struct{ Collection string }
					must.Do(t, json.Unmarshal([]byte(given), &config))
					return o.in(t).rowsAndSchema(config.Collection)
				},
			})
		})
	}
}

// in returns the same owner for another test.
func (o *owner) in(t testing.TB) *owner { return &owner{t, o.MilvusServiceClient} }

var madeCollections atomic.Int64

func (o *owner) make(name string, p plan, rows []sdk.Entry, server string) string {
	name = fmt.Sprintf("%s_%d", name, madeCollections.Add(1))
	m := docsSchema(p.numbers, p.metric, p.words)
	m.dynamic = false
	m.fields = slices.DeleteFunc(m.fields, func(f *schemapb.FieldSchema) bool {
		return slices.Contains([]string{"lang", "year", "rate", "public", "origin"}, f.Name)
	})
	var ids, texts, labels, titles, langs []string
	var keys []int64
	var years []int32
	var prices []float32
	var open []bool
	var metas []map[string]any
	var all [][]float32
	for _, e := range rows {
		ids, keys = append(ids, e.ID), append(keys, int64(number(e.ID)))
		texts, labels, titles, all, metas = append(texts, e.Text), append(labels, e.Label), append(titles, e.Context), append(all, e.Vector), append(metas, e.Meta)
		langs, years = append(langs, e.Meta["lang"].(string)), append(years, int32(e.Meta["year"].(float64)))
		prices, open = append(prices, float32(e.Meta["price"].(float64))), append(open, e.Meta["open"].(bool))
	}
	columns := []*schemapb.FieldData{strs("pk", ids), strs("content", texts), strs("intent", labels), strs("title", titles), milvusVectors("embedding", all)}
	if p.numbers {
		columns[0] = int64s("pk", keys)
	}
	switch p.meta {
	case "json":
		m.fields = append(m.fields, field("metadata", schemapb.DataType_JSON))
		columns = append(columns, objects(o.t, "metadata", metas))
	default:
		m.fields = append(m.fields, field("lang", schemapb.DataType_VarChar), field("year", schemapb.DataType_Int32), field("price", schemapb.DataType_Float), field("open", schemapb.DataType_Bool))
		columns = append(columns, strs("lang", langs), int32s("year", years), float32s("price", prices), bools("open", open))
	}
	o.create(name, m)
	o.insert(name, "", len(rows), columns...)
	config := map[string]any{}
	must.Do(o.t, json.Unmarshal([]byte(server), &config))
	config["collection"] = name
	text, err := json.Marshal(config)
	must.Do(o.t, err)
	return string(text)
}
