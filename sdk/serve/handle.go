package serve

import (
	"context"
	"errors"
	"io"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Embed implements the service.
func (s *Server) Embed(ctx context.Context, req *stagepb.EmbedRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Embed", reply, func(e sdk.Embedder) (err error) {
		var vectors [][]float32
		role, texts := sdk.Role(req.GetRole()), req.GetTexts()
		if req.GetHandle() == "" {
			vectors, err = e.Embed(ctx, role, texts)
		} else if c, ok := e.(sdk.EmbedCollector); ok {
			vectors, err = c.CollectVectors(ctx, req.GetHandle(), role, texts)
		} else {
			return sdk.Invalid(errNotOffered)
		}
		return fill(reply, len(texts), vectors, err, func(v [][]float32) (*stagepb.Rows, error) {
			return wire.EncodeVectors(v, e.Dimension())
		})
	})
}

// Chunk implements the service.
func (s *Server) Chunk(ctx context.Context, req *stagepb.ChunkRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Chunk", reply, func(c sdk.Chunker) error {
		documents, err := wire.DecodeDocuments(req.GetRows())
		if err != nil {
			return sdk.Invalid(err)
		}
		chunks, err := c.Chunk(ctx, documents)
		return fill(reply, len(documents), chunks, err, wire.EncodeChunks)
	})
}

// Enrich implements the service.
func (s *Server) Enrich(ctx context.Context, req *stagepb.EnrichRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Enrich", reply, func(e sdk.Enricher) error {
		passages, err := wire.DecodePassages(req.GetRows())
		if err != nil {
			return sdk.Invalid(err)
		}
		var additions []sdk.Addition
		if req.GetHandle() == "" {
			additions, err = e.Enrich(ctx, passages)
		} else if c, ok := e.(sdk.EnrichCollector); ok {
			additions, err = c.CollectAdditions(ctx, req.GetHandle(), passages)
		} else {
			return sdk.Invalid(errNotOffered)
		}
		return fill(reply, len(passages), additions, err, infallible(wire.EncodeAdditions))
	})
}

// Rerank implements the service.
func (s *Server) Rerank(ctx context.Context, req *stagepb.RerankRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Rerank", reply, func(r sdk.Reranker) error {
		return batch(ctx, req.GetRows(), reply, r.Rerank, wire.EncodeRankings)
	})
}

// Prompt implements the service.
func (s *Server) Prompt(ctx context.Context, req *stagepb.PromptRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Prompt", reply, func(p sdk.Prompter) error {
		return batch(ctx, req.GetRows(), reply, p.Prompt, wire.EncodePrompts)
	})
}

// Sample implements the service.
func (s *Server) Sample(ctx context.Context, req *stagepb.SampleRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Sample", reply, func(v sdk.Sampler) error {
		sample := v.Sample
		if req.GetHandle() != "" {
			c, ok := v.(sdk.SampleCollector)
			if !ok {
				return sdk.Invalid(errNotOffered)
			}
			sample = func(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
				return c.CollectSamples(ctx, req.GetHandle(), b)
			}
		}
		return batch(ctx, req.GetRows(), reply, sample, wire.EncodeSamples)
	})
}

// Elect implements the service.
func (s *Server) Elect(ctx context.Context, req *stagepb.ElectRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Elect", reply, func(e sdk.Elector) error {
		return batch(ctx, req.GetRows(), reply, e.Elect, wire.EncodeVerdicts)
	})
}

// Fit implements the service.
func (s *Server) Fit(stream stagepb.Stage_FitServer) error {
	ctx, reply := stream.Context(), &stagepb.FitReply{}
	var broken error
	err := work(ctx, s, "Fit", reply, func(f sdk.Fitter) error {
		return f.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
			for {
				req, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return
				}
				var rows []sdk.TrainingRow
				if broken = err; err == nil {
					rows, err = wire.DecodeTraining(req.GetRows())
				}
				if !yield(rows, err) || err != nil {
					return
				}
			}
		})
	})
	if err = errors.Join(err, broken); err != nil {
		return err
	}
	return stream.SendAndClose(reply)
}
