package modelserver

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/sdk"
)

// Ask is one request to the server.
type Ask struct {
	Number int // from 0; separate probes have numbers of their own
	At     time.Time
	Path   string
	Header http.Header
	Body   []byte
	Batch  string // the batch that it is part of; empty: it came alone

	Model    string
	Prompt   string    // of /completions
	Messages []Message // of /chat/completions, and of /messages, with the system prompt first
	N        int       // 1 if it is not given
	Fields   []string  // of the JSON object that the request asks for, in order; nil: plain text
	Labels   []string  // allowed by a schema's enum or structured_outputs.choice
	Inputs   []string  // of /embeddings

	Questions []Question // to a decision model, in order; the prompt is the text of the state

	apart       bool // a probe that does not count
	dimensions  int
	base64      bool
	maxTokens   int
	logprobs    bool
	stop        []string
	effort      string
	thinking    bool // requested, in Anthropic's form
	stream      bool
	streamUsage bool
	format      string       // type of response_format
	tool        string       // that the model has to call
	schemaText  string       // as sent
	sent        gjson.Result // the body
	invalid     string
}

// Message is a message of a chat.
type Message struct {
	Role    string
	Content string // all parts joined
	Marked  bool   // its last part has cache_control
}

// readMessage reads a message whose content is a text or a list of parts.
func (a *Ask) readMessage(role string, content gjson.Result) Message {
	m := Message{Role: role}
	if !content.IsArray() {
		m.Content = content.String()
		return m
	}
	for _, part := range content.Array() {
		text, cache := part.Get("text").String(), part.Get("cache_control")
		if part.Get("type").String() != "text" || text == "" || cache.Exists() && cache.Get("type").String() != "ephemeral" {
			a.invalid = "a part of a message: " + part.Raw
		}
		m.Content += text
		m.Marked = cache.Exists()
	}
	return m
}

// Text returns the prompt, or the chat's last message.
func (a Ask) Text() string {
	if len(a.Messages) > 0 {
		return a.Messages[len(a.Messages)-1].Content
	}
	return a.Prompt
}

// Whole returns the prompt, or all messages of the chat in one text. It identifies the question, and
// the server counts its tokens.
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

// asking holds the behaviours about what services accept and what not.
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

// embedding holds the behaviours of embedding services.
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

// probing begins the User-Agent of requests that only find out what a model accepts.
const probing = "racflow (probe)"

// arrive records a request.
func (s *Server) arrive(r *http.Request, body []byte) Ask {
	a := Ask{At: time.Now(), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	probe := strings.HasPrefix(r.UserAgent(), probing)
	a.apart = probe && !s.options.Probes
	a.Batch, _ = r.Context().Value(batchKey{}).(string)
	a.sent = gjson.ParseBytes(body)
	if !gjson.ValidBytes(body) || !a.sent.IsObject() {
		a.invalid = "the body is not a JSON object"
	} else if messages(a.Path) {
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

// block is the size of the cached pieces of a prompt, in characters: 16 tokens.
const block = 64

// charge counts the choices of a question, the tokens of its answers, and the tokens of its prompt.
// It returns the prompt's tokens: all, and the cached ones.
func (s *Server) charge(a Ask, choices, out int) (in, cached int) {
	whole := a.Whole()
	in = s.prompt(a) + s.tokens(a.schemaText) // as for services that show it to the model
	if a.apart {
		return in, 0
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
	s.used.Add(sdk.Usage{InputTokens: uint64(in), CachedTokens: uint64(cached), OutputTokens: uint64(out)})
	return in, cached
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

// locked returns the result of a function that runs while no request is counted.
func locked[T any](s *Server, of func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of()
}

// Asks returns the requests so far, in the order of arrival. Probes are included only if
// Options.Probes is set.
func (s *Server) Asks() []Ask { return locked(s, func() []Ask { return slices.Clone(s.asks) }) }

// Probes returns the probes so far: requests that only find out what a model accepts. Their
// User-Agent begins with "racflow (probe)".
func (s *Server) Probes() []Ask { return locked(s, func() []Ask { return slices.Clone(s.probes) }) }

// Calls returns the number of Asks.
func (s *Server) Calls() int { return len(s.Asks()) }

// MostAtOnce returns the largest number of requests that were in progress together.
func (s *Server) MostAtOnce() int { return locked(s, func() int { return s.most }) }

// Given returns the number of choices that each question got, by its Whole. Choices in a reply that a
// fault truncated do not count.
func (s *Server) Given() map[string]int {
	return locked(s, func() map[string]int { return maps.Clone(s.given) })
}

// Used returns the tokens of all answered requests, whatever the replies reported. Probes count only
// if Options.Probes is set.
func (s *Server) Used() sdk.Usage { return locked(s, func() sdk.Usage { return s.used }) }

// Doubled returns the number of choices beyond n per question: choices that were answered, and paid
// for, more than once.
func (s *Server) Doubled(n int) int {
	doubled := 0
	for _, given := range s.Given() {
		doubled += max(0, given-n)
	}
	return doubled
}

// read reads the body of a request to any endpoint but Anthropic's.
func (a *Ask) read() {
	r := a.sent
	a.Model, a.Prompt, a.N = r.Get("model").String(), r.Get("prompt").String(), 1
	if n := r.Get("n"); n.Exists() {
		a.N = int(n.Int())
	}
	marked := 0
	for _, sent := range r.Get("messages").Array() {
		m := a.readMessage(sent.Get("role").String(), sent.Get("content"))
		if a.Messages = append(a.Messages, m); m.Marked {
			marked++
		}
	}
	if marked > 4 { // as at Anthropic's endpoint
		a.invalid = "cache_control: at most 4 parts may be marked"
	}
	a.maxTokens = int(cmp.Or(r.Get("max_completion_tokens").Int(), r.Get("max_tokens").Int()))
	a.logprobs = r.Get("logprobs").Bool() // true, or a number
	a.effort, a.stream, a.streamUsage = r.Get("reasoning_effort").String(), r.Get("stream").Bool(), r.Get("stream_options.include_usage").Bool()
	a.stop = slices.DeleteFunc(texts(r.Get("stop")), func(text string) bool { return text == "" })
	if r.Get("questions").Exists() {
		a.readQuestions()
		return
	}
	a.Inputs, a.dimensions, a.base64 = texts(r.Get("input")), int(r.Get("dimensions").Int()), r.Get("encoding_format").String() == "base64"
	a.Labels = texts(r.Get("structured_outputs.choice"))
	a.format = r.Get("response_format.type").String()
	switch a.format {
	case "json_schema":
		schema := r.Get("response_format.json_schema")
		if !schema.Get("strict").Bool() || schema.Get("name").String() == "" {
			a.invalid = "json_schema: it must have a name and be strict"
			return
		}
		a.readSchema(schema.Get("schema"))
	case "json_object":
		a.Fields = []string{"label"} // the server knows no others
	case "", "text":
	default:
		a.invalid = "response_format: unknown type " + a.format
	}
	if tool := r.Get("tools.0.function"); tool.Exists() {
		a.tool = tool.Get("name").String()
		a.readSchema(tool.Get("parameters"))
	}
}

// texts returns the texts of a list, or the single text that replaces it; nil: there is none.
func texts(list gjson.Result) (all []string) {
	for _, text := range list.Array() {
		all = append(all, text.String())
	}
	return all
}

// readSchema reads a JSON schema and checks it by the rules of strict schemas.
func (a *Ask) readSchema(schema gjson.Result) {
	more, properties := schema.Get("additionalProperties"), schema.Get("properties").Map()
	a.Fields, a.schemaText = texts(schema.Get("required")), schema.Raw
	if schema.Get("type").String() != "object" || !more.Exists() || more.Bool() || len(a.Fields) != len(properties) {
		a.invalid = "json_schema: the root must be an object with all properties required and no additional ones"
		return
	}
	for name, p := range properties {
		if p.Get("type").String() == "array" {
			p = p.Get("items")
		}
		enum := texts(p.Get("enum"))
		if size := len([]rune(strings.Join(enum, ""))); len(enum) > 1000 || len(enum) > 250 && size > 15000 {
			a.invalid = fmt.Sprintf("json_schema: the enum of %q is too large", name)
		}
		if name == "label" || name == "labels" {
			a.Labels = enum
		}
	}
}
