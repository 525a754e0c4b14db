package http

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	API     string `config:"api,required" one_of:"cohere,jina,voyage,tei,vllm,llamacpp" doc:"Whose form the service speaks; cohere is its version 2."`
	BaseURL string `config:"base_url" pattern:"^$|^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server; without it that of the company, for cohere, jina and voyage."`
	Path    string `config:"path" default:"/rerank" pattern:"^/[^\\s?#]*$" example:"/rerank" doc:"What follows the address."`
	Model   string `config:"model" doc:"Name of the model, as the service knows it; tei and llamacpp need none, the others do."`
	api.Service
	Context       bool `config:"context" default:"true" doc:"Send a candidate's context before its text."`
	MaxCharacters int  `config:"max_characters" default:"8000" min:"1" doc:"The longest document; what is beyond is cut off."`
	MaxDocuments  int  `config:"max_documents" default:"0" min:"0" doc:"Most documents in one request; 0: 32 for tei, 1000 for the others."`
}

// Stage describes the reranker.
func Stage() sdk.Stage {
	return sdk.RerankStage("http", "Reranks with a model behind a service: Cohere, Jina, Voyage, TEI, vLLM or llama.cpp.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidateTexts), sdk.Network(), sdk.PreferBatch(1), sdk.Validates(config.check), sdk.Example(`
			api      = "llamacpp"
			base_url = "http://127.0.0.1:8080"`))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Reranker, error) {
	c = c.complete()
	return &reranker{config: c, shape: shapes[c.API], Client: api.New(c.service(setup))}, nil
}

// complete fills in what depends on the service.
func (c config) complete() config {
	s := shapes[c.API]
	if c.BaseURL == "" {
		c.BaseURL = s.address
	}
	if c.MaxDocuments == 0 {
		c.MaxDocuments = s.most
	}
	return c
}

func (c config) service(setup sdk.Setup) api.Config {
	return api.Config{Service: c.Service, BaseURL: c.BaseURL, Reserved: reserved, Host: setup.Host, Log: setup.Log}
}

// check reports the errors that tags cannot find.
func (c config) check() error {
	c = c.complete()
	var errs api.Errors
	errs.Require(c.Model != "" || !shapes[c.API].model, "model", fmt.Sprintf("%s needs the name of a model", c.API))
	errs.Require(c.BaseURL != "", "base_url", fmt.Sprintf("%s runs on a machine of yours: give its address, such as http://127.0.0.1:8080", c.API))
	if c.BaseURL == "" {
		return errs.Err()
	}
	return errors.Join(errs.Err(), c.service(sdk.Setup{}).Check())
}

type reranker struct {
	*api.Client
	config config
	shape  shape
}

// Fingerprint implements sdk.Fingerprinter: scores depend on the completed config, but
// for what does not change results.
func (r *reranker) Fingerprint() string {
	return fmt.Sprintf("%x", sdk.KeyOf(fmt.Sprintf("%+v", api.Essential(r.config))))
}
