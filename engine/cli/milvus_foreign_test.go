package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
)

// TestMilvusForeignCollection puts external collections in the place of an index version: a run says
// what to do and leaves them as they are.
func TestMilvusForeignCollection(t *testing.T) {
	e := engineFor(t)
	dir := milvusFolder(t, 50, 5)
	if c, stderr := milvusRun(t, e, dir); c.Run() != nil {
		t.Fatalf("the first run: %s", stderr)
	}
	ctx := t.Context()
	m := e.client()
	list := racflow(t, dir, "knowledge", "list", "--json", "p.hcl")
	list.Env = e.env()
	out, err := list.Output()
	var generation struct{ Collection string }
	if err != nil || json.Unmarshal(out, &generation) != nil {
		t.Fatalf("%v in %s", err, out)
	}
	name := e.prefix + "_" + strings.ReplaceAll(generation.Collection, "-", "_2d") + "_v6" // the version of the row format
	ours, err := m.DescribeCollection(ctx, name)
	if err == nil && ours.Schema.Description == "" {
		t.Skip("the server keeps no descriptions of collections, by which this test disguises them")
	}
	if err != nil || !strings.Contains(ours.Schema.Description, `"dimension":128`) {
		t.Fatalf("collection %q: %+v, %v", name, ours, err)
	}
	for _, test := range []struct{ name, description, want string }{ // the prefix racflow comes from the environment, and is not shown
		{"somebody else's", "my own", "and is left as it is: use another prefix or database"},
		{"an older racflow's", strings.Replace(ours.Schema.Description, `{"racflow":`, `{"racflow":1,"now":`, 1), "(schema 1, this one writes"},
		{"another dimension", strings.Replace(ours.Schema.Description, `"dimension":128`, `"dimension":64`, 1), "has vectors of 64 dimensions and the embedder gives 128: build it anew, under another name or prefix"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := m.DropCollection(ctx, name); err != nil {
				t.Fatal(err)
			}
			schema := entity.NewSchema().WithName(name).WithDescription(test.description).
				WithField(entity.NewField().WithName("pk").WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
				WithField(entity.NewField().WithName("v").WithDataType(entity.FieldTypeFloatVector).WithDim(64))
			vectors := [][]float32{make([]float32, 64), make([]float32, 64)}
			makeCollection(t, m, schema, entity.IP, entity.NewColumnInt64("pk", []int64{1, 2}), entity.NewColumnFloatVector("v", 64, vectors))
			c, stderr := milvusRun(t, e, dir)
			if _ = c.Run(); c.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit code %d, want 1 and %q\n%s", c.ProcessState.ExitCode(), test.want, stderr)
			}
			collect := racflow(t, dir, "knowledge", "gc", "--all", "p.hcl") // gc does not remove it, either
			collect.Env = e.env()
			must(t, collect)
			rows, err := m.Query(ctx, name, nil, "pk > 0", []string{"pk"})
			if err != nil || rows.Len() != 2 {
				t.Errorf("then it has %d rows, %v", rows.Len(), err)
			}
			after, err := m.DescribeCollection(ctx, name)
			if err != nil || after.Schema.Description != test.description || len(after.Schema.Fields) != 2 {
				t.Errorf("then it is %+v, %v", after, err)
			}
		})
	}
}
