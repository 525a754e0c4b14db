package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// Stage calls a stage's methods over the connection. It has the methods of every kind; methods that
// the stage lacks return an error with sdk.CodeInvalid.
type Stage struct {
	Conn      Caller
	Name      string      // what errors about its replies begin with, as "sample.mine: plugin mine 1.0.0"; empty: "the plugin"
	Reads     sdk.Columns // of an item; other columns are not sent
	Vector    int         // dimension of an embedder's vectors
	Sparse    bool        // it accepts sparse vectors
	FitsFirst bool        // the stage is an sdk.Fitter
	FitReads  sdk.Columns // of the rows of Fit
	Pends     bool        // results may be sdk.Pending
	Attaches  bool        // the stage may be an sdk.Attacher
	StateDir  string      // where Fit writes
	Examples  sdk.Draw    // random examples that the stage wants
	Chosen    []byte      // values that the stage resolved, a JSON object
}

// Fit streams requests to the plugin and returns its reply.
func (c *Conn) Fit(ctx context.Context, requests iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error) {
	if err := c.acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.credits.Release(1)
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends a stream that an error left open
	const method = stagepb.Stage_Fit_FullMethodName
	stream, err := stagepb.NewStageClient(c.grpc).Fit(ctx)
	if err != nil {
		return nil, c.explain(ctx, method, err)
	}
	for request, err := range requests {
		if err != nil {
			return nil, err
		}
		if size := proto.Size(request); size > MaxMessage {
			return nil, tooLarge(size)
		}
		if err := stream.Send(request); errors.Is(err, io.EOF) {
			break // the plugin has replied early; with what, is asked below
		} else if err != nil {
			return nil, c.explain(ctx, method, err)
		}
	}
	reply, err := stream.CloseAndRecv()
	return reply, c.explain(ctx, method, err)
}

// Fits reports whether the stage is an sdk.Fitter.
func (s *Stage) Fits() bool { return s.FitsFirst }

// Fit implements sdk.Fitter.
func (s *Stage) Fit(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	reply, err := s.Conn.Fit(ctx, func(yield func(*stagepb.FitRequest, error) bool) {
		for batch, err := range rows {
			var in *stagepb.Rows
			if err == nil {
				in, err = s.suited(EncodeTraining(batch, s.FitReads))
			}
			if !yield(&stagepb.FitRequest{Rows: in}, err) || err != nil {
				return
			}
		}
	})
	if err == nil && reply.GetFailure() != nil {
		err = DecodeFailure(reply.GetFailure())
	}
	return err
}

// Caller is a Conn, or a wrapper that repeats calls on a Conn.
type Caller interface {
	Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error
	Fit(context.Context, iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error)
}

var (
	_ sdk.Fitter    = (*Stage)(nil)
	_ sdk.Chunker   = (*Stage)(nil)
	_ sdk.Enricher  = (*Stage)(nil)
	_ sdk.Reranker  = (*Stage)(nil)
	_ sdk.Prompter  = (*Stage)(nil)
	_ sdk.Sampler   = (*Stage)(nil)
	_ sdk.Elector   = (*Stage)(nil)
	_ sdk.Retriever = (*Stage)(nil)
	_ sdk.Drawer    = (*Stage)(nil)

	_ sdk.EmbedCollector  = (*Stage)(nil)
	_ sdk.SampleCollector = (*Stage)(nil)
	_ sdk.EnrichCollector = (*Stage)(nil)
	_ sdk.Resolver        = (*Stage)(nil)
)

// Dimension implements sdk.Embedder.
func (s *Stage) Dimension() int { return s.Vector }

// Random implements sdk.Drawer.
func (s *Stage) Random() sdk.Draw { return s.Examples }

// Resolved implements sdk.Resolver.
func (s *Stage) Resolved() (values map[string]any) {
	_ = json.Unmarshal(s.Chosen, &values) // Described has checked it
	return values
}

// Described makes a Stage from a plugin's description of it and from the reply to Configure.
func Described(info sdk.Stage, stateDir string, r *stagepb.ConfigureReply) (*Stage, error) {
	s := &Stage{
		Reads: info.Reads, FitReads: info.FitReads, Pends: info.Pends, Attaches: info.Attaches != "", Vector: int(r.GetDimension()), Sparse: r.GetSparse(), FitsFirst: r.GetFits(), StateDir: stateDir,
		Examples: sdk.Draw{Count: int(r.GetRandom()), Parts: int(r.GetRandomParts()), Shared: r.GetRandomShared(), Seed: r.GetRandomSeed()},
		Chosen:   r.GetResolvedJson(),
	}
	if len(s.Chosen) == 0 {
		return s, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(s.Chosen, &values); err != nil {
		return nil, fmt.Errorf("what the stage has resolved is not a JSON object: %w", err)
	}
	if err := sdk.CheckResolved(values, info.Arguments); err != nil {
		return nil, fmt.Errorf("what the stage has resolved: %w", err)
	}
	return s, nil
}

// suited returns rows in a form that the stage accepts.
func (s *Stage) suited(rows *stagepb.Rows, err error) (*stagepb.Rows, error) {
	if err == nil && !s.Sparse {
		Densify(rows)
	}
	return rows, err
}

// Embed implements sdk.Embedder.
func (s *Stage) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	return s.CollectVectors(ctx, "", role, texts)
}

// CollectVectors implements sdk.EmbedCollector.
func (s *Stage) CollectVectors(ctx context.Context, handle string, role sdk.Role, texts []string) ([][]float32, error) {
	req := &stagepb.EmbedRequest{Role: stagepb.Role(role), Texts: ValidAll(texts), Handle: handle}
	return rows(ctx, s, stagepb.Stage_Embed_FullMethodName, req, len(texts), func(r *stagepb.Rows, n int) ([][]float32, error) {
		return DecodeVectors(r, n, s.Vector)
	}, CheckVector)
}

// Chunk implements sdk.Chunker. Texts must be valid UTF-8: spans count the bytes of the original
// text.
func (s *Stage) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	in, err := EncodeDocuments(documents)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Chunk_FullMethodName, &stagepb.ChunkRequest{Rows: in}, len(documents), func(r *stagepb.Rows, _ int) ([][]sdk.Chunk, error) {
		return DecodeChunks(r, documents)
	}, nil)
}

// Enrich implements sdk.Enricher. The passages of a document must follow each other; the document is
// sent once. Texts must be valid UTF-8, unless the whole text is one passage.
func (s *Stage) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return s.CollectAdditions(ctx, "", passages)
}

// CollectAdditions implements sdk.EnrichCollector.
func (s *Stage) CollectAdditions(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	in, err := EncodePassages(passages)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.EnrichRequest{Rows: in, Handle: handle}
	return rows(ctx, s, stagepb.Stage_Enrich_FullMethodName, req, len(passages), DecodeAdditions, nil)
}

// Rerank implements sdk.Reranker.
func (s *Stage) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	in, err := s.suited(EncodeBatch(b, s.Reads))
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	candidates := make([]int, len(b.Items))
	for i := range b.Items {
		candidates[i] = len(b.Items[i].Candidates)
	}
	return rows(ctx, s, stagepb.Stage_Rerank_FullMethodName, &stagepb.RerankRequest{Rows: in}, len(b.Items), func(r *stagepb.Rows, _ int) ([][]sdk.Ranked, error) {
		return DecodeRankings(r, candidates)
	}, CheckRanking)
}

// Prompt implements sdk.Prompter.
func (s *Stage) Prompt(ctx context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	in, err := s.suited(EncodeBatch(b, s.Reads))
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Prompt_FullMethodName, &stagepb.PromptRequest{Rows: in}, len(b.Items), DecodePrompts, nil)
}

// Sample implements sdk.Sampler.
func (s *Stage) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	return s.CollectSamples(ctx, "", b)
}

// CollectSamples implements sdk.SampleCollector.
func (s *Stage) CollectSamples(ctx context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	in, err := s.suited(EncodeBatch(b, s.Reads))
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.SampleRequest{Rows: in, Handle: handle}
	return rows(ctx, s, stagepb.Stage_Sample_FullMethodName, req, len(b.Items), DecodeSamples, CheckSamples)
}

// Elect implements sdk.Elector.
func (s *Stage) Elect(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	in, err := s.suited(EncodeBatch(b, s.Reads))
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Elect_FullMethodName, &stagepb.ElectRequest{Rows: in}, len(b.Items), DecodeVerdicts, CheckVerdict)
}

// call makes a call that succeeds or fails as a whole, and fills reply.
func (s *Stage) call(ctx context.Context, method string, request any, reply interface{ GetFailure() *stagepb.Failure }) error {
	if err := s.Conn.Invoke(ctx, method, request, reply); err != nil {
		return err
	}
	if f := reply.GetFailure(); f != nil {
		return DecodeFailure(f)
	}
	return nil
}

// rows makes a call, decodes the n rows of its reply, and checks their numbers with check, unless
// that is nil. If single rows failed, it returns sdk.RowErrors together with the results; if results
// come later, *sdk.Pending.
func rows[T any](ctx context.Context, s *Stage, method string, request any, n int, decode func(*stagepb.Rows, int) ([]T, error), check func(T) error) ([]T, error) {
	reply := &stagepb.RowsReply{}
	if err := s.call(ctx, method, request, reply); err != nil {
		return nil, err
	}
	if reply.GetPending() != nil {
		later, err := DecodePending(reply.GetPending())
		if err == nil && !s.Pends {
			err = errors.New("its results come later, and its description does not say that they may")
		}
		if err != nil {
			return nil, s.malformed(err)
		}
		return nil, later
	}
	results, err := decode(reply.GetRows(), n)
	if err != nil {
		return nil, s.malformed(err)
	}
	failed, err := DecodeRowErrors(reply.GetErrors(), n)
	if err != nil {
		return nil, s.malformed(err)
	}
	for i := range results {
		if check == nil {
			break
		}
		if err := check(results[i]); err != nil && failed[i] == nil {
			if failed == nil {
				failed = sdk.RowErrors{}
			}
			failed[i] = s.returned(err)
		}
	}
	if failed != nil {
		return results, failed
	}
	return results, nil
}

func (s *Stage) name() string { return cmp.Or(s.Name, "the plugin") }

func (s *Stage) malformed(err error) error {
	return &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("%s sent a reply that is malformed: %w", s.name(), err)}
}

func (s *Stage) returned(err error) error { return &NumberError{s.name(), err} }

// NumberError is the error of a row whose result has a number that is not finite or out of bounds.
// The stage itself made this error.
type NumberError struct {
	Stage string
	Err   error // names the number, and says what it should be
}

func (e *NumberError) Error() string { return e.Stage + " returned " + e.Err.Error() }

func (e *NumberError) Unwrap() error { return e.Err }

// Open makes a collection ready; see sdk.Store.
func (s *Stage) Open(ctx context.Context, collection string, schema sdk.Schema) (sdk.Collection, error) {
	reply := &stagepb.OpenCollectionReply{}
	err := s.call(ctx, stagepb.Stage_OpenCollection_FullMethodName, &stagepb.OpenCollectionRequest{
		Collection: Valid(collection), Dimension: uint32(schema.Dimension), Analyzer: Valid(schema.Analyzer),
	}, reply)
	if err != nil {
		return sdk.Collection{}, err
	}
	return DecodeCollection(reply.GetCollection()), nil
}

// Attach opens the collection that the config names; see sdk.Attacher. A stage that does not declare
// Attaches is not asked.
func (s *Stage) Attach(ctx context.Context) (sdk.Attached, error) {
	if !s.Attaches {
		return sdk.Attached{}, sdk.Invalid(fmt.Errorf("%s cannot serve a collection that another program makes: use another store, or give the knowledge a source", s.name()))
	}
	reply := &stagepb.AttachReply{}
	if err := s.call(ctx, stagepb.Stage_Attach_FullMethodName, &stagepb.AttachRequest{}, reply); err != nil {
		return sdk.Attached{}, err
	}
	if errs := reply.GetErrors(); len(errs) > 0 {
		return sdk.Attached{}, sdk.Invalid(DecodeArgumentErrors(errs)[0])
	}
	a, err := DecodeAttached(reply.GetAttached())
	if err != nil {
		return sdk.Attached{}, s.malformed(err)
	}
	return a, nil
}

// List returns the existing collections; see sdk.Store.
func (s *Stage) List(ctx context.Context) ([]sdk.Collection, error) {
	reply := &stagepb.ListCollectionsReply{}
	if err := s.call(ctx, stagepb.Stage_ListCollections_FullMethodName, &stagepb.ListCollectionsRequest{}, reply); err != nil {
		return nil, err
	}
	list := make([]sdk.Collection, len(reply.GetCollections()))
	for i, c := range reply.GetCollections() {
		list[i] = DecodeCollection(c)
	}
	return list, nil
}

// Drop removes a collection; see sdk.Store.
func (s *Stage) Drop(ctx context.Context, collection string) error {
	return s.call(ctx, stagepb.Stage_Drop_FullMethodName, &stagepb.DropRequest{Collection: Valid(collection)}, &stagepb.WriteReply{})
}

// Put adds entries; see sdk.Store.
func (s *Stage) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	in, err := s.suited(EncodeEntries(entries))
	if err != nil {
		return sdk.Invalid(err)
	}
	reply := &stagepb.WriteReply{}
	if err := s.call(ctx, stagepb.Stage_Put_FullMethodName, &stagepb.PutRequest{Collection: Valid(collection), Rows: in}, reply); err != nil {
		return err
	}
	failed, err := DecodeRowErrors(reply.GetErrors(), len(entries))
	if err != nil {
		return s.malformed(err)
	}
	if failed != nil {
		return failed
	}
	return nil
}

// Delete removes entries; see sdk.Store.
func (s *Stage) Delete(ctx context.Context, collection string, ids []string) error {
	return s.call(ctx, stagepb.Stage_Delete_FullMethodName, &stagepb.DeleteRequest{Collection: Valid(collection), Ids: ValidAll(ids)}, &stagepb.WriteReply{})
}

// Commit makes changes durable and visible; see sdk.Store.
func (s *Stage) Commit(ctx context.Context, collection string, note []byte) error {
	req := &stagepb.CommitRequest{Collection: Valid(collection), Note: bytes.Clone(note)}
	return s.call(ctx, stagepb.Stage_Commit_FullMethodName, req, &stagepb.WriteReply{})
}

// Retrieve implements sdk.Retriever.
func (s *Stage) Retrieve(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, error) {
	search, err := EncodeSearch(collection, r, queries)
	if err == nil {
		search.Queries, err = s.suited(search.Queries, nil)
	}
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Search_FullMethodName, search, len(queries), DecodeCandidates, CheckCandidates)
}

// Get returns entries by id; see sdk.Store.
func (s *Stage) Get(ctx context.Context, collection string, ids []string) ([]sdk.Entry, error) {
	req := &stagepb.GetRequest{Collection: Valid(collection), Ids: ValidAll(ids)}
	return rows(ctx, s, stagepb.Stage_Get_FullMethodName, req, len(ids), DecodeEntries, nil)
}

// Scan walks through a collection; see sdk.Store.
func (s *Stage) Scan(ctx context.Context, collection string, q sdk.Scan) (sdk.Page, error) {
	reply := &stagepb.ScanReply{}
	err := s.call(ctx, stagepb.Stage_Scan_FullMethodName, &stagepb.ScanRequest{
		Collection: Valid(collection), After: Valid(q.After), Limit: uint32(q.Limit),
		Labels: ValidAll(q.Labels), Texts: q.Texts, Vectors: q.Vectors,
	}, reply)
	if err != nil {
		return sdk.Page{}, err
	}
	entries, err := DecodeEntries(reply.GetRows(), int(reply.GetRows().GetN()))
	if err != nil {
		return sdk.Page{}, s.malformed(err)
	}
	for i := range entries {
		if err := CheckDirection(entries[i].Vector); err != nil {
			return sdk.Page{}, fmt.Errorf("%w (entry %d of a page)", s.returned(err), i+1)
		}
	}
	return sdk.Page{Entries: entries, Next: reply.GetCursor()}, nil
}
