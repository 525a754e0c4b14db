package attached

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
)

// request is one search of the server.
type request struct {
	field   string
	metric  string
	queries *commonpb.PlaceholderValue
	expr    string
	fields  []string
	limit   int
}

// scored is a row that a search found.
type scored struct {
	*column.Row
	key   string
	id    string
	score float32
}

// search returns what a server finds for each query, best first.
func (c *Collection) search(ctx context.Context, q request) ([][]scored, error) {
	group, err := proto.Marshal(&commonpb.PlaceholderGroup{Placeholders: []*commonpb.PlaceholderValue{q.queries}})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(c.searchParams(q.field, q.limit))
	if err != nil {
		return nil, err
	}
	n := len(q.queries.GetValues())
	lists := make([][]scored, n)
	err = c.call(ctx, "search "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Search(ctx, &milvuspb.SearchRequest{
			CollectionName: c.Name, PartitionNames: c.arguments.Partitions, Dsl: q.expr, DslType: commonpb.DslType_BoolExprV1, PlaceholderGroup: group, Nq: int64(n),
			OutputFields: q.fields, UseDefaultConsistency: true,
			SearchParams: pairs(map[string]string{"anns_field": q.field, "metric_type": q.metric, "topk": strconv.Itoa(q.limit), "params": string(params), "round_decimal": "-1"}),
		})
		if err != nil {
			return err
		}
		return c.split(reply.GetResults(), lists)
	})
	return lists, c.explainError(err)
}

// split makes a list of each query's rows.
func (c *Collection) split(results *schemapb.SearchResultData, lists [][]scored) error {
	clear(lists)
	all, err := c.rows(results.GetFieldsData(), results.GetIds())
	if err != nil {
		return err
	}
	scores, lengths := results.GetScores(), results.GetTopks()
	if len(scores) != len(all) || len(all) > 0 && len(lengths) != len(lists) {
		return fmt.Errorf("the server returned %d scores, %d rows and %d lists for %d queries", len(scores), len(all), len(lengths), len(lists))
	}
	at := 0
	for i := range min(len(lists), len(lengths)) {
		for range lengths[i] {
			if at == len(all) {
				return fmt.Errorf("the server returned %d rows, fewer than it counts", len(all))
			}
			lists[i] = append(lists[i], scored{all[at], c.KeyOf(all[at]), c.IDOf(all[at]), scores[at]})
			at++
		}
	}
	return nil
}

// searchParams are those from the file, and what an index needs to find so many rows.
func (c *Collection) searchParams(field string, limit int) map[string]any {
	params := map[string]any{}
	if field != c.Vector.GetName() {
		return params
	}
	for name, text := range c.params {
		params[name] = text
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			params[name] = n
		}
	}
	enough := map[string]string{"HNSW": "ef", "DISKANN": "search_list"}
	for index, name := range enough {
		given, _ := params[name].(float64)
		if strings.HasPrefix(c.Indexes[field]["index_type"], index) {
			params[name] = max(int(given), limit, 64)
		}
	}
	return params
}
