package embed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// This file is an embedder that uses a model behind an OpenAI-compatible endpoint for embeddings (OpenAI, vLLM, TEI,
// llama.cpp, Ollama, gateways).
//
// Texts are packed into requests within OpenAI's limits: at most 2,048 texts and 300,000 tokens. If the server
// refuses a request, the request is divided in halves until single refused texts are found; their rows fail. If no
// single text is refused, the request was too large, and later requests are smaller. A text of spaces only is not
// sent; its vector is zero.
//
// Vectors come as base64, or as numbers if the server knows no base64. Each reply is checked: one vector for each
// text, in the order of their index, of one length, finite, not zero. Every vector is normalised to norm 1, and
// cached under its text and the other fields of the request.
//
// The length of the vectors must be known before the first batch. Without an argument for it, the stage embeds one
// text when it opens, and waits until the service is available. The state folder stores the length, so that the next
// run sends no request.
//
// A model's documentation gives the prefixes for queries and passages: "query: " and "passage: " for E5, for example.

type openAIEmbedder struct {
	*api.Client
	config    openAIConfig
	dimension int
	notePath  string // file of the dimension; empty: none

	inputs  atomic.Int32 // most texts per request
	works   atomic.Bool  // a request has succeeded
	base64  atomic.Bool  // a request with base64 has succeeded
	numbers atomic.Bool  // the server refuses base64
}

// Dimension is the length of the vectors.
func (e *openAIEmbedder) Dimension() int { return e.dimension }

// together bounds the number of simultaneous requests of one batch.
const together = 8

// Embed implements sdk.Embedder.
func (e *openAIEmbedder) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	rows := map[string][]int{} // by text; every text is embedded once
	var distinct []string
	for i, text := range texts {
		text = strings.ToValidUTF8(text, "\uFFFD")
		if strings.TrimSpace(strings.ReplaceAll(text, "\x00", "")) == "" {
			vectors[i] = make([]float32, e.dimension) // nothing to embed
			continue
		}
		text = e.prefix(role) + text
		if rows[text] == nil {
			distinct = append(distinct, text)
		}
		rows[text] = append(rows[text], i)
	}
	missing, err := e.recall(ctx, distinct, func(text string, v []float32) {
		for _, row := range rows[text] {
			vectors[row] = v
		}
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	failed := sdk.RowErrors{}
	var calls errgroup.Group // no context: if one request fails, the vectors of others are still cached
	calls.SetLimit(together)
	for _, part := range e.pack(missing) {
		calls.Go(func() error {
			found, refused, err := e.embed(ctx, part)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for i, text := range part {
				for _, row := range rows[text] {
					if vectors[row] = found[i]; refused[i] != nil {
						failed[row] = refused[i]
					}
				}
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return vectors, failed
	}
	return vectors, nil
}

func (e *openAIEmbedder) prefix(role sdk.Role) string {
	if role == sdk.RoleQuery {
		return e.config.QueryPrefix
	}
	return e.config.PassagePrefix
}

// keys returns the cache keys of texts' vectors.
func (e *openAIEmbedder) keys(texts []string) []sdk.Key {
	identity, keys := e.identity(), make([]sdk.Key, len(texts))
	for i, text := range texts {
		keys[i] = sdk.KeyOf(identity, text)
	}
	return keys
}

// recall calls found with cached vectors and returns the other texts.
func (e *openAIEmbedder) recall(ctx context.Context, texts []string, found func(string, []float32)) (missing []string, err error) {
	values, err := e.CacheGet(ctx, e.keys(texts))
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		if len(values[i]) == 4*e.dimension {
			found(text, floats(values[i]))
		} else {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// pack divides texts among requests.
func (e *openAIEmbedder) pack(texts []string) (parts [][]string) {
	most, bytes, from := int(e.inputs.Load()), 0, 0
	for i, text := range texts {
		if i > from && (i-from == most || bytes+len(text) > mostBytes) {
			parts, from, bytes = append(parts, texts[from:i]), i, 0
		}
		bytes += len(text)
	}
	if from < len(texts) {
		parts = append(parts, texts[from:])
	}
	return parts
}

// embed returns the vectors of texts, and errors for texts without one. It divides a refused request in halves.
func (e *openAIEmbedder) embed(ctx context.Context, texts []string) (vectors [][]float32, refused map[int]error, err error) {
	vectors, refused, err = e.request(ctx, texts)
	switch {
	case err == nil:
		return vectors, refused, nil
	case !api.BadRequest(err):
		return nil, nil, err
	case len(texts) == 1:
		return make([][]float32, 1), map[int]error{0: err}, nil
	}
	if !e.works.Load() { // the reason may not be the texts
		for _, i := range []int{0, len(texts) - 1} {
			if _, _, again := e.request(ctx, texts[i:i+1]); again == nil {
				break
			} else if i > 0 {
				return nil, nil, fmt.Errorf("%w (nor does it take one text)", err)
			}
		}
	}
	half := len(texts) / 2
	vectors, refused = make([][]float32, 0, len(texts)), map[int]error{}
	for _, part := range [][]string{texts[:half], texts[half:]} {
		v, r, err := e.embed(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		for i, why := range r {
			refused[len(vectors)+i] = why
		}
		vectors = append(vectors, v...)
	}
	if len(refused) == 0 { // too many texts in one request
		lower(&e.inputs, len(texts)-half)
	}
	return vectors, refused, nil
}

type openAIConfig struct {
	BaseURL string `config:"base_url" default:"https://api.openai.com/v1" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server, up to and with its version."`
	Model   string `config:"model,required" example:"text-embedding-3-small" min_length:"1" doc:"Name of the model, as the server knows it."`
	api.Service
	Dimension     int    `config:"dimension" default:"0" min:"0" max:"65536" doc:"Length of the model's vectors; 0 embeds a text to find out, once."`
	Dimensions    int    `config:"dimensions" default:"0" min:"0" max:"65536" doc:"Length to which the server is asked to shorten vectors, for models that can; 0 does not ask."`
	QueryPrefix   string `config:"query_prefix" example:"query: " doc:"What the model wants before a text that searches."`
	PassagePrefix string `config:"passage_prefix" example:"passage: " doc:"What the model wants before a text that is searched."`
	MaxInputs     int    `config:"max_inputs" affects_output:"false" default:"256" min:"1" max:"2048" doc:"Most texts in one request."`
}

// reserved are the fields of a request that the body argument must not set.
var reserved = []string{"model", "input", "encoding_format", "dimensions"}

// Limits of OpenAI's endpoint. A token is assumed to have three bytes, which overestimates the tokens of most texts.
const (
	mostBytes = 3 * 250_000
	maxReply  = 128 << 20
)

// OpenAI describes the embedder.
func OpenAI() sdk.Stage {
	return sdk.EmbedStage("openai", "Embeds with a model behind an OpenAI-compatible server.", openOpenAI, sdk.Revision("1"), sdk.Network(), sdk.Addresses(openAIConfig.addresses), sdk.PreferBatch(256), sdk.Validates(openAIConfig.check))
}

func openOpenAI(ctx context.Context, setup sdk.Setup, c openAIConfig) (sdk.Embedder, error) {
	e := &openAIEmbedder{config: c, Client: api.New(c.service(setup))}
	e.inputs.Store(int32(c.MaxInputs))
	if err := e.measure(ctx, setup.StateDir); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (c openAIConfig) addresses() map[string]string { return map[string]string{"": c.BaseURL} }

func (c openAIConfig) service(setup sdk.Setup) api.Config {
	return api.Config{Service: c.Service, BaseURL: c.BaseURL, Reserved: reserved, MaxReply: maxReply, Host: setup.Host, Log: setup.Log}
}

// check reports the errors that tags cannot find.
func (c openAIConfig) check() error {
	var errs api.Errors
	errs.Require(c.Dimension == 0 || c.Dimensions == 0 || c.Dimension == c.Dimensions, "dimension", "it must be what dimensions asks for; leave one of them out")
	return errors.Join(errs.Err(), c.service(sdk.Setup{}).Check())
}

// note is the file in the state folder that stores the length of a model's vectors.
type note struct {
	Model     string `json:"model"` // identity of the embedder
	Dimension int    `json:"dimension"`
}

// measure finds out the length of the vectors.
func (e *openAIEmbedder) measure(ctx context.Context, state string) error {
	if e.dimension = max(e.config.Dimension, e.config.Dimensions); e.dimension > 0 {
		return nil
	}
	if state != "" {
		e.notePath = filepath.Join(state, "embed-openai.json")
	}
	var known note
	if raw, err := os.ReadFile(e.notePath); err == nil && json.Unmarshal(raw, &known) == nil && known.Model == e.identity() && known.Dimension > 0 {
		e.dimension = known.Dimension
		return nil
	}
	var vectors [][]float32
	err := api.Patiently(ctx, func() error {
		found, failed, err := e.request(ctx, []string{"dimension"})
		vectors = found
		return cmp.Or(err, failed[0])
	})
	if err != nil {
		return fmt.Errorf("finding the length of the vectors: %w (with the argument dimension nothing is asked)", err)
	}
	e.dimension = len(vectors[0])
	if e.notePath == "" {
		return nil
	}
	raw, err := json.Marshal(note{e.identity(), e.dimension})
	if err == nil {
		err = os.WriteFile(e.notePath, raw, 0o600)
	}
	if err != nil {
		e.WarnOnce("note", "the length of the vectors cannot be stored and will be asked for again", "error", err)
	}
	return nil
}

// identity names everything that a vector depends on besides its text and its length. It is a request without texts
// and without fields that change no vector.
func (e *openAIEmbedder) identity() string {
	c := api.Essential(e.config)
	r := api.Request{Client: e.Client}
	return fmt.Sprintf("%x", r.Key(path, input{Model: c.Model, Dimensions: c.Dimensions}))
}

// Fingerprint implements sdk.Fingerprinter.
func (e *openAIEmbedder) Fingerprint() string {
	return fmt.Sprintf("%x", sdk.KeyOf(e.identity(), strconv.Itoa(e.dimension), e.config.QueryPrefix, e.config.PassagePrefix))
}

// lower reduces the number of texts per request; it never raises it.
func lower(most *atomic.Int32, to int) {
	for now := most.Load(); int32(to) < now && !most.CompareAndSwap(now, int32(to)); now = most.Load() {
	}
}
