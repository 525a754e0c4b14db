package modelserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Ask is one request as it came.
type Ask struct {
	Number int // of the request, from 0; probes that are apart have their own
	At     time.Time
	Path   string
	Header http.Header
	Body   []byte
	Batch  string // that it is a line of; empty: it came alone

	Model    string
	Prompt   string    // of /completions
	Messages []Message // of /chat/completions, and of /messages with the system prompt first
	N        int       // 1 where it is not given
	Fields   []string  // of the JSON object that the answer has to be, in order; nil: plain text
	Labels   []string  // that it allows by a schema's enum or structured_outputs.choice
	Inputs   []string  // of /embeddings

	apart       bool // a probe that is not counted
	dimensions  int
	base64      bool
	maxTokens   int
	logprobs    bool
	stop        []string
	effort      string
	thinking    bool // the request wants it, in Anthropic's form
	stream      bool
	streamUsage bool
	format      string // type of response_format
	tool        string // that the model is to call
	schemaText  string // as sent
	sent        map[string]json.RawMessage
	invalid     string
}

// Message is one of a chat.
type Message struct {
	Role    string
	Content string // with all its parts
	Marked  bool   // its last part has cache_control
}

// UnmarshalJSON reads a content that is a text or a list of parts.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var sent struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		return err
	}
	*m = Message{Role: sent.Role}
	if json.Unmarshal(sent.Content, &m.Content) == nil {
		return nil
	}
	var parts []struct {
		Type         string `json:"type"`
		Text         string `json:"text"`
		CacheControl *struct {
			Type string `json:"type"`
		} `json:"cache_control"`
	}
	if err := json.Unmarshal(sent.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type != "text" || p.Text == "" || p.CacheControl != nil && p.CacheControl.Type != "ephemeral" {
			return fmt.Errorf("a part of a message: %+v", p)
		}
		m.Content += p.Text
		m.Marked = p.CacheControl != nil
	}
	return nil
}

// Text is the prompt, or the chat's last message.
func (a Ask) Text() string {
	if len(a.Messages) > 0 {
		return a.Messages[len(a.Messages)-1].Content
	}
	return a.Prompt
}

// Whole is the prompt, or all messages of the chat in one text. It identifies the
// question, and its tokens are counted.
func (a Ask) Whole() string {
	if len(a.Messages) == 0 {
		return a.Prompt
	}
	var b strings.Builder
	for _, m := range a.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
	}
	return b.String()
}

// asking is what services take and what they do not.
var asking = []Behaviour{
	{
		Name: "refuses-temperature", Server: "takes no temperature",
		Racflow: leaves, Says: probed, set: field("temperature"),
	},
	{
		Name: "refuses-stop", Server: "takes no stop texts",
		Racflow: leaves + "; what is behind the first line is not read", Says: probed, set: field("stop"),
	},
	{
		Name: "refuses-n", Server: "takes no n above 1",
		Racflow: "asks for one answer at a time", Says: probed, set: field("n"),
	},
	{
		Name: "has-four-slots", Server: "takes no n above 4, and names it as llama.cpp does",
		Racflow: "finds out how many choices it takes, and asks for as many at a time", Says: probed, Try: AsMany, set: func(o *Options) { o.MaxN = 4 },
	},
	{
		Name: "refuses-seed", Server: "takes no seed",
		Racflow: leaves, Says: probed, set: field("seed"),
	},
	{
		Name: "refuses-max-tokens", Server: "takes max_completion_tokens in place of max_tokens",
		Racflow: "sends the field that is taken", set: field("max_tokens"),
	},
	{
		Name: "refuses-max-completion-tokens", Server: "takes max_tokens, but not max_completion_tokens",
		Racflow: "sends the field that is taken", set: field("max_completion_tokens"),
	},
	{
		Name: "refuses-logprobs", Server: "gives no logprobs and refuses to be asked for them",
		Racflow: leaves + "; answers weigh 1", Says: probed, set: field("logprobs"),
	},
	{
		Name: "refuses-schema", Server: "takes no response_format of type json_schema",
		Racflow: "asks for a JSON object", Says: probed, Try: AsObject, set: field("json_schema"),
	},
	{
		Name: "refuses-object", Server: "takes neither json_schema nor json_object as response_format",
		Racflow: "asks for the call of a tool", Says: "(2 failed)", Try: AsObject, set: field("json_schema", "json_object"),
	},
	{
		Name: "refuses-tools", Server: "takes neither a response_format nor tools",
		Racflow: "asks for plain text, and reads the object in it", Says: "(3 failed)", Try: AsObject, set: field("json_schema", "json_object", "tools"),
	},
	{
		Name: "refuses-namelessly", Server: "refuses temperature, and says so in the message of its error alone, without param",
		Racflow: "finds the name in the message", Says: probed,
		set: func(o *Options) { o.Unsupported, o.Nameless = append(o.Unsupported, "temperature"), true },
	},
	{
		Name: "streams-only", Server: "answers by streams alone",
		Racflow: "asks for streams, and joins them", set: field("whole"),
	},
	{
		Name: "reasons-like-openai", Server: "takes neither temperature, top_p, max_tokens, stop, logprobs nor an n above 1, and thinks without showing it",
		Racflow: "leaves these fields out, those that four calls of a probe have not found as they are refused, and has room for thoughts",
		Says:    "the model refuses a field of the request: it is asked without",
		set: func(o *Options) {
			field("temperature", "top_p", "max_tokens", "stop", "logprobs", "n")(o)
			o.Thinks = Silently
		},
	},
	{
		Name: "ignores-n", Server: "gives one choice, whatever n says",
		Racflow: "finds that out, and asks for one answer at a time", set: func(o *Options) { o.IgnoreN = true },
	},
	{
		Name: "ignores-formats", Server: "answers in plain text where a JSON object is asked for",
		Racflow: "reads the label all the same; without an object answers weigh 1", Says: "its answers weigh 1", Try: AsObject,
		set: func(o *Options) { o.IgnoreFormat = true },
	},
	{
		Name: "thinks-in-tags", Server: "writes what it thinks in <think> tags before its answer",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InTags },
	},
	{
		Name: "thinks-in-other-tags", Server: "writes what it thinks in <thinking> tags before its answer",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InOtherTags },
	},
	{
		Name: "thinks-in-a-field", Server: "gives what it thinks as reasoning_content",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InAField },
	},
	{
		Name: "thinks-silently", Server: "thinks without showing it, and counts the tokens",
		Racflow: thinks, set: func(o *Options) { o.Thinks = Silently },
	},
	{
		Name: "thinks-in-channels", Server: "writes what it thinks into a channel of its own, as gpt-oss does",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InChannels },
	},
	{
		Name: "stops-in-thoughts", Server: "thinks in <think> tags, and ends at a stop text there, too",
		Racflow: "sends no stop text, and has room for the thoughts", set: func(o *Options) { o.Thinks, o.Stops = InTags, true },
	},
}

const (
	leaves = "leaves the field out"
	probed = "(1 failed)" // the first call of the probe
	thinks = "has room for thoughts beside the answer, and reads the answer alone"
)

// embedding is what services for embeddings do.
var embedding = []Behaviour{
	{
		Name: "embeds-numbers", Server: "sends embeddings as numbers where base64 is asked for",
		Racflow: "reads numbers, too", Try: AsEmbedding, set: func(o *Options) { o.Base64 = Base64Ignored },
	},
	{
		Name: "refuses-base64", Server: "takes no encoding_format base64",
		Racflow: "asks for numbers", Try: AsEmbedding, set: func(o *Options) { o.Base64 = Base64Refused },
	},
	{
		Name: "shuffles-embeddings", Server: "sends embeddings in another order than that of the texts, with their index",
		Racflow: "puts them in order", Try: AsEmbedding, set: func(o *Options) { o.Shuffle = true },
	},
	{
		Name: "loses-embeddings", Server: "sends one embedding less than there are texts, once",
		Racflow: "asks again", Try: AsEmbedding, set: fault(Fault{Kind: Fewer, First: 1}),
	},
	{
		Name: "repeats-embeddings", Server: "sends one embedding more than there are texts, once",
		Racflow: "asks again", Try: AsEmbedding, set: fault(Fault{Kind: More, First: 1}),
	},
	{
		Name: "embeds-null", Server: "sends nulls in place of the numbers of its first reply",
		Racflow: "refuses these rows; where none is left, the run does not start", Exit: 1, Lost: true,
		Says: "the server's vector cannot be used", Try: AsEmbedding, set: fault(Fault{Kind: NaN, First: 1}),
	},
}

// probing begins the User-Agent of requests that only find out what a model takes.
const probing = "racflow (probe)"

// arrive records a request.
func (s *Server) arrive(r *http.Request, body []byte) Ask {
	a := Ask{At: time.Now(), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	probe := strings.HasPrefix(r.UserAgent(), probing)
	a.apart = probe && !s.options.Probes
	a.Batch, _ = r.Context().Value(batchKey{}).(string)
	if messages(a.Path) {
		a.readMessages()
	} else {
		a.read()
		a.stream = a.stream || s.options.Streams
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Number = len(s.asks)
	if a.apart {
		a.Number = len(s.probes)
	}
	if probe {
		s.probes = append(s.probes, a)
	}
	if !a.apart {
		s.asks = append(s.asks, a)
		s.inFlight++
		s.most = max(s.most, s.inFlight)
	}
	return a
}

func (s *Server) leave(a Ask) {
	if a.apart {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}

// block is the size of the pieces of a prompt that are cached, in characters:
// 16 tokens.
const block = 64

// charge counts the choices that a question gets, and the tokens of its prompt:
// all, and those that were cached.
func (s *Server) charge(a Ask, choices int) (in, cached int) {
	whole := a.Whole()
	defer func() { in += s.tokens(a.schemaText) }() // as for services that show it to the model
	if a.apart {
		return s.prompt(a), 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given[whole] += choices
	prefix, known := sha256.New(), true
	for end := block; end <= len(whole); end += block {
		_, _ = prefix.Write([]byte(whole[end-block : end]))
		sum := [32]byte(prefix.Sum(nil))
		if known = known && s.prefixes[sum]; known {
			cached = end / 4
		}
		s.prefixes[sum] = true
	}
	return s.prompt(a), cached
}

// prompt counts the tokens of a prompt.
func (s *Server) prompt(a Ask) int {
	if s.options.Count == nil || len(a.Messages) == 0 {
		return s.tokens(a.Whole())
	}
	sum := s.options.Template
	for _, m := range a.Messages {
		sum += s.options.Count(m.Content) + s.options.Frame
	}
	return sum
}

// Asks returns the requests so far, in the order in which they came, without probes
// unless Options.Probes is set.
func (s *Server) Asks() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asks)
}

// Probes returns the requests so far that only find out what a model takes: those whose
// User-Agent begins with "racflow (probe)".
func (s *Server) Probes() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.probes)
}

// Calls is the number of Asks.
func (s *Server) Calls() int { return len(s.Asks()) }

// MostAtOnce is the largest number of requests that were under way together.
func (s *Server) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Given is the number of choices that each question got, by its Whole, without those of
// replies that a fault truncated.
func (s *Server) Given() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.given)
}

func (s *Server) count(a Ask, u sdk.Usage) {
	if a.apart {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.Add(u)
}

// Used is the tokens of all requests that were answered, whatever the replies said of them, without
// those of probes unless Options.Probes is set.
func (s *Server) Used() sdk.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Doubled is how many choices were given beyond n for each question: those that were
// answered, and paid for, more than once.
func (s *Server) Doubled(n int) int {
	doubled := 0
	for _, given := range s.Given() {
		doubled += max(0, given-n)
	}
	return doubled
}

// schema is a JSON schema of an answer, as far as it is read.
type schema struct {
	Type       string   `json:"type"`
	Required   []string `json:"required"`
	Additional *bool    `json:"additionalProperties"`
	Properties map[string]struct {
		Type  string   `json:"type"`
		Enum  []string `json:"enum"`
		Items struct { // of a list
			Enum []string `json:"enum"`
		} `json:"items"`
	} `json:"properties"`
}

// texts is a list of texts, or one.
type texts []string

// UnmarshalJSON reads both forms.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = nil
		if one != "" {
			*t = texts{one}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

// request is the body of all three endpoints.
type request struct {
	Model               string          `json:"model"`
	Prompt              string          `json:"prompt"`
	Messages            []Message       `json:"messages"`
	N                   *int            `json:"n"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Logprobs            json.RawMessage `json:"logprobs"`
	Stop                texts           `json:"stop"`
	Effort              string          `json:"reasoning_effort"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name   string          `json:"name"`
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	StructuredOutputs struct {
		Choice []string `json:"choice"`
	} `json:"structured_outputs"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions"`
	EncodingFormat string   `json:"encoding_format"`
}

// read reads the body; an error of it goes into a.invalid.
func (a *Ask) read() {
	var r request
	if err := json.Unmarshal(a.Body, &r); err != nil {
		a.invalid = "the body: " + err.Error()
		return
	}
	_ = json.Unmarshal(a.Body, &a.sent) // it is an object
	a.Model, a.Prompt, a.Messages, a.N = r.Model, r.Prompt, r.Messages, 1
	if r.N != nil {
		a.N = *r.N
	}
	for _, limit := range []*int{r.MaxTokens, r.MaxCompletionTokens} {
		if limit != nil {
			a.maxTokens = *limit
		}
	}
	a.logprobs = len(r.Logprobs) > 0 && string(r.Logprobs) != "null" && string(r.Logprobs) != "false" && string(r.Logprobs) != "0"
	a.stop, a.effort, a.stream, a.streamUsage = r.Stop, r.Effort, r.Stream, r.StreamOptions.Usage
	marked := 0
	for _, m := range a.Messages {
		if m.Marked {
			marked++
		}
	}
	if marked > 4 { // as Anthropic's endpoint has it
		a.invalid = "cache_control: at most 4 parts may be marked"
	}
	a.Inputs, a.dimensions, a.base64 = r.Input, r.Dimensions, r.EncodingFormat == "base64"
	a.Labels = r.StructuredOutputs.Choice
	a.format = r.ResponseFormat.Type
	switch a.format {
	case "json_schema":
		if !r.ResponseFormat.JSONSchema.Strict || r.ResponseFormat.JSONSchema.Name == "" {
			a.invalid = "json_schema: it must have a name and be strict"
			return
		}
		a.readSchema(r.ResponseFormat.JSONSchema.Schema)
	case "json_object":
		a.Fields = []string{"label"} // the server knows no others
	case "", "text":
	default:
		a.invalid = "response_format: unknown type " + r.ResponseFormat.Type
	}
	if len(r.Tools) > 0 {
		a.tool = r.Tools[0].Function.Name
		a.readSchema(r.Tools[0].Function.Parameters)
	}
}

// readSchema reads a JSON schema and checks it by the rules of strict ones.
func (a *Ask) readSchema(raw json.RawMessage) {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil || s.Type != "object" || s.Additional == nil || *s.Additional || len(s.Required) != len(s.Properties) {
		a.invalid = "json_schema: the root must be an object with all properties required and no additional ones"
		return
	}
	a.Fields, a.schemaText = s.Required, string(raw)
	for name, p := range s.Properties {
		if p.Type == "array" {
			p.Enum = p.Items.Enum
		}
		size := 0
		for _, value := range p.Enum {
			size += len([]rune(value))
		}
		if len(p.Enum) > 1000 || len(p.Enum) > 250 && size > 15000 {
			a.invalid = fmt.Sprintf("json_schema: the enum of %q is too large", name)
		}
		if name == "label" || name == "labels" {
			a.Labels = p.Enum
		}
	}
}
