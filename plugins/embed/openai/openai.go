package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	BaseURL       string            `config:"base_url" default:"https://api.openai.com/v1" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server, up to and with its version."`
	Model         string            `config:"model,required" example:"text-embedding-3-small" min_length:"1" doc:"Name of the model, as the server knows it."`
	APIKey        string            `config:"api_key,secret" doc:"Key for the server; none for one that wants none."`
	Dimension     int               `config:"dimension" default:"0" min:"0" max:"65536" doc:"Length of the model's vectors; 0 embeds a text to find out, once."`
	Dimensions    int               `config:"dimensions" default:"0" min:"0" max:"65536" doc:"Length to which the server is asked to shorten vectors, for models that can; 0 does not ask."`
	QueryPrefix   string            `config:"query_prefix" example:"query: " doc:"What the model wants before a text that searches."`
	PassagePrefix string            `config:"passage_prefix" example:"passage: " doc:"What the model wants before a text that is searched."`
	MaxInputs     int               `config:"max_inputs" affects_output:"false" default:"256" min:"1" max:"2048" doc:"Most texts in one request."`
	Headers       map[string]string `config:"headers,secret" doc:"Further headers of every request."`
	Body          string            `config:"body" example:"{\"user\": \"me\"}" doc:"A JSON object of further fields of every request."`
	Timeout       time.Duration     `config:"timeout" affects_output:"false" default:"60s" above:"0s" doc:"Longest time of one request."`
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
	client, err := api.New(c.service(setup))
	if err != nil {
		return nil, err
	}
	e := &embedder{config: c, client: client}
	e.inputs.Store(int32(c.MaxInputs))
	if err := e.measure(ctx, setup.StateDir); err != nil {
		client.Close()
		return nil, err
	}
	return e, nil
}

func (c config) service(setup sdk.Setup) api.Config {
	return api.Config{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Headers: c.Headers, Body: c.Body, Reserved: reserved,
		Timeout: c.Timeout, MaxReply: maxReply, Host: setup.Host, Log: setup.Log,
	}
}

// check reports what tags cannot say.
func (c config) check() error {
	var faults api.Faults
	faults.Need(c.Dimension == 0 || c.Dimensions == 0 || c.Dimension == c.Dimensions, "dimension", "it must be what dimensions asks for; leave one of them out")
	return errors.Join(faults.Err(), c.service(sdk.Setup{}).Check())
}

// noted is what the state folder knows of a server's model.
type noted struct {
	Model     string `json:"model"` // identity of the embedder
	Dimension int    `json:"dimension"`
}

// measure finds out how long the vectors are.
func (e *embedder) measure(ctx context.Context, state string) error {
	if e.dimension = max(e.config.Dimension, e.config.Dimensions); e.dimension > 0 {
		return nil
	}
	if state != "" {
		e.note = filepath.Join(state, "embed-openai.json")
	}
	var known noted
	if raw, err := os.ReadFile(e.note); err == nil && json.Unmarshal(raw, &known) == nil && known.Model == e.identity() && known.Dimension > 0 {
		e.dimension = known.Dimension
		return nil
	}
	e.opening = true
	vectors, failed, err := e.request(ctx, []string{"dimension"})
	e.opening = false
	if err == nil {
		err = failed[0]
	}
	if err != nil {
		return fmt.Errorf("finding the length of the vectors: %w (with the argument dimension nothing is asked)", err)
	}
	e.dimension = len(vectors[0])
	if e.note == "" {
		return nil
	}
	raw, err := json.Marshal(noted{e.identity(), e.dimension})
	if err == nil {
		err = os.WriteFile(e.note, raw, 0o600)
	}
	if err != nil {
		e.client.Once("note", "the length of the vectors cannot be noted: it will be asked for again", "error", err)
	}
	return nil
}

// identity names what a vector depends on besides its text, the length aside.
func (e *embedder) identity() string {
	c := e.config
	key := sdk.KeyOf("embedding 1", e.client.Address(), c.Model, strconv.Itoa(c.Dimensions), e.client.Body())
	return hex.EncodeToString(key[:])
}

// Fingerprint tells what the vectors depend on.
func (e *embedder) Fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %q", e.identity(), e.dimension, e.config.QueryPrefix, e.config.PassagePrefix))
	return hex.EncodeToString(sum[:])
}

// lower sets the most texts per request, never up.
func lower(most *atomic.Int32, to int) {
	for now := most.Load(); int32(to) < now && !most.CompareAndSwap(now, int32(to)); now = most.Load() {
	}
}
