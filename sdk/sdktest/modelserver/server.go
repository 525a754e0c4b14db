package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/sdk"
)

// Server is a running server.
type Server struct {
	URL string // base address, with /v1 at its end

	options Options
	jobs    jobs
	http    *httptest.Server
	closed  chan struct{}
	close   func()

	mu       sync.Mutex
	asks     []Ask
	probes   []Ask
	inFlight int
	most     int
	given    map[string]int
	used     sdk.Usage
	prefixes map[[32]byte]bool
}

// usualThoughts are the thoughts of a model unless the test sets others.
var usualThoughts = strings.Repeat("Let me see. The text could be about one thing, or about quite another.\nBut wait: what does the list say?\n", 4)

// think returns the model's thoughts before an answer: the part in the same text, and the part that
// stands apart.
func (s *Server) think(a Ask, choice int) (before, apart string) {
	thoughts := usualThoughts
	switch {
	case s.options.ThoughtsOf != nil && !a.apart:
		thoughts = s.options.ThoughtsOf(a, choice)
	case s.options.Thoughts != "":
		thoughts = s.options.Thoughts
	}
	switch a.effort {
	case "low":
		thoughts = thoughts[:len(thoughts)/4]
	case "minimal", "none":
		return "", ""
	}
	if a.thinking {
		return "", thoughts
	}
	switch s.options.Thinks {
	case InTags:
		return "<think>\n" + thoughts + "\n</think>\n\n", ""
	case InOtherTags:
		return "<thinking>\n" + thoughts + "\n</thinking>\n\n", ""
	case InChannels:
		return "<|channel|>analysis<|message|>" + thoughts + "<|end|><|start|>assistant<|channel|>final<|message|>", ""
	case InAField, Silently:
		return "", thoughts
	}
	return "", ""
}

// refusal is an error that names the field that it refuses.
type refusal struct {
	message string
	param   string
	code    string
	status  int // 0: the caller's default
}

func (r *refusal) Error() string { return r.message }

// unsupported returns the refusal of a field that the model does not accept.
func (s *Server) unsupported(a Ask) error {
	if a.Inputs != nil {
		return nil
	}
	for _, name := range s.options.Unsupported {
		param := name
		var given bool
		switch name {
		case "n":
			given = a.N > 1
		case "stop":
			given = len(a.stop) > 0
		case "logprobs":
			given = a.logprobs
		case "json_schema", "json_object":
			param, given = "response_format", a.format == name
		case "choice":
			param = "structured_outputs"
			given = a.sent.Get(param).Exists()
		case "whole":
			param, given = "stream", !a.stream
		default:
			given = a.sent.Get(name).Type != gjson.Null // neither null nor missing
		}
		if !given {
			continue
		}
		message := fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", param)
		switch {
		case name == "whole":
			message = "This model only supports streaming: set 'stream' to true."
		case name != param:
			message = fmt.Sprintf("Invalid parameter: '%s' of type '%s' is not supported with this model.", param, name)
		}
		if s.options.Nameless {
			param = ""
		}
		return &refusal{message: message, param: param, code: "unsupported_parameter"}
	}
	return nil
}

// holds returns a function that reports whether the text of a request contains a word.
func holds(word string) func(Ask) bool {
	return func(a Ask) bool { return strings.Contains(a.Whole(), word) }
}

// Options say how a server behaves. With the zero Options, it answers at once and correctly. With
// adds behaviours by name.
type Options struct {
	Latency time.Duration // of every reply
	Key     string        // that requests must carry; empty: any
	Serves  string        // the model's id in the list of models; empty: the server has no list
	// Answer returns the text of one choice. Without Answer, it is the first label that the request
	// allows, or "answer". If the request asks for a JSON object, a text that is no JSON object
	// becomes its label.
	Answer func(a Ask, choice int) string
	// Vector returns the embedding of a text. Without Vector, it is drawn from the text's hash, with
	// Dimension numbers (8 if Dimension is 0).
	Vector    func(text string) []float32
	Dimension int

	Refuse func(Ask) bool // reports whether to answer a request with 400; nil: never
	// Unsupported names the fields of a request, such as temperature, that the model does not accept;
	// an n is refused from 2 on. "json_schema", "json_object" and "choice" name forms of an answer,
	// and "whole" a reply that is not streamed.
	Unsupported []string
	Nameless    bool // a refusal names its field in the message only, and has no param

	Forms    []Form   // of answers; each changes the result of the form before
	Shape    Shape    // of messages
	Thinks   Thinking // before each answer
	Thoughts string   // the thoughts; empty: some lines of 400 characters
	// ThoughtsOf returns the thoughts of one choice, except for probes, and replaces Thoughts. nil:
	// all choices have the same thoughts.
	ThoughtsOf   func(a Ask, choice int) string
	Stops        bool      // a text ends at a stop text of the request, even within thoughts
	IgnoreFormat bool      // answers are plain text, whatever form a request asks for
	Usage        UsageKind // how replies report their tokens
	Bytes        bool      // a token is one byte, not four
	Streams      bool      // all replies are streams, even if the request does not ask for one
	// Count counts the tokens of a text as a tokenizer does, and replaces the count of four
	// characters. Template and Frame are then the extra tokens of a chat, and of each of its messages.
	Count           func(text string) int
	Template, Frame int
	IgnoreN         bool // one choice, whatever n says
	MaxN            int  // a larger n is refused, as llama.cpp refuses more than its slots; 0: no limit
	MaxInputs       int  // of one request for embeddings; more are refused; 0: 2,048
	Base64          Base64
	Shuffle         bool // embeddings come in another order, with their index

	Faults []Fault // the first fault that applies to a request happens
	Seed   uint64  // of the draws by Fault.Share

	Batches Batches // files of requests, answered later
	Decides Decides // questions with probabilities as answers

	// Probes treats probes like all other requests: they count, and Answer, Refuse and Faults apply to
	// them. Otherwise they get the first label or "answer".
	Probes bool
}

// Form changes how an answer is written, not what it says. object says that the request asks for a
// JSON object.
type Form func(answer string, object bool) string

// Shape says where a message has its answer.
type Shape uint8

// The shapes.
const (
	AsText     Shape = iota // content is a text
	AsParts                 // content is a list with a part of type text
	AsToolCall              // there is no content but a tool call, even if no tool is offered
)

// Thinking says where a model's thoughts are.
type Thinking uint8

// The ways of thinking. reasoning_effort = "low" makes thoughts a quarter as long; "minimal" and
// "none" remove them. max_tokens counts them.
const (
	NotAtAll    Thinking = iota
	InTags               // <think> before the answer
	InOtherTags          // <thinking> before the answer
	InAField             // reasoning_content beside the answer
	Silently             // hidden, but counted
	InChannels           // a separate channel before the answer's, as gpt-oss writes
)

// UsageKind says how replies report their tokens.
type UsageKind uint8

// The kinds.
const (
	UsageGiven   UsageKind = iota
	UsageMissing           // nothing
	UsageAbsurd            // an impossible number of completion tokens
)

// Base64 says what a server does with encoding_format = "base64".
type Base64 uint8

// The ways.
const (
	Base64Given   Base64 = iota // it obeys
	Base64Ignored               // it sends numbers
	Base64Refused               // it answers 400
)

// Serve starts a server that ends with the test.
func Serve(t testing.TB, o Options) *Server {
	t.Helper()
	s := Start(o)
	t.Cleanup(s.Close)
	return s
}

// Start starts a server on a free port of the loopback interface.
func Start(o Options) *Server {
	s, err := Listen(o, "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("modelserver: no port is free: %v", err))
	}
	return s
}

// Listen starts a server on an address, HOST:PORT.
func Listen(o Options, address string) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, closed: make(chan struct{}), given: map[string]int{}, prefixes: map[[32]byte]bool{}}
	s.http = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s.routes(), ReadHeaderTimeout: time.Minute}}
	s.http.Start()
	s.URL = s.http.URL + "/v1"
	s.close = sync.OnceFunc(func() {
		close(s.closed) // ends requests that hang
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s, nil
}

// Close ends the server and every request in progress.
func (s *Server) Close() { s.close() }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	a := s.arrive(r, body)
	defer s.leave(a)
	var fault Fault
	if !a.apart {
		fault = s.fault(a)
	}
	if !s.wait(r, s.options.Latency) {
		return
	}
	if fault.Kind == Hang {
		s.wait(r, time.Hour)
		return
	}
	if fault.ends(w, r) {
		return
	}
	if err := s.unknownKey(r); err != nil {
		refuse(w, r, http.StatusUnauthorized, err)
		return
	}
	reply, err := s.reply(a, fault)
	if err != nil {
		refuse(w, r, http.StatusBadRequest, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if a.stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	fault.send(w, reply)
}

// unknownKey returns the refusal of a request that lacks the key.
func (s *Server) unknownKey(r *http.Request) error {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if messages(r.URL.Path) {
		key = r.Header.Get("X-Api-Key")
	}
	if s.options.Key == "" || key == s.options.Key {
		return nil
	}
	return errors.New("wrong key: " + key)
}

// reply returns the reply that the request asks for, or why it is refused.
func (s *Server) reply(a Ask, fault Fault) ([]byte, error) {
	if a.invalid != "" {
		return nil, errors.New(a.invalid)
	}
	if err := s.unsupported(a); err != nil {
		return nil, err
	}
	if s.options.Refuse != nil && !a.apart && s.options.Refuse(a) {
		return nil, errors.New("refused, as the test says")
	}
	if a.Questions != nil {
		return s.decided(a)
	}
	if strings.HasSuffix(a.Path, "/embeddings") {
		vectors, err := s.embed(a, fault)
		if err != nil {
			return nil, err
		}
		return json.Marshal(vectors)
	}
	if !messages(a.Path) && !strings.HasSuffix(a.Path, "/completions") {
		return nil, fmt.Errorf("there is no %s", a.Path)
	}
	c, err := s.complete(a, fault)
	switch {
	case err != nil:
		return nil, err
	case !messages(a.Path) && a.stream:
		return s.stream(c, a.streamUsage), nil
	case !messages(a.Path):
		return json.Marshal(s.whole(c))
	case c.choices[0].finish == "error":
		return nil, &refusal{message: "Overloaded", status: overloaded}
	}
	return json.Marshal(messageOf(a, c))
}

// wait reports whether the time passed before the client left.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

// speaking holds other ways to send requests: another form, or files.
var speaking = []Behaviour{
	{
		Name: "speaks-messages", Server: "speaks Anthropic's Messages API beside OpenAI's",
		Racflow: "speaks it with `api = \"anthropic\"`, which has no n", Try: AsMessages, set: func(*Options) {},
	},
	{
		Name: "takes-batches", Server: "answers files of requests some polls later",
		Racflow: "asks by one file with `batch = true`, at half the price", Says: "sample.llm: batch of 12 requests, 0 done, at most 24 h", Try: AsBatch,
		set: func(o *Options) { o.Batches.Polls = 2 },
	},
	{
		Name: "expires-batches", Server: "has no time for the first five requests of its first file",
		Racflow: "asks these again by another file", Says: "sample.llm: batch of 5 requests, 0 done, at most 24 h", Try: AsBatch,
		set: func(o *Options) {
			o.Batches.Expires = func(batch, request int) bool { return batch == 0 && request < 5 }
		},
	},
	{
		Name: "fails-batches", Server: "refuses every file of requests after it took it",
		Racflow: "fails the items that wait for it; a resumed run tries them again", Lost: true, Exit: 3,
		Says: "the service refused the batch batch_0: the organisation has too many tokens in batches", Try: AsBatch,
		set: func(o *Options) { o.Batches.Fails = "the organisation has too many tokens in batches" },
	},
}

// Table returns a page about all behaviours, in Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString(`# Behaviours of the model server

What services of language models do differently, and what racflow does about it. A test in
Go takes behaviours by their names, ` + "`modelserver.Named(\"busy\", \"thinks-in-tags\")`" + `; the command
[examples/modelserver](../../../examples/modelserver/README.md) serves them to a program in any language.

Each row is tested (TestBehaviours): ` + "`racflow run`" + ` asks a server with this one behaviour for labels,
with a second voter beside the model. The exit code and what the user sees are what came;
where nothing is said, all answers of the model count and nothing is reported. What a model
refuses shows among its calls as one that failed: it is the probe's, before the first item.

`)
	b.WriteString("| name | the server | racflow | exit code | the user sees |\n|---|---|---|---|---|\n")
	for _, of := range Behaviours() {
		says := ""
		if of.Says != "" {
			says = "`" + strings.ReplaceAll(of.Says, "|", `\|`) + "`"
		}
		server := strings.NewReplacer("|", `\|`, "<think>", "`<think>`", "<thinking>", "`<thinking>`").Replace(of.Server)
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", of.Name, server, of.Racflow, of.Exit, says)
	}
	b.WriteString("\nThis page is generated: `make generate` writes it.\n")
	return b.String()
}
