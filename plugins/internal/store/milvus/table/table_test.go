package table

import (
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// What another version of the package wrote is refused in words that say which
// is the older one.
func TestOtherVersion(t *testing.T) {
	schema := sdk.Schema{Dimension: 2, Analyzer: "standard"}
	c, err := New(&Server{}, Options{Prefix: "racflow"}, "c", schema)
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[int]string{-1: "older racflow", 1: "newer racflow"} {
		id := c.identity()
		id.Version += change
		err := c.recognize(&entity.Collection{Schema: entity.NewSchema().WithDescription(id.String())})
		if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d is refused with %v", id.Version, err)
		}
	}
}
