package wire

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// BenchmarkCandidates takes 256 items with 60 candidates each over the wire,
// without a wire.
func BenchmarkCandidates(b *testing.B) {
	batch := sdk.Batch{Items: make([]sdk.Item, 256)}
	for i := range batch.Items {
		batch.Items[i] = sdk.Item{ID: fmt.Sprint("item-", i), Candidates: make([]sdk.Candidate, 60)}
		for j := range batch.Items[i].Candidates {
			batch.Items[i].Candidates[j] = sdk.Candidate{
				ID: fmt.Sprintf("entry-%06d", i*j), Label: fmt.Sprint("label-", j%25), Score: .5, Dense: .5, Lexical: 3,
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		rows, err := EncodeBatch(batch, sdk.Of(sdk.ColumnCandidates))
		must.Do(b, err)
		raw, err := proto.Marshal(rows)
		must.Do(b, err)
		got := &stagepb.Rows{}
		must.Do(b, proto.Unmarshal(raw, got))
		if _, err := DecodeBatch(got); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256/1e3, "µs/item")
}
