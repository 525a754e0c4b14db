package attached

import (
	"context"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
)

// Service is what this package calls of a server. All of it reads; LoadCollection,
// which writes nothing either, is called only where Arguments.Load is set.
type Service interface {
	ShowCollections(context.Context, *milvuspb.ShowCollectionsRequest, ...grpc.CallOption) (*milvuspb.ShowCollectionsResponse, error)
	ShowPartitions(context.Context, *milvuspb.ShowPartitionsRequest, ...grpc.CallOption) (*milvuspb.ShowPartitionsResponse, error)
	DescribeCollection(context.Context, *milvuspb.DescribeCollectionRequest, ...grpc.CallOption) (*milvuspb.DescribeCollectionResponse, error)
	DescribeIndex(context.Context, *milvuspb.DescribeIndexRequest, ...grpc.CallOption) (*milvuspb.DescribeIndexResponse, error)
	GetLoadState(context.Context, *milvuspb.GetLoadStateRequest, ...grpc.CallOption) (*milvuspb.GetLoadStateResponse, error)
	LoadCollection(context.Context, *milvuspb.LoadCollectionRequest, ...grpc.CallOption) (*commonpb.Status, error)
	Query(context.Context, *milvuspb.QueryRequest, ...grpc.CallOption) (*milvuspb.QueryResults, error)
	Search(context.Context, *milvuspb.SearchRequest, ...grpc.CallOption) (*milvuspb.SearchResults, error)
}

// Caller makes a call to a server, and makes it again after failures that pass.
// what is for errors: "search". A reply that reports a failure is an error.
type Caller func(ctx context.Context, what string, do func(context.Context, Service) error) error
