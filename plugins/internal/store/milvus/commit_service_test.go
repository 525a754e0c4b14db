package milvus

import (
	"context"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
)

// service is what the SDK calls. A method that is not here is not called.
type service struct {
	milvuspb.MilvusServiceClient
	*process
}

func (s service) CreateCollection(ctx context.Context, r *milvuspb.CreateCollectionRequest, _ ...grpc.CallOption) (*commonpb.Status, error) {
	return invoke[commonpb.Status](ctx, s.process, r)
}

func (s service) HasCollection(ctx context.Context, r *milvuspb.HasCollectionRequest, _ ...grpc.CallOption) (*milvuspb.BoolResponse, error) {
	return invoke[milvuspb.BoolResponse](ctx, s.process, r)
}

func (s service) DescribeCollection(ctx context.Context, r *milvuspb.DescribeCollectionRequest, _ ...grpc.CallOption) (*milvuspb.DescribeCollectionResponse, error) {
	return invoke[milvuspb.DescribeCollectionResponse](ctx, s.process, r)
}

func (s service) CreateIndex(ctx context.Context, r *milvuspb.CreateIndexRequest, _ ...grpc.CallOption) (*commonpb.Status, error) {
	return invoke[commonpb.Status](ctx, s.process, r)
}

func (s service) DescribeIndex(ctx context.Context, r *milvuspb.DescribeIndexRequest, _ ...grpc.CallOption) (*milvuspb.DescribeIndexResponse, error) {
	return invoke[milvuspb.DescribeIndexResponse](ctx, s.process, r)
}

func (s service) GetLoadState(ctx context.Context, r *milvuspb.GetLoadStateRequest, _ ...grpc.CallOption) (*milvuspb.GetLoadStateResponse, error) {
	return invoke[milvuspb.GetLoadStateResponse](ctx, s.process, r)
}

func (s service) Insert(ctx context.Context, r *milvuspb.InsertRequest, _ ...grpc.CallOption) (*milvuspb.MutationResult, error) {
	return invoke[milvuspb.MutationResult](ctx, s.process, r)
}

func (s service) Upsert(ctx context.Context, r *milvuspb.UpsertRequest, _ ...grpc.CallOption) (*milvuspb.MutationResult, error) {
	return invoke[milvuspb.MutationResult](ctx, s.process, r)
}

func (s service) Delete(ctx context.Context, r *milvuspb.DeleteRequest, _ ...grpc.CallOption) (*milvuspb.MutationResult, error) {
	return invoke[milvuspb.MutationResult](ctx, s.process, r)
}

func (s service) Query(ctx context.Context, r *milvuspb.QueryRequest, _ ...grpc.CallOption) (*milvuspb.QueryResults, error) {
	return invoke[milvuspb.QueryResults](ctx, s.process, r)
}
