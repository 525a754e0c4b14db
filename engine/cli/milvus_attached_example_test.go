package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// TestMilvusAttachedExample answers from an external collection as examples/milvus/attached.hcl
// describes, with only a reader's rights.
func TestMilvusAttachedExample(t *testing.T) {
	file := absolute(t, "../../examples/milvus/attached.hcl")
	must(t, racflow(t, t.TempDir(), "validate", file))
	e := startEngine(t)
	makeDocs(t, e)
	r := startProxy(t, e)
	dir := folder(t, map[string]string{"questions.tsv": "text\nwhere is number 42?\n"})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "-var", "embedder=hashing", "--input", "questions.tsv", file}, "content"},
		{[]string{"ask", "-var", "embedder=hashing", file, "number 42 of topic0"}, "the note number 42 of topic0"},
	} {
		c := racflow(t, dir, test.args...)
		c.Env = append(os.Environ(), "MILVUS_ADDRESS="+r.engine.address())
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %v, want %q in\n%s", test.args, err, test.want, out)
		}
	}
	for _, privilege := range privileges(t, r.take()) {
		if !slices.Contains(listedPrivileges(t)["READER"], privilege) {
			t.Errorf("it needs %s, which the reader's role has not", privilege)
		}
	}
}

// makeDocs makes the collection that the example reads.
func makeDocs(t *testing.T, e *milvusEngine) {
	t.Helper()
	const n = 60
	var pks, years []int64
	var texts, languages []string
	for i := range n {
		pks, texts = append(pks, int64(i)), append(texts, fmt.Sprintf("the note number %d of topic%d", i, i%7))
		languages, years = append(languages, []string{"en", "de"}[i%2]), append(years, int64(2000+i))
	}
	opened, err := ours(sdk.KindEmbed, "hashing").Open(t.Context(), sdk.Setup{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := opened.(sdk.Embedder).Embed(t.Context(), sdk.RolePassage, texts)
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string, typ entity.FieldType) *entity.Field {
		return entity.NewField().WithName(name).WithDataType(typ)
	}
	dimension := len(vectors[0])
	schema := entity.NewSchema().WithName("docs").
		WithField(field("pk", entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(field("content", entity.FieldTypeVarChar).WithMaxLength(1000)).
		WithField(field("embedding", entity.FieldTypeFloatVector).WithDim(int64(dimension))).
		WithField(field("lang", entity.FieldTypeVarChar).WithMaxLength(10)).
		WithField(field("year", entity.FieldTypeInt64))
	makeCollection(t, e.client(), schema, entity.COSINE, entity.NewColumnInt64("pk", pks), entity.NewColumnVarChar("content", texts),
		entity.NewColumnFloatVector("embedding", dimension, vectors), entity.NewColumnVarChar("lang", languages), entity.NewColumnInt64("year", years))
}

// makeCollection makes a collection with an index of its vectors, loads it and inserts rows.
func makeCollection(t *testing.T, m client.Client, schema *entity.Schema, metric entity.MetricType, columns ...entity.Column) {
	t.Helper()
	ctx, name, vectors := t.Context(), schema.CollectionName, ""
	for _, f := range schema.Fields {
		if f.DataType == entity.FieldTypeFloatVector {
			vectors = f.Name
		}
	}
	index := entity.NewGenericIndex(vectors, "FLAT", map[string]string{"metric_type": string(metric)})
	if err := m.CreateCollection(ctx, schema, 1); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateIndex(ctx, name, vectors, index, false); err != nil {
		t.Fatal(err)
	}
	if err := m.LoadCollection(ctx, name, false); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Insert(ctx, name, "", columns...); err != nil {
		t.Fatal(err)
	}
}
