package main

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// recorder is a server between racflow and Milvus that writes down which methods are
// called.
type recorder struct {
	address string
	mu      sync.Mutex
	methods map[string]bool
}

// record starts a recorder; it ends with the test.
func record(t *testing.T, e *milvusEngine) *recorder {
	t.Helper()
	target, err := grpc.NewClient(e.address(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(untouched{}), grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{address: listener.Addr().String()}
	r.take()
	server := grpc.NewServer(grpc.ForceServerCodecV2(untouched{}), grpc.MaxRecvMsgSize(1<<30), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, ok := grpc.MethodFromServerStream(stream)
		if !ok {
			return status.Error(codes.Internal, "a call without a method")
		}
		r.mu.Lock()
		r.methods[method] = true
		r.mu.Unlock()
		var request, reply mem.BufferSlice
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		headers, _ := metadata.FromIncomingContext(stream.Context())
		if err := target.Invoke(metadata.NewOutgoingContext(stream.Context(), headers), method, &request, &reply); err != nil {
			return err
		}
		return stream.SendMsg(&reply)
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); target.Close() })
	return r
}

// take returns the methods since it was called last.
func (r *recorder) take() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	methods := r.methods
	r.methods = map[string]bool{}
	return methods
}

// untouched passes messages on as they are.
type untouched struct{}

var _ encoding.CodecV2 = untouched{}

func (untouched) Name() string { return "proto" }

func (untouched) Marshal(v any) (mem.BufferSlice, error) {
	b := *v.(*mem.BufferSlice)
	b.Ref()
	return b, nil
}

func (untouched) Unmarshal(b mem.BufferSlice, v any) error {
	b.Ref()
	*v.(*mem.BufferSlice) = b
	return nil
}

// TestMilvusRights compares the privileges in examples/milvus/roles.py with those that
// racflow's calls need, as Milvus's API says of each.
func TestMilvusRights(t *testing.T) {
	e := startEngine(t)
	r := record(t, e)
	dir := milvusFolder(t, 10_500, 5) // a commit of so many ends with a flush
	try := func(args ...string) {
		t.Helper()
		c := racflow(t, dir, args...)
		c.Env = append(os.Environ(), "MILVUS_ADDRESS="+r.address)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	try("run", "--input", "items.tsv", "p.hcl")
	written := r.take()
	for _, args := range [][]string{{"run", "--input", "items.tsv", "p.hcl"}, {"eval", "--input", "items.tsv", "p.hcl"}, {"ask", "p.hcl", "the order of topic2"}} {
		try(args...)
	}
	read := r.take()
	// Rows that are gone are deleted. Another embedder makes another generation and leaves
	// one that can be removed; one that is not in the server's memory is listed as well.
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rows.tsv", rows(50))
	try("run", "--input", "items.tsv", "p.hcl")
	write("p.hcl", strings.Replace(milvusFile, "dimension = 128", "dimension = 64", 1))
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
	text, err := os.ReadFile("../../examples/milvus/roles.py")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for _, list := range regexp.MustCompile(`(?m)^([A-Z_]+) = \[(.*)\]$`).FindAllStringSubmatch(string(text), -1) {
		for _, privilege := range strings.Split(list[2], ", ") {
			listed[list[1]] = append(listed[list[1]], strings.Trim(privilege, `"`))
		}
	}
	return listed
}

// release takes all collections out of the server's memory.
func release(t *testing.T, e *milvusEngine) {
	t.Helper()
	m, err := client.NewClient(t.Context(), client.Config{Address: e.address()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
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

// privileges are the names of those that methods need, sorted.
func privileges(t *testing.T, methods map[string]bool) []string {
	t.Helper()
	service := milvuspb.File_milvus_proto.Services().ByName("MilvusService")
	names := map[string]bool{}
	for path := range methods {
		method := service.Methods().ByName(protoreflect.Name(path[strings.LastIndex(path, "/")+1:]))
		if method == nil {
			t.Fatalf("%s is not of Milvus", path)
		}
		options := method.Input().Options()
		if proto.HasExtension(options, commonpb.E_PrivilegeExtObj) { // else everybody may
			needed := proto.GetExtension(options, commonpb.E_PrivilegeExtObj).(*commonpb.PrivilegeExt)
			names[strings.TrimPrefix(needed.ObjectPrivilege.String(), "Privilege")] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
