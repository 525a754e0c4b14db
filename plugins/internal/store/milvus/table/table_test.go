package table

import (
	"strings"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/racflow/racflow/sdk"
)

// A table of another version of the package under the same name is refused.
func TestOtherVersion(t *testing.T) {
	schema := sdk.Schema{Dimension: 2, Analyzer: "standard"}
	c, err := New(&Server{}, Options{Prefix: "racflow"}, "c", schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []int{-1, 1} {
		id := c.identity()
		id.Version += change
		err := c.recognize(&milvuspb.DescribeCollectionResponse{Schema: &schemapb.CollectionSchema{Description: id.String()}})
		if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "not made by this version of racflow") {
			t.Errorf("version %d is refused with %v", id.Version, err)
		}
	}
}
