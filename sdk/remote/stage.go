package remote

import (
	"cmp"
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Call sends one request and returns its reply; Session.Call is one.
type Call func(context.Context, *stagepb.Request) (*stagepb.Reply, error)

// Stage calls a stage's methods over the wire. It has the methods of every
// kind; those that the stage lacks return an error of sdk.CodeInvalid.
type Stage struct {
	Call      Call
	Name      string      // what errors about its replies begin with, as "sample.mine: plugin mine 1.0.0"; empty: "the plugin"
	Reads     sdk.Columns // of an item; no other column is sent
	Vector    int         // the dimension of an embedder's vectors
	FitsFirst bool        // an embedder that wants Fit before Embed
	Examples  sdk.Draw    // random examples that it wants
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
)

// Dimension implements sdk.Embedder.
func (s *Stage) Dimension() int { return s.Vector }

// Fits reports whether the stage is an sdk.Fitter.
func (s *Stage) Fits() bool { return s.FitsFirst }

// Random implements sdk.Drawer.
func (s *Stage) Random() sdk.Draw { return s.Examples }

// Embed implements sdk.Embedder.
func (s *Stage) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	req := &stagepb.Request_Embed{Embed: &stagepb.Embed{Role: stagepb.Role(role), Texts: wire.ValidAll(texts)}}
	return rows(ctx, s, &stagepb.Request{Body: req}, len(texts), func(r *stagepb.Rows, n int) ([][]float32, error) {
		return wire.DecodeVectors(r, n, s.Vector)
	}, wire.CheckVector)
}

// Fit implements sdk.Fitter.
func (s *Stage) Fit(ctx context.Context, texts []string) error {
	return s.do(ctx, &stagepb.Request{Body: &stagepb.Request_Fit{Fit: &stagepb.Fit{Texts: wire.ValidAll(texts)}}})
}

// State implements sdk.Fitter.
func (s *Stage) State() ([]byte, error) {
	reply, err := s.ask(context.Background(), &stagepb.Request{Body: &stagepb.Request_State{State: &stagepb.State{}}})
	return reply.GetState(), err
}

// Chunk implements sdk.Chunker. Texts must be valid UTF-8: the spans are of the
// text as it was given.
func (s *Stage) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	in, err := wire.EncodeDocuments(documents)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.Request{Body: &stagepb.Request_Chunk{Chunk: &stagepb.Chunk{Rows: in}}}
	return rows(ctx, s, req, len(documents), func(r *stagepb.Rows, _ int) ([][]sdk.Chunk, error) {
		return wire.DecodeChunks(r, documents)
	}, nil)
}

// Enrich implements sdk.Enricher. The passages of a document must stand together;
// it is sent once. Texts must be valid UTF-8 unless they are one passage.
func (s *Stage) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	in, err := wire.EncodePassages(passages)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.Request{Body: &stagepb.Request_Enrich{Enrich: &stagepb.Enrich{Rows: in}}}
	return rows(ctx, s, req, len(passages), wire.DecodeAdditions, nil)
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
	req := &stagepb.Request{Body: &stagepb.Request_Rerank{Rerank: &stagepb.Rerank{Rows: in}}}
	return rows(ctx, s, req, len(b.Items), func(r *stagepb.Rows, _ int) ([][]sdk.Ranked, error) {
		return wire.DecodeRankings(r, candidates)
	}, wire.CheckRanking)
}

// Prompt implements sdk.Prompter.
func (s *Stage) Prompt(ctx context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.Request{Body: &stagepb.Request_Prompt{Prompt: &stagepb.Prompt{Rows: in}}}
	return rows(ctx, s, req, len(b.Items), wire.DecodePrompts, nil)
}

// Sample implements sdk.Sampler.
func (s *Stage) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.Request{Body: &stagepb.Request_Sample{Sample: &stagepb.Sample{Rows: in}}}
	return rows(ctx, s, req, len(b.Items), wire.DecodeSamples, wire.CheckSamples)
}

// Elect implements sdk.Elector.
func (s *Stage) Elect(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	in, err := wire.EncodeBatch(b, s.Reads)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.Request{Body: &stagepb.Request_Elect{Elect: &stagepb.Elect{Rows: in}}}
	return rows(ctx, s, req, len(b.Items), wire.DecodeVerdicts, wire.CheckVerdict)
}

// ask sends a request that succeeds or fails as a whole.
func (s *Stage) ask(ctx context.Context, req *stagepb.Request) (*stagepb.Reply, error) {
	reply, err := s.Call(ctx, req)
	if err != nil {
		return nil, err
	}
	if reply.GetFailure() != nil {
		return nil, wire.DecodeFailure(reply.GetFailure())
	}
	return reply, nil
}

func (s *Stage) do(ctx context.Context, req *stagepb.Request) error {
	_, err := s.ask(ctx, req)
	return err
}

// rows sends a request, decodes the n rows of its reply and checks the numbers in
// them; a nil check finds nothing. It returns sdk.RowErrors beside the results
// where single rows failed.
func rows[T any](ctx context.Context, s *Stage, req *stagepb.Request, n int, decode func(*stagepb.Rows, int) ([]T, error), check func(T) error) ([]T, error) {
	reply, err := s.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	results, err := decode(reply.GetRows(), n)
	if err != nil {
		return nil, s.malformed(err)
	}
	failed, err := wire.DecodeRowErrors(reply.GetErrors(), n)
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
	return fmt.Errorf("%s sent a reply that is malformed: %w", s.name(), err)
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

// DrawOf returns which random examples a configured stage wants.
func DrawOf(r *stagepb.ConfigureReply) sdk.Draw {
	return sdk.Draw{Count: int(r.GetRandom()), Shared: r.GetRandomShared(), Seed: r.GetRandomSeed()}
}
