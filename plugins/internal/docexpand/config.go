package docexpand

import (
	"errors"
	"fmt"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/delimit"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of the enrichers.
type Config struct {
	chatmodel.Config
	Temperature float64  `config:"temperature" default:"0" min:"0" max:"100" doc:"How varied the answers are; 0 gives the likeliest text."`
	MaxTokens   int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of the answer for one passage; 0: enough for n, no limit for a model that thinks first; -1: no limit."`
	BatchSize   int      `config:"batch_size" affects_output:"false" default:"8" min:"1" doc:"How many passages of a document are asked about at a time."`
	Pack        int      `config:"pack" default:"1" min:"1" max:"100" doc:"How many passages of a batch are asked about in one request."`
	System      sdk.Path `config:"system" doc:"A Go template to write the system message with, in place of the built-in one; it may use .N and join."`
	Prompt      sdk.Path `config:"prompt" doc:"A Go template to write the user's message with, in place of the built-in one; it may use .N, .Title, .Texts, .Packed and join."`
}

// Kind is what tells one enricher from another.
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

// New opens an enricher that adds n terms of a kind to each passage. Its errors are
// those of Check.
func New(k Kind, c Config, n int, setup sdk.Setup) (sdk.Enricher, error) {
	e := &enricher{kind: k, config: c, n: n}
	if err := e.load(); err != nil {
		return nil, err
	}
	var err error
	e.model, err = chatmodel.New(c.Config, setup)
	return e, err
}

// Check reports what tags cannot say: ArgumentErrors.
func Check(k Kind, c Config, n int) error {
	var faults api.Faults
	faults.Need(c.Pack <= c.BatchSize, "pack", "it must be at most batch_size: the passages of a request are of one batch")
	return errors.Join(faults.Err(), (&enricher{kind: k, config: c, n: n}).load(), c.Config.Check())
}

// load reads the templates.
func (e *enricher) load() error {
	var faults api.Faults
	var err error
	trials := []any{
		Data{}, Data{N: e.n, Texts: []string{"text"}}, Data{N: e.n, Title: "title", Texts: []string{"text", "text"}, Packed: true},
	}
	e.system, err = fewshot.Load(e.config.System, e.kind.System, trials...)
	faults.Take("system", err)
	e.prompt, err = fewshot.Load(e.config.Prompt, e.kind.Prompt, trials...)
	faults.Take("prompt", err)
	if err == nil {
		const passage = "<chunk>\nx\n</chunk>"
		faults.Need(e.prompt.Shows(passage, Data{N: e.n, Texts: []string{passage}}), "prompt", "it does not show .Texts, so that the model would not see the passages")
	}
	return faults.Err()
}

type enricher struct {
	kind   Kind
	config Config
	n      int
	model  *chatmodel.Model
	system fewshot.Template
	prompt fewshot.Template
}

// Close closes idle connections.
func (e *enricher) Close() error {
	e.model.Close()
	return nil
}

// Revision of the stages that ask for terms: raise it whenever one asks otherwise than
// its templates say, or reads an answer otherwise.
const Revision = "1"

// Fingerprint implements sdk.Fingerprinter.
func (e *enricher) Fingerprint() string {
	return e.system.Fingerprint() + " " + e.prompt.Fingerprint()
}

// question asks for the terms of texts; packed says that their answers are to be
// told apart.
func (e *enricher) question(title string, texts []string, packed bool) (chatmodel.Question, error) {
	d := Data{N: e.n, Packed: packed}
	system, err := e.system.Write(d)
	if err != nil {
		return chatmodel.Question{}, err
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
	user, err := e.prompt.Write(d)
	return chatmodel.Question{
		Messages: []sdk.Message{
			{Role: sdk.MessageSystem, Text: system, Shared: true},
			{Role: sdk.MessageUser, Text: user},
		},
		Temperature: e.config.Temperature,
		MaxTokens:   len(texts) * e.model.Limit(e.config.MaxTokens, e.n*e.kind.Tokens+40),
	}, err
}
