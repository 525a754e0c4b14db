package docexpand

import (
	"errors"
	"fmt"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/delimit"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of the enrichers.
type Config struct {
	chatmodel.Config
	Temperature float64  `config:"temperature" default:"0" min:"0" max:"100" doc:"How varied the answers are; 0 gives the likeliest text."`
	MaxTokens   int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of the answer for one passage, without what a model thinks before it; 0: enough for n; -1: no limit."`
	BatchSize   int      `config:"batch_size" affects_output:"false" default:"8" min:"1" doc:"How many passages of a document are asked about at a time."`
	Pack        int      `config:"pack" default:"1" min:"1" max:"100" doc:"How many passages of a batch are asked about in one request."`
	System      sdk.Path `config:"system" doc:"A Go template to write the system message with, in place of the built-in one; it may use .N and join."`
	Prompt      sdk.Path `config:"prompt" doc:"A Go template to write the user's message with, in place of the built-in one; it may use .N, .Title, .Texts, .Packed and join."`
}

// Kind is what distinguishes one enricher from another.
type Kind struct {
	Name           string // of the terms: what a model may write before them
	System, Prompt string // the built-in templates
	Sentences      bool   // terms are questions, one on a line; otherwise a line may hold several, with commas
	Tokens         int    // that a term takes, generously
	Characters     int    // of the longest term
}

// Data is what the templates see.
type Data struct {
	N      int      // how many terms a passage gets
	Title  string   // of the document, between <title> and </title>; empty: it has none. Always empty in the system message
	Texts  []string // the passages: one between <chunk> and </chunk>, or several between <chunk 1> and </chunk 1> and so on. None in the system message
	Packed bool     // the answer is to be a JSON object: number of the passage to a list of its terms
}

const (
	titleTag = "title"
	chunkTag = "chunk"
	maxTitle = 300 // characters
)

var delimiters = delimit.New(titleTag, chunkTag)

// New opens an enricher that adds n terms of a kind to each passage, with a config that
// Check finds no error in.
func New(k Kind, c Config, n int, setup sdk.Setup) (sdk.Enricher, error) {
	templates, err := load(k, c, n)
	if err != nil {
		return nil, err
	}
	return &enricher{kind: k, config: c, n: n, Pair: templates, Model: chatmodel.New(c.Config, setup)}, nil
}

// Check reports the errors that tags cannot find: sdk.ArgumentErrors.
func Check(k Kind, c Config, n int) error {
	var errs api.Errors
	errs.Require(c.Pack <= c.BatchSize, "pack", "it must be at most batch_size: the passages of a request are of one batch")
	_, err := load(k, c, n)
	return errors.Join(errs.Err(), err, c.Config.Check())
}

func load(k Kind, c Config, n int) (fewshot.Pair, error) {
	return fewshot.LoadPair(c.System, c.Prompt, [2]string{k.System, k.Prompt}, ".Texts", `join .Texts "\n"`,
		Data{N: n, Texts: []string{fewshot.Passage}}, Data{}, Data{N: n, Title: "title", Texts: []string{"text", "text"}, Packed: true})
}

type enricher struct {
	*chatmodel.Model
	fewshot.Pair
	kind   Kind
	config Config
	n      int
}

// Revision of the stages that ask for terms: raise it whenever one of them asks, or reads
// an answer, in another way. Templates count by themselves.
const Revision = "1"

// question asks for the terms of texts; packed asks for those of each text apart.
func (e *enricher) question(title string, texts []string, packed bool) (dialect.Request, error) {
	d := Data{N: e.n, Packed: packed}
	system, err := e.System.Write(d)
	if err != nil {
		return dialect.Request{}, err
	}
	if title != "" {
		d.Title = delimiters.Wrap(titleTag, title)
	}
	for i, text := range texts {
		tag := chunkTag
		if packed {
			tag = fmt.Sprint(chunkTag, " ", i+1)
		}
		d.Texts = append(d.Texts, delimiters.Wrap(tag, text))
	}
	user, err := e.Prompt.Write(d)
	r := e.Request(e.config.MaxTokens, e.n*e.kind.Tokens+40)
	r.MaxTokens *= len(texts)
	r.Temperature, r.Messages = &e.config.Temperature, []sdk.Message{
		{Role: sdk.MessageSystem, Text: system, Shared: true},
		{Role: sdk.MessageUser, Text: user},
	}
	return r, err
}
