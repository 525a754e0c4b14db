package cli

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestMilvusRights compares the privileges in examples/milvus/roles.py with those that racflow's
// calls need, according to Milvus's API.
func TestMilvusRights(t *testing.T) {
	e := startEngine(t)
	r := startProxy(t, e)
	dir := milvusFolder(t, 100, 5)
	try := func(args ...string) {
		t.Helper()
		c := racflow(t, dir, args...)
		c.Env = append(os.Environ(), "MILVUS_ADDRESS="+r.engine.address())
		must(t, c)
	}
	try("run", "--input", "items.tsv", "p.hcl")
	written := r.take()
	for _, args := range [][]string{{"run", "--input", "items.tsv", "p.hcl"}, {"eval", "--input", "items.tsv", "p.hcl"}, {"ask", "p.hcl", "the order of topic2"}} {
		try(args...)
	}
	read := r.take()
	// Removed rows are deleted. Another embedder makes another index version, and the old one can be
	// removed. A version that is not in the server's memory is listed, too.
	write(t, dir, "rows.tsv", rows(50))
	try("run", "--input", "items.tsv", "p.hcl")
	write(t, dir, "p.hcl", strings.Replace(milvusFile, "dimension = 128", "dimension = 64", 1))
	try("run", "--input", "items.tsv", "p.hcl")
	release(t, e)
	try("knowledge", "list", "p.hcl")
	try("knowledge", "gc", "--all", "p.hcl")
	maps.Copy(written, r.take())

	listed := listedPrivileges(t)
	if diff := cmp.Diff(listed["READER"], privileges(t, read)); diff != "" {
		t.Errorf("the reader's list, and what was needed:\n%s", diff)
	}
	all := slices.Sorted(slices.Values(slices.Concat(listed["READER"], listed["WRITER"], listed["WRITER_OF_DATABASE"])))
	if diff := cmp.Diff(all, privileges(t, written)); diff != "" {
		t.Errorf("the writer's lists, and what was needed:\n%s", diff)
	}
}

// listedPrivileges are the lists in examples/milvus/roles.py, by their names.
func listedPrivileges(t *testing.T) map[string][]string {
	t.Helper()
	listed := map[string][]string{}
	text := readFile(t, "../../examples/milvus", "roles.py")
	for _, list := range regexp.MustCompile(`(?m)^([A-Z_]+) = \[(.*)\]$`).FindAllStringSubmatch(text, -1) {
		for _, privilege := range strings.Split(list[2], ", ") {
			listed[list[1]] = append(listed[list[1]], strings.Trim(privilege, `"`))
		}
	}
	return listed
}

// release removes all collections from the server's memory.
func release(t *testing.T, e *milvusEngine) {
	t.Helper()
	m := e.client()
	reply, err := m.(*client.GrpcClient).Service.ShowCollections(t.Context(), &milvuspb.ShowCollectionsRequest{})
	if err != nil || len(reply.CollectionNames) == 0 {
		t.Fatalf("the collections are %v, %v", reply, err)
	}
	for _, name := range reply.CollectionNames {
		if err := m.ReleaseCollection(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// privileges returns the names of the privileges that methods need, sorted.
func privileges(t *testing.T, methods map[string]bool) []string {
	t.Helper()
	service := milvuspb.File_milvus_proto.Services().ByName("MilvusService")
	names := map[string]bool{}
	for name := range methods {
		method := service.Methods().ByName(protoreflect.Name(name))
		if method == nil {
			t.Fatalf("%s is not of Milvus", name)
		}
		options := method.Input().Options()
		if proto.HasExtension(options, commonpb.E_PrivilegeExtObj) { // otherwise everybody may call it
			needed := proto.GetExtension(options, commonpb.E_PrivilegeExtObj).(*commonpb.PrivilegeExt)
			names[strings.TrimPrefix(needed.ObjectPrivilege.String(), "Privilege")] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
