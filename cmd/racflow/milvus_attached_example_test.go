package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/embed/hashing"
	"github.com/racflow/racflow/sdk"
)

// TestMilvusAttachedExample answers from a collection of somebody else's as
// examples/milvus/attached.hcl says, with no more than a reader's rights.
func TestMilvusAttachedExample(t *testing.T) {
	file, err := filepath.Abs("../../examples/milvus/attached.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := racflow(t, t.TempDir(), "validate", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	e := startEngine(t)
	makeDocs(t, e)
	r := record(t, e)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "questions.tsv"), []byte("text\nwhere is number 42?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "-var", "embedder=hashing", "--input", "questions.tsv", file}, "content"},
		{[]string{"ask", "-var", "embedder=hashing", file, "number 42 of topic0"}, "the note number 42 of topic0"},
	} {
		c := racflow(t, dir, test.args...)
		c.Env = append(os.Environ(), "MILVUS_ADDRESS="+r.address)
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
	opened, err := hashing.Stage().Open(t.Context(), sdk.Setup{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := opened.(sdk.Embedder).Embed(t.Context(), sdk.RolePassage, texts)
	if err != nil {
		t.Fatal(err)
	}
	m, err := client.NewClient(t.Context(), client.Config{Address: e.address()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
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
	if err := m.CreateCollection(t.Context(), schema, 1); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateIndex(t.Context(), "docs", "embedding", entity.NewGenericIndex("embedding", "FLAT", map[string]string{"metric_type": "COSINE"}), false); err != nil {
		t.Fatal(err)
	}
	if err := m.LoadCollection(t.Context(), "docs", false); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Insert(t.Context(), "docs", "", entity.NewColumnInt64("pk", pks), entity.NewColumnVarChar("content", texts),
		entity.NewColumnFloatVector("embedding", dimension, vectors), entity.NewColumnVarChar("lang", languages), entity.NewColumnInt64("year", years)); err != nil {
		t.Fatal(err)
	}
}
