package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Caller is a Conn, or what repeats calls on one.
type Caller interface {
	Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error
	Fit(context.Context, iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error)
}

// Witness is a Caller that wants to know of requests whose reply makes no sense.
type Witness interface {
	Nonsense(method string, request proto.Message, why error)
}

// Stage calls a stage's methods over the wire. It has the methods of every
// kind; those that the stage lacks return an error of sdk.CodeInvalid.
type Stage struct {
	Conn      Caller
	Name      string      // what errors about its replies begin with, as "sample.mine: plugin mine 1.0.0"; empty: "the plugin"
	Reads     sdk.Columns // of an item; no other column is sent
	Vector    int         // the dimension of an embedder's vectors
	FitsFirst bool        // it is an sdk.Fitter
	FitReads  sdk.Columns // of the rows of Fit
	Pends     bool        // its results may be sdk.Pending
	Attaches  bool        // it may be an sdk.Attacher
	StateDir  string      // where Fit writes
	Examples  sdk.Draw    // random examples that it wants
	Chosen    []byte      // what it resolved, a JSON object
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

// Described makes a Stage of what a plugin says of it and how it was configured.
func Described(info sdk.Stage, stateDir string, r *stagepb.ConfigureReply) (*Stage, error) {
	s := &Stage{
		Reads: info.Reads, FitReads: info.FitReads, Pends: info.Pends, Attaches: info.Attaches != "", Vector: int(r.GetDimension()), FitsFirst: r.GetFits(), StateDir: stateDir,
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

// Embed implements sdk.Embedder.
func (s *Stage) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	return s.CollectVectors(ctx, "", role, texts)
}

// CollectVectors implements sdk.EmbedCollector.
func (s *Stage) CollectVectors(ctx context.Context, handle string, role sdk.Role, texts []string) ([][]float32, error) {
	req := &stagepb.EmbedRequest{Role: stagepb.Role(role), Texts: wire.ValidAll(texts), Handle: handle}
	return rows(ctx, s, stagepb.Stage_Embed_FullMethodName, req, len(texts), func(r *stagepb.Rows, n int) ([][]float32, error) {
		return wire.DecodeVectors(r, n, s.Vector)
	}, wire.CheckVector)
}

// Chunk implements sdk.Chunker. Texts must be valid UTF-8: the spans are of the
// text as it was given.
func (s *Stage) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	in, err := wire.EncodeDocuments(documents)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Chunk_FullMethodName, &stagepb.ChunkRequest{Rows: in}, len(documents), func(r *stagepb.Rows, _ int) ([][]sdk.Chunk, error) {
		return wire.DecodeChunks(r, documents)
	}, nil)
}

// Enrich implements sdk.Enricher. The passages of a document must stand together;
// it is sent once. Texts must be valid UTF-8 unless they are one passage.
func (s *Stage) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return s.CollectAdditions(ctx, "", passages)
}

// CollectAdditions implements sdk.EnrichCollector.
func (s *Stage) CollectAdditions(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	in, err := wire.EncodePassages(passages)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.EnrichRequest{Rows: in, Handle: handle}
	return rows(ctx, s, stagepb.Stage_Enrich_FullMethodName, req, len(passages), wire.DecodeAdditions, nil)
}

// Rerank implements sdk.Reranker.
func (s *Stage) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	candidates := make([]int, len(b.Items))
	for i := range b.Items {
		candidates[i] = len(b.Items[i].Candidates)
	}
	return rows(ctx, s, stagepb.Stage_Rerank_FullMethodName, &stagepb.RerankRequest{Rows: in}, len(b.Items), func(r *stagepb.Rows, _ int) ([][]sdk.Ranked, error) {
		return wire.DecodeRankings(r, candidates)
	}, wire.CheckRanking)
}

// Prompt implements sdk.Prompter.
func (s *Stage) Prompt(ctx context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Prompt_FullMethodName, &stagepb.PromptRequest{Rows: in}, len(b.Items), wire.DecodePrompts, nil)
}

// Sample implements sdk.Sampler.
func (s *Stage) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	return s.CollectSamples(ctx, "", b)
}

// CollectSamples implements sdk.SampleCollector.
func (s *Stage) CollectSamples(ctx context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.SampleRequest{Rows: in, Handle: handle}
	return rows(ctx, s, stagepb.Stage_Sample_FullMethodName, req, len(b.Items), wire.DecodeSamples, wire.CheckSamples)
}

// Elect implements sdk.Elector.
func (s *Stage) Elect(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Elect_FullMethodName, &stagepb.ElectRequest{Rows: in}, len(b.Items), wire.DecodeVerdicts, wire.CheckVerdict)
}

// call makes a call that succeeds or fails as a whole, and fills reply.
func (s *Stage) call(ctx context.Context, method string, request any, reply interface{ GetFailure() *stagepb.Failure }) error {
	if err := s.Conn.Invoke(ctx, method, request, reply); err != nil {
		return err
	}
	if f := reply.GetFailure(); f != nil {
		return wire.DecodeFailure(f)
	}
	return nil
}

// rows makes a call, decodes the n rows of its reply and checks the numbers in
// them; a nil check finds nothing. It returns sdk.RowErrors beside the results
// where single rows failed, and *sdk.Pending where they come later.
func rows[T any](ctx context.Context, s *Stage, method string, request any, n int, decode func(*stagepb.Rows, int) ([]T, error), check func(T) error) ([]T, error) {
	reply := &stagepb.RowsReply{}
	witness := func(err error) {
		if w, ok := s.Conn.(Witness); ok {
			w.Nonsense(method, request.(proto.Message), err)
		}
	}
	malformed := func(err error) error {
		if err = s.malformed(err); IsBlamed(ctx) {
			witness(err)
		}
		return err
	}
	if err := s.call(ctx, method, request, reply); err != nil {
		return nil, err
	}
	if reply.GetPending() != nil {
		later, err := wire.DecodePending(reply.GetPending())
		if err == nil && !s.Pends {
			err = errors.New("its results come later, and its description does not say that they may")
		}
		if err != nil {
			return nil, malformed(err)
		}
		return nil, later
	}
	results, err := decode(reply.GetRows(), n)
	if err != nil {
		return nil, malformed(err)
	}
	failed, err := wire.DecodeRowErrors(reply.GetErrors(), n)
	if err != nil {
		return nil, malformed(err)
	}
	told := false
	for i := range results {
		if check == nil {
			break
		}
		if err := check(results[i]); err != nil && failed[i] == nil {
			if failed == nil {
				failed = sdk.RowErrors{}
			}
			failed[i] = s.returned(err)
			if !told { // one of a call is enough
				witness(failed[i])
				told = true
			}
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

// NumberError is the error of a row in whose result a number is not finite or out
// of its bounds. It is the stage's own fault, and that of no other.
type NumberError struct {
	Stage string
	Err   error // which number, and what it should be
}

func (e *NumberError) Error() string { return e.Stage + " returned " + e.Err.Error() }

func (e *NumberError) Unwrap() error { return e.Err }
