package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

type config struct {
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

// The limits of OpenAI's endpoint. A token is taken for three bytes here, which
// is too many tokens for most texts.
const (
	mostBytes = 3 * 250_000
	maxReply  = 128 << 20
)

// Stage describes the embedder.
func Stage() sdk.Stage {
	return sdk.EmbedStage("openai", "Embeds with a model behind an OpenAI-compatible server.", open, sdk.Revision("1"), sdk.Network(), sdk.PreferBatch(256), sdk.Validates(config.check))
}

func open(ctx context.Context, setup sdk.Setup, c config) (sdk.Embedder, error) {
	e := &embedder{config: c, Client: api.New(c.service(setup))}
	e.inputs.Store(int32(c.MaxInputs))
	if err := e.measure(ctx, setup.StateDir); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (c config) service(setup sdk.Setup) api.Config {
	return api.Config{Service: c.Service, BaseURL: c.BaseURL, Reserved: reserved, MaxReply: maxReply, Host: setup.Host, Log: setup.Log}
}

// check reports the errors that tags cannot find.
func (c config) check() error {
	var errs api.Errors
	errs.Require(c.Dimension == 0 || c.Dimensions == 0 || c.Dimension == c.Dimensions, "dimension", "it must be what dimensions asks for; leave one of them out")
	return errors.Join(errs.Err(), c.service(sdk.Setup{}).Check())
}

// note is the file in the state folder that holds the length of a model's vectors.
type note struct {
	Model     string `json:"model"` // identity of the embedder
	Dimension int    `json:"dimension"`
}

// measure finds out how long the vectors are.
func (e *embedder) measure(ctx context.Context, state string) error {
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

// identity names what a vector depends on besides its text, the length aside: a request
// without texts, and without what changes no vector.
func (e *embedder) identity() string {
	c := api.Essential(e.config)
	r := api.Request{Client: e.Client}
	return fmt.Sprintf("%x", r.Key(path, input{Model: c.Model, Dimensions: c.Dimensions}))
}

// Fingerprint implements sdk.Fingerprinter.
func (e *embedder) Fingerprint() string {
	return fmt.Sprintf("%x", sdk.KeyOf(e.identity(), strconv.Itoa(e.dimension), e.config.QueryPrefix, e.config.PassagePrefix))
}

// lower sets the most texts per request, never up.
func lower(most *atomic.Int32, to int) {
	for now := most.Load(); int32(to) < now && !most.CompareAndSwap(now, int32(to)); now = most.Load() {
	}
}
