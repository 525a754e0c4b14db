package rerank

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// This file is a reranker: a cross-encoder behind a service that scores documents against a query. It supports the
// APIs of Cohere (v2), Jina, Voyage, Text Embeddings Inference, vLLM and llama.cpp.
//
// A request contains one item and at most as many candidates as the service accepts. More candidates are sent in
// further requests. Their scores are comparable, since a cross-encoder scores each document by itself. A document is
// the candidate's context, if there is one, and below it the text, truncated to a number of characters. No service
// reports the number of tokens in advance, and some refuse documents that are too long for their model. Candidates
// without text are neither sent nor ranked.
//
// A reply is checked: every index belongs to a document and occurs once, and every score is finite. Documents that
// are missing in the reply are left out of the ranking, with a warning in the log; a reply without any is an error.
// Candidates with the same score keep their order.
//
// Scores are cached by their request. The cost counts in tokens, if the service reports them. Cohere bills searches,
// which a price per token cannot express.

type httpConfig struct {
	API     string `config:"api,required" one_of:"cohere,jina,voyage,tei,vllm,llamacpp" doc:"Whose form the service speaks; cohere is its version 2."`
	BaseURL string `config:"base_url" pattern:"^$|^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server; without it that of the company, for cohere, jina and voyage."`
	Path    string `config:"path" default:"/rerank" pattern:"^/[^\\s?#]*$" example:"/rerank" doc:"What follows the address."`
	Model   string `config:"model" doc:"Name of the model, as the service knows it; tei and llamacpp need none, the others do."`
	api.Service
	Context       bool `config:"context" default:"true" doc:"Send a candidate's context before its text."`
	MaxCharacters int  `config:"max_characters" default:"8000" min:"1" doc:"The longest document; what is beyond is cut off."`
	MaxDocuments  int  `config:"max_documents" default:"0" min:"0" doc:"Most documents in one request; 0: 32 for tei, 1000 for the others."`
}

// HTTP describes the reranker.
func HTTP() sdk.Stage {
	return sdk.RerankStage("http", "Reranks with a model behind a service: Cohere, Jina, Voyage, TEI, vLLM or llama.cpp.",
		openHttp, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidateTexts), sdk.Network(), sdk.Addresses(httpConfig.addresses), sdk.PreferBatch(1), sdk.Validates(httpConfig.check), sdk.Example(`
			api      = "llamacpp"
			base_url = "http://127.0.0.1:8080"`))
}

func openHttp(_ context.Context, setup sdk.Setup, c httpConfig) (sdk.Reranker, error) {
	c = c.complete()
	return &httpReranker{config: c, shape: shapes[c.API], Client: api.New(c.service(setup))}, nil
}

// complete fills in defaults that depend on the service.
func (c httpConfig) complete() httpConfig {
	s := shapes[c.API]
	if c.BaseURL == "" {
		c.BaseURL = s.address
	}
	if c.MaxDocuments == 0 {
		c.MaxDocuments = s.most
	}
	return c
}

func (c httpConfig) addresses() map[string]string {
	return map[string]string{"": c.complete().BaseURL}
}

func (c httpConfig) service(setup sdk.Setup) api.Config {
	return api.Config{Service: c.Service, BaseURL: c.BaseURL, Reserved: reserved, Host: setup.Host, Log: setup.Log}
}

// check reports the errors that tags cannot find.
func (c httpConfig) check() error {
	c = c.complete()
	var errs api.Errors
	errs.Require(c.Model != "" || !shapes[c.API].model, "model", fmt.Sprintf("%s needs the name of a model", c.API))
	errs.Require(c.BaseURL != "", "base_url", fmt.Sprintf("%s runs on a machine of yours: give its address, such as http://127.0.0.1:8080", c.API))
	if c.BaseURL == "" {
		return errs.Err()
	}
	return errors.Join(errs.Err(), c.service(sdk.Setup{}).Check())
}

type httpReranker struct {
	*api.Client
	config httpConfig
	shape  shape
}

// Fingerprint implements sdk.Fingerprinter: scores depend on the completed config, without arguments that do not
// change results.
func (r *httpReranker) Fingerprint() string {
	return fmt.Sprintf("%x", sdk.KeyOf(fmt.Sprintf("%+v", api.Essential(r.config))))
}

// together is how many requests of an item are sent at a time.
const together = 16

// Rerank implements sdk.Reranker.
func (r *httpReranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	return api.Rows(ctx, b.Items, r.rank)
}

// rank returns the candidates of one item, best first.
func (r *httpReranker) rank(ctx context.Context, item sdk.Item) ([]sdk.Ranked, error) {
	query, documents, of, err := textsOf(item, r.config.Context, r.config.MaxCharacters)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	scores := make([]float32, len(documents))
	var calls errgroup.Group // no context: if one request fails, the scores of others are still cached
	calls.SetLimit(together)
	for from := 0; from < len(documents); from += r.config.MaxDocuments {
		to := min(from+r.config.MaxDocuments, len(documents))
		calls.Go(func() error { return r.score(ctx, query, documents[from:to], scores[from:to]) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	var ranked []sdk.Ranked
	for i, s := range scores {
		if !math.IsNaN(float64(s)) {
			ranked = append(ranked, sdk.Ranked{Candidate: of[i], Score: s})
		}
	}
	slices.SortStableFunc(ranked, func(a, b sdk.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, nil
}

// textsOf returns what a service gets of an item: the query, and the documents of the candidates that have a text, with the
// index of the candidate of each. No documents: there is nothing to rank.
func textsOf(item sdk.Item, context bool, characters int) (query string, documents []string, of []int, err error) {
	for i := range item.Candidates {
		text := item.Candidates[i].Text
		if context && item.Candidates[i].Context != "" {
			text = item.Candidates[i].Context + "\n" + text
		}
		if text = fewshot.Clip(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), characters); text != "" {
			documents, of = append(documents, text), append(of, i)
		}
	}
	if query = strings.TrimSpace(strings.ToValidUTF8(item.Text, "\uFFFD")); query == "" && len(documents) > 0 {
		err = sdk.Invalid(errors.New(`the item has no text to rank by; on_error = "skip" leaves the order as it is`))
	}
	return query, documents, of, err
}

// score fills in the scores of the documents of one request. The score of a document that the service leaves out is
// NaN.
func (r *httpReranker) score(ctx context.Context, query string, documents []string, scores []float32) error {
	body := r.shape.body(r.config.Model, query, documents)
	var answer []scored
	request := api.Request{Client: r.Client, Read: func(reply []byte) (usage sdk.Usage, err error) {
		answer, err = r.shape.read(reply)
		return api.Usage(reply), err
	}}
	keys := []sdk.Key{request.Key(r.config.Path, body, r.config.API)}
	cached, err := r.CacheGet(ctx, keys)
	if err != nil {
		return err
	}
	if len(cached[0]) == 4*len(scores) {
		for i := range scores {
			scores[i] = math.Float32frombits(binary.LittleEndian.Uint32(cached[0][4*i:]))
		}
		return nil
	}
	request.OnReply = func() error {
		if err := r.take(answer, scores); err != nil {
			return err
		}
		value := make([]byte, 0, 4*len(scores))
		for _, s := range scores {
			value = binary.LittleEndian.AppendUint32(value, math.Float32bits(s))
		}
		r.CachePut(ctx, keys, [][]byte{value})
		return nil
	}
	err = request.Post(ctx, r.config.Path, body, nil)
	if api.BadRequest(err) {
		return fmt.Errorf("%w; if documents are too long for the model, lower max_characters, if they are too many, max_documents", err)
	}
	return err
}

// take checks the scores of a reply and sorts them in the order of the documents.
func (r *httpReranker) take(all []scored, scores []float32) error {
	for i := range scores {
		scores[i] = float32(math.NaN())
	}
	if len(all) == 0 {
		return api.NoAnswer(fmt.Sprintf("the server gave no scores for %d documents; check base_url, path and api", len(scores)))
	}
	seen := make([]bool, len(scores))
	for _, s := range all {
		switch {
		case s.Index == nil || *s.Index < 0 || *s.Index >= len(scores):
			return sdk.Transient(fmt.Errorf("the server gave a score for a document that is none of the %d it got", len(scores)), 0)
		case seen[*s.Index]:
			return sdk.Transient(fmt.Errorf("the server gave two scores for document %d", *s.Index), 0)
		case s.value() == nil || math.Abs(*s.value()) > math.MaxFloat32:
			return sdk.Invalid(fmt.Errorf("the server's score of document %d is not a number", *s.Index))
		}
		seen[*s.Index], scores[*s.Index] = true, float32(*s.value())
	}
	if missing := len(scores) - len(all); missing > 0 {
		r.WarnOnce("left out", "the service leaves documents out, and so does the ranking", "documents", len(scores), "left_out", missing)
	}
	return nil
}

// shape describes the requests and replies of a service.
type shape struct {
	address string // the service's own address; empty: users run the server themselves
	model   bool   // the request contains the model's name
	most    int    // documents per request
	fields  func(query string, documents []string) map[string]any
	scores  string // the field of the reply with the scores; empty: the reply is the list
}

// scored is the score of one document. Some services write null for NaN.
type scored struct {
	Index     *int     `json:"index"`
	Relevance *float64 `json:"relevance_score"`
	Score     *float64 `json:"score"`
}

func (s scored) value() *float64 {
	if s.Relevance != nil {
		return s.Relevance
	}
	return s.Score
}

// read reads the scores of a reply.
func (s shape) read(reply json.RawMessage) (all []scored, err error) {
	if s.scores != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(reply, &object); err != nil {
			return nil, err
		}
		reply = object[s.scores]
	}
	if reply != nil {
		err = json.Unmarshal(reply, &all)
	}
	return all, err
}

// Cohere and Voyage recommend or allow 1,000 documents per request. TEI accepts 32 unless it was started with another
// --max-client-batch-size.
const (
	mostDocuments = 1000
	teiDocuments  = 32
)

var shapes = map[string]shape{
	"cohere": {address: "https://api.cohere.com/v2", model: true, most: mostDocuments, fields: topN, scores: "results"},
	"jina": {
		address: "https://api.jina.ai/v1", model: true, most: mostDocuments, scores: "results",
		fields: func(query string, documents []string) map[string]any {
			fields := topN(query, documents)
			fields["return_documents"] = false
			return fields
		},
	},
	"voyage": {
		address: "https://api.voyageai.com/v1", model: true, most: mostDocuments, scores: "data",
		fields: func(query string, documents []string) map[string]any {
			return map[string]any{"query": query, "documents": documents, "top_k": len(documents), "return_documents": false, "truncation": true}
		},
	},
	"tei": {
		most: teiDocuments,
		fields: func(query string, documents []string) map[string]any {
			return map[string]any{"query": query, "texts": documents, "truncate": true, "return_text": false}
		},
	},
	"vllm":     {model: true, most: mostDocuments, fields: topN, scores: "results"},
	"llamacpp": {most: mostDocuments, fields: topN, scores: "results"},
}

// topN requests the scores of all documents.
func topN(query string, documents []string) map[string]any {
	return map[string]any{"query": query, "documents": documents, "top_n": len(documents)}
}

// reserved are the fields of a request that the body argument must not set.
var reserved = []string{"model", "query", "documents", "texts", "top_n", "top_k"}

// body returns a request in this shape.
func (s shape) body(model, query string, documents []string) map[string]any {
	fields := s.fields(query, documents)
	if model != "" {
		fields["model"] = model
	}
	return fields
}
