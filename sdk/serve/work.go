package serve

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/support"
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
			return s.suited(wire.EncodeVectors(v, e.Dimension()))
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

// Search implements the service. It asks a store that ranks by itself; for other stores it fuses the
// legs.
func (s *Server) Search(ctx context.Context, req *stagepb.SearchRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Search", reply, func(stage any) error {
		r, queries, err := wire.DecodeSearch(req)
		if err == nil {
			err = support.CheckFusion(r.Fusion)
		}
		if err != nil {
			return sdk.Invalid(err)
		}
		retriever, ok := stage.(sdk.Retriever)
		if !ok {
			store, ok := stage.(sdk.Store)
			if !ok {
				return sdk.Invalid(errNotOffered)
			}
			retriever = fused{store}
		}
		lists, err := retriever.Retrieve(ctx, req.GetCollection(), r, queries)
		return fill(reply, len(queries), lists, err, func(lists [][]sdk.Candidate) (*stagepb.Rows, error) {
			return wire.EncodeCandidates(lists, r.Texts)
		})
	})
}

// fused makes a Store a Retriever, by the shared formulas.
type fused struct{ sdk.Store }

func (f fused) Retrieve(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, error) {
	if r.Mode != sdk.ModeHybrid { // a single leg keeps its order in the fusion
		r.NumCandidates = min(r.NumCandidates, r.TopK)
	}
	var failed sdk.RowErrors
	hits, rowsErr := f.Search(ctx, collection, r.Search, queries)
	if rowsErr != nil && !errors.As(rowsErr, &failed) {
		return nil, rowsErr
	}
	if len(hits) != len(queries) {
		return nil, fmt.Errorf("the store returned hits for %d of %d queries", len(hits), len(queries))
	}
	lists := make([][]sdk.Candidate, len(hits))
	var bare missing
	for i, h := range hits {
		lists[i] = support.Fuse(h, r.Fusion, r.TopK)
		bare.note(h, lists[i])
	}
	if len(bare.ids) == 0 {
		return lists, rowsErr
	}
	entries, err := f.Get(ctx, collection, bare.ids)
	if err != nil {
		return nil, err
	}
	if len(entries) != len(bare.ids) {
		return nil, fmt.Errorf("the store returned %d of %d entries", len(entries), len(bare.ids))
	}
	for i := range lists {
		lists[i] = bare.complete(lists[i], entries, queries[i].Filter)
	}
	return lists, rowsErr
}

// missing holds the candidates whose entry no hit carried.
type missing struct {
	ids   []string // each id once
	place map[string]int
}

// note adds the candidates of one query that came without an entry.
func (m *missing) note(h sdk.Hits, list []sdk.Candidate) {
	carried := map[string]bool{}
	for _, side := range [][]sdk.Hit{h.Dense, h.Lexical} {
		for i := range side {
			if side[i].Entry != nil {
				carried[side[i].ID] = true
			}
		}
	}
	if m.place == nil {
		m.place = make(map[string]int, 4*len(list)) // many queries find the same neighbours
	}
	for i := range list {
		id := list[i].ID
		if _, ok := m.place[id]; !ok && !carried[id] {
			m.place[id] = len(m.ids)
			m.ids = append(m.ids, id)
		}
	}
}

// complete fills in the requested entries. It leaves out a candidate whose entry was deleted since
// the search. It also leaves out an entry that changed so that the filter no longer selects it: the
// entry may belong to somebody else by now.
func (m *missing) complete(list []sdk.Candidate, entries []sdk.Entry, filter *sdk.Filter) []sdk.Candidate {
	kept := list[:0]
	for i := range list {
		c := list[i]
		if at, ok := m.place[c.ID]; ok {
			e := &entries[at]
			if e.ID == "" || !filter.Match(e.ID, e.Label, e.Meta) {
				continue
			}
			c.Text, c.Label, c.Context, c.Meta = e.Text, e.Label, e.Context, e.Meta
		}
		kept = append(kept, c)
	}
	return kept
}

// OpenCollection implements the service.
func (s *Server) OpenCollection(ctx context.Context, req *stagepb.OpenCollectionRequest) (*stagepb.OpenCollectionReply, error) {
	reply := &stagepb.OpenCollectionReply{}
	return reply, work(ctx, s, "OpenCollection", reply, func(store sdk.Store) error {
		c, err := store.Open(ctx, req.GetCollection(), sdk.Schema{Dimension: int(req.GetDimension()), Analyzer: req.GetAnalyzer()})
		reply.Collection = wire.EncodeCollection(c)
		return err
	})
}

// Attach implements the service.
func (s *Server) Attach(ctx context.Context, _ *stagepb.AttachRequest) (*stagepb.AttachReply, error) {
	reply := &stagepb.AttachReply{}
	return reply, work(ctx, s, "Attach", reply, func(store sdk.Attacher) error {
		a, err := store.Attach(ctx)
		if errors.As(err, new(*sdk.ArgumentError)) {
			reply.Errors = wire.EncodeArgumentErrors(err)
			return nil
		}
		reply.Attached = wire.EncodeAttached(a)
		return err
	})
}

// ListCollections implements the service.
func (s *Server) ListCollections(ctx context.Context, _ *stagepb.ListCollectionsRequest) (*stagepb.ListCollectionsReply, error) {
	reply := &stagepb.ListCollectionsReply{}
	return reply, work(ctx, s, "ListCollections", reply, func(store sdk.Store) error {
		list, err := store.List(ctx)
		for _, c := range list {
			reply.Collections = append(reply.Collections, wire.EncodeCollection(c))
		}
		return err
	})
}

// write runs a call that changes a collection. Only Put fails single rows.
func (s *Server) write(ctx context.Context, what string, do func(sdk.Store) error) (*stagepb.WriteReply, error) {
	reply := &stagepb.WriteReply{}
	return reply, work(ctx, s, what, reply, func(store sdk.Store) error {
		err := do(store)
		var failed sdk.RowErrors
		if errors.As(err, &failed) {
			reply.Errors, err = wire.EncodeRowErrors(failed), nil
		}
		return err
	})
}

// Put implements the service.
func (s *Server) Put(ctx context.Context, req *stagepb.PutRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Put", func(store sdk.Store) error {
		entries, err := wire.DecodeEntries(req.GetRows(), int(req.GetRows().GetN()))
		if err != nil {
			return sdk.Invalid(err)
		}
		return store.Put(ctx, req.GetCollection(), entries)
	})
}

// Delete implements the service.
func (s *Server) Delete(ctx context.Context, req *stagepb.DeleteRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Delete", func(store sdk.Store) error { return store.Delete(ctx, req.GetCollection(), req.GetIds()) })
}

// Commit implements the service.
func (s *Server) Commit(ctx context.Context, req *stagepb.CommitRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Commit", func(store sdk.Store) error { return store.Commit(ctx, req.GetCollection(), req.GetNote()) })
}

// Drop implements the service.
func (s *Server) Drop(ctx context.Context, req *stagepb.DropRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Drop", func(store sdk.Store) error { return store.Drop(ctx, req.GetCollection()) })
}

// Get implements the service.
func (s *Server) Get(ctx context.Context, req *stagepb.GetRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Get", reply, func(store sdk.Store) error {
		entries, err := store.Get(ctx, req.GetCollection(), req.GetIds())
		return fill(reply, len(req.GetIds()), entries, err, wire.EncodeEntries)
	})
}

// Scan implements the service.
func (s *Server) Scan(ctx context.Context, req *stagepb.ScanRequest) (*stagepb.ScanReply, error) {
	reply := &stagepb.ScanReply{}
	return reply, work(ctx, s, "Scan", reply, func(store sdk.Store) error {
		page, err := store.Scan(ctx, req.GetCollection(), sdk.Scan{
			After: req.GetAfter(), Limit: int(req.GetLimit()), Labels: req.GetLabels(), Texts: req.GetTexts(), Vectors: req.GetVectors(),
		})
		if err != nil {
			return err
		}
		reply.Rows, err = s.suited(wire.EncodeEntries(page.Entries))
		reply.Cursor = wire.Valid(page.Next)
		return err
	})
}

// suited returns rows in a form that the engine accepts.
func (s *Server) suited(rows *stagepb.Rows, err error) (*stagepb.Rows, error) {
	if err == nil && !s.sparse.Load() {
		wire.Densify(rows)
	}
	return rows, err
}

// work calls do with the stage as the interface T. It puts every error into the reply, so that there
// is always a reply. Its own error means that the call came at the wrong time.
func work[T any](ctx context.Context, s *Server, what string, reply proto.Message, do func(T) error) error {
	stage, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	t, ok := stage.(T)
	if !ok {
		setFailure(reply, sdk.Invalid(errNotOffered))
		return nil
	}
	if err := s.guard(what, func() error { return do(t) }); err != nil {
		setFailure(reply, err)
	} else if size := proto.Size(reply); size > wire.MaxMessage {
		setFailure(reply, sdk.Invalid(fmt.Errorf("the reply has %d MiB, more than the %d of a message; use smaller batches", size>>20, wire.MaxMessage>>20)))
	}
	return nil
}

var errNotOffered = errors.New("a stage of this kind does not do that")

// setFailure turns a reply into the failure of the whole call.
func setFailure(reply proto.Message, err error) {
	proto.Reset(reply)
	m := reply.ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName("failure"), protoreflect.ValueOfMessage(wire.EncodeFailure(err).ProtoReflect()))
}

// enter returns the stage for a call; the call ends when leave is called. A server that is being
// closed accepts no more calls: Close would wait for them.
func (s *Server) enter(ctx context.Context) (stage any, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, status.Error(codes.Unavailable, "the plugin is being closed")
	case s.stage == nil:
		return nil, nil, status.Error(codes.FailedPrecondition, "Configure comes before all work")
	}
	s.calls.Add(1)
	id := new(byte)
	s.active[id] = ctx
	return s.stage, func() {
		s.mu.Lock()
		delete(s.active, id)
		s.mu.Unlock()
		s.calls.Done()
	}, nil
}

// Alive implements the service.
func (s *Server) Alive(context.Context, *stagepb.AliveRequest) (*stagepb.AliveReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := &stagepb.AliveReply{}
	for _, ctx := range s.active {
		if ctx.Err() != nil {
			reply.Overdue++
		}
	}
	return reply, nil
}

// batch decodes a batch, calls the stage and encodes one result per row.
func batch[T any](ctx context.Context, rows *stagepb.Rows, reply *stagepb.RowsReply,
	call func(context.Context, sdk.Batch) ([]T, error), encode func([]T) *stagepb.Rows) error {
	b, err := wire.DecodeBatch(rows)
	if err != nil {
		return sdk.Invalid(err)
	}
	results, err := call(ctx, b)
	return fill(reply, len(b.Items), results, err, infallible(encode))
}

// fill puts the results of n rows, with the errors of single rows, into the reply, or that the
// results come later. There must be a result for each row, even for failed ones.
func fill[T any](reply *stagepb.RowsReply, n int, results []T, err error, encode func([]T) (*stagepb.Rows, error)) error {
	var failed sdk.RowErrors
	var later *sdk.Pending
	switch {
	case err == nil:
	case errors.As(err, &later):
		reply.Pending = wire.EncodePending(later)
		return nil
	case !errors.As(err, &failed):
		return err
	}
	if results == nil && failed != nil {
		results = make([]T, n) // every row failed, or the other rows have an empty result
	}
	if len(results) != n {
		return fmt.Errorf("the stage returned %d results for %d rows", len(results), n)
	}
	for row := range failed {
		if row < 0 || row >= n {
			return fmt.Errorf("the stage returned an error for row %d of %d", row, n)
		}
	}
	reply.Rows, err = encode(results)
	reply.Errors = wire.EncodeRowErrors(failed)
	return err
}

func infallible[T any](encode func([]T) *stagepb.Rows) func([]T) (*stagepb.Rows, error) {
	return func(results []T) (*stagepb.Rows, error) { return encode(results), nil }
}
