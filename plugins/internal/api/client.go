package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Config says where a service is and what every request to it carries.
type Config struct {
	Service
	BaseURL  string                       // up to and with the version
	Limited  string                       // the name by which limits and circuit breakers know the service; empty: BaseURL
	Key      func(key string) http.Header // how APIKey is shown; nil: as a bearer's
	Reserved []string                     // fields that Body must not set
	MaxReply int64                        // bytes; 0: 16 MiB
	Host     sdk.Host                     // nil: sdk.Alone
	Log      *slog.Logger
}

// Client calls one service. Its methods may be called by several goroutines.
type Client struct {
	config    Config
	http      http.Client
	fields    map[string]json.RawMessage // of Config.Body
	secrets   []string                   // that no error may hold
	warned    sync.Map                   // topics of WarnOnce
	noAnswers atomic.Int64               // replies in a row that held no answer
	outage    outage
}

// New returns a client for a config that Check finds no error in.
func New(c Config) *Client {
	fields, _ := c.fields()                // Check has reported its error
	c.APIKey = strings.TrimSpace(c.APIKey) // a key from a file often ends in a line break
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.MaxReply == 0 {
		c.MaxReply = 16 << 20
	}
	if c.Host == nil {
		c.Host = sdk.Alone()
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256 // connections of all calls under way are kept
	// A slow service still takes connections at once: one that does not is down.
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return dial(ctx, network, address)
	}
	return &Client{config: c, fields: fields, secrets: secrets(c), http: http.Client{
		Transport: transport,
		Timeout:   c.Timeout,
		// A redirect is reported, not followed: it would carry headers to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// connectTime is how long a service may take to accept a connection.
const connectTime = 10 * time.Second

// minSecret is the length from which a value counts as a secret here: "1" stands in many
// texts. The engine takes shorter ones out of what people read, where they are whole words.
const minSecret = 6

func secrets(c Config) []string {
	var all []string
	if len(c.APIKey) >= minSecret {
		all = append(all, c.APIKey)
	}
	for _, value := range c.Headers {
		value = strings.TrimSpace(value)
		_, key, _ := strings.Cut(value, " ") // of "Bearer KEY" the key alone, too
		for _, secret := range []string{value, key} {
			if len(secret) >= minSecret {
				all = append(all, secret)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one that holds another comes first
	return all
}

// minRedacted is the length from which a secret stands in no text by chance, so
// that it may be taken out of replies: answers can be any short word.
const minRedacted = 16

// redact takes out of a reply the secrets that a server repeats in it.
func (c *Client) redact(reply []byte) []byte {
	for _, secret := range c.secrets {
		if len(secret) >= minRedacted {
			reply = bytes.ReplaceAll(reply, []byte(secret), []byte(redacted))
		}
	}
	return reply
}

// redacted is shown in place of a secret.
const redacted = "(secret)"

// Address is the service's base address, by which limits are shared.
func (c *Client) Address() string { return c.config.BaseURL }

// Host is what the engine offers to the stage.
func (c *Client) Host() sdk.Host { return c.config.Host }

// Fields are those of Config.Body.
func (c *Client) Fields() map[string]any {
	all := map[string]any{}
	for name, value := range c.fields {
		all[name] = value
	}
	return all
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// WarnOnce logs a warning the first time that it is called with a topic.
func (c *Client) WarnOnce(topic, message string, args ...any) {
	if _, warned := c.warned.LoadOrStore(topic, true); !warned && c.config.Log != nil {
		c.config.Log.Warn(message, args...)
	}
}

// Courier takes requests to a service in another way than each by itself: many of them in
// one job, whose replies come later.
type Courier interface {
	// Deliver calls read with the reply to a request, as soon as there is one: its status
	// and its body. read returns what the reply cost, and Deliver its error, or why there is no
	// reply.
	Deliver(d Delivery, read func(status int, body []byte) (sdk.Usage, error)) error
	// Forgets reports whether a cached answer counts as absent.
	Forgets(key sdk.Key) bool
}

// Delivery is a request for a Courier.
type Delivery struct {
	Answer sdk.Key // names what the reply is for; see For
	Again  bool    // a reply for that was delivered, and the stage asks in another way
	Path   string  // below the base address
	Body   []byte
	Call   sdk.Call // what the Host would be asked for
}

type courierKey struct{}

type answerKey struct{}

// answering is what the requests of a context are for.
type answering struct {
	key       sdk.Key
	delivered atomic.Bool
}

// For returns a context whose requests are for an answer, by its cache key. To a Courier two equal
// requests for different answers are two, and those for one answer are the same question, however it
// is asked.
func For(ctx context.Context, answer sdk.Key) context.Context {
	return context.WithValue(ctx, answerKey{}, &answering{key: answer})
}

// Through returns a context whose requests a courier takes; nil: none does.
func Through(ctx context.Context, by Courier) context.Context {
	return context.WithValue(ctx, courierKey{}, by)
}

// Later reports whether the replies to the requests of a context may come later: then it is
// of no use to wait for one before the next is made.
func Later(ctx context.Context) bool { return courierOf(ctx) != nil }

func courierOf(ctx context.Context) Courier {
	by, _ := ctx.Value(courierKey{}).(Courier)
	return by
}

// deliver is Post where a courier takes the request.
func (r *Request) deliver(ctx context.Context, by Courier, path string, body []byte, reply any) error {
	of, ok := ctx.Value(answerKey{}).(*answering)
	if !ok {
		of = &answering{}
	}
	return by.Deliver(Delivery{of.key, of.delivered.Load(), path, body, r.call(body)}, func(status int, answer []byte) (sdk.Usage, error) {
		res := &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}}
		if _, err := r.Client.resultOf(res, answer, time.Now()); err != nil {
			return sdk.Usage{}, err
		}
		of.delivered.Store(true)
		return r.accept(r.Client.redact(answer), reply)
	})
}

// NotFound reports whether a server does not know what was asked for.
func NotFound(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.refusal.Status == http.StatusNotFound
}

// patience is how long a stage that opens waits for its service. The engine ends that
// wait after two minutes and says why; this is for callers that do not.
const patience = 3 * time.Minute

var openings = support.Backoff{First: 200 * time.Millisecond, Max: 10 * time.Second}

// Patiently makes a call while a stage opens, when the engine does not retry: again after
// errors that may pass, for a few minutes. It returns the last error.
func Patiently(ctx context.Context, call func() error) error {
	start := time.Now()
	for failures := 1; ; failures++ {
		err := call()
		coded := new(sdk.Error)
		if !errors.As(err, &coded) || coded.Code != sdk.CodeTransient {
			return err
		}
		pause := coded.RetryAfter + openings.Delay(failures)
		if time.Since(start) > patience || support.SleepFor(ctx, pause) != nil {
			return err
		}
	}
}

// Request is one call of a service.
type Request struct {
	Client *Client
	Tokens int         // most of the reply; those of the body are estimated
	Header http.Header // further headers
	// Bounded says that the request limits the reply to Tokens, and that its body is all
	// that the service reads.
	Bounded bool
	Whole   bool // the body has the fields of Config.Body already
	// Join makes one reply of a stream of events; nil: a stream is no reply.
	Join func(events []byte) ([]byte, error)
	// Read reads a reply and returns what it says of its cost; nil: it is decoded, and
	// says it as OpenAI does.
	Read func(reply []byte) (sdk.Usage, error)
	// OnReply is called with the decoded reply before the call is released, so that no more
	// answers than those of calls under way can be lost before they are cached. Post returns
	// its error; the Host hears of a success all the same, unless the error is NoAnswer. nil: nothing to do.
	OnReply func() error

	asked sdk.Call
	usage sdk.Usage
}

// Usage is what the call cost, from OnReply on.
func (r *Request) Usage() sdk.Usage { return r.usage }

// Post sends body, a JSON object, to a path below the base address and decodes the
// reply. Its error is the context's, the Host's, OnReply's or a coded one, and holds no
// secret.
func (r *Request) Post(ctx context.Context, path string, body, reply any) (err error) {
	c := r.Client
	text, err := r.encode(body)
	if err != nil {
		return sdk.Invalid(err)
	}
	if by := courierOf(ctx); by != nil {
		return r.deliver(ctx, by, path, text, reply)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return sdk.Invalid(fmt.Errorf("base_url: %w", err))
	}
	c.setHeaders(req, r.Header)
	r.asked = r.call(text)
	r.asked.Alternative, _ = ctx.Value(alternativeKey{}).(bool)
	release, err := c.config.Host.Acquire(ctx, r.asked)
	if err != nil {
		return err
	}
	var result sdk.Result
	defer func() { // also where OnReply panics
		if ctx.Err() != nil && result.Status != sdk.StatusOK {
			result.Status, result.Lost = sdk.StatusLeft, false
		}
		switch result.Status {
		case sdk.StatusBusy, sdk.StatusDown, sdk.StatusDenied:
			if err != nil {
				result.Reason = err.Error()
			}
		}
		release(result)
	}()
	answer, result, err := c.send(req, r.Join)
	if err = c.outage.judge(text, &result, err); err != nil {
		return err
	}
	result.Usage, err = r.accept(answer, reply)
	result.Status = c.statusOf(err)
	if !r.asked.Believes(result.Usage) {
		result.Reason = c.excerpt(gjson.GetBytes(answer, "usage").Raw)
	}
	return err
}

// Key is that of the reply to a request, for the response cache: it changes with
// everything that is sent in the body, with the address, and with parts, which say what
// is made of the reply before it is cached. Headers do not count.
func (r *Request) Key(path string, body any, parts ...string) sdk.Key {
	text, err := r.encode(body)
	if err != nil { // texts and finite numbers always can be encoded
		panic(err)
	}
	return sdk.KeyOf(append([]string{"request", r.Client.config.BaseURL, path, string(text)}, parts...)...)
}

type alternativeKey struct{}

// WithAlternative returns a context whose requests another service can answer as well.
func WithAlternative(ctx context.Context) context.Context {
	return context.WithValue(ctx, alternativeKey{}, true)
}

func (r *Request) call(body []byte) sdk.Call {
	call := sdk.Call{Endpoint: cmp.Or(r.Client.config.Limited, r.Client.config.BaseURL), Tokens: sdk.EstimateTokens(utf8.RuneCount(body)) + r.Tokens}
	if r.Bounded && r.Client.Plain() {
		// No token is shorter than a byte.
		call.Most = sdk.Usage{InputTokens: uint64(len(body)), OutputTokens: uint64(r.Tokens)}
	}
	return call
}

// harmless are fields of Config.Body that do not raise the cost of a request.
var harmless = []string{
	"dimensions", "encoding_format", "frequency_penalty", "input_type", "logit_bias", "metadata", "min_p", "presence_penalty",
	"prompt_cache_key", "repetition_penalty", "safety_identifier", "seed", "stop", "store", "task", "temperature", "top_k", "top_p", "truncate", "user",
}

// Plain reports whether Config.Body adds nothing that may raise the cost of a request:
// another limit, more answers, tools.
func (c *Client) Plain() bool {
	for name := range c.fields {
		if !slices.Contains(harmless, name) {
			return false
		}
	}
	return true
}

// accept reads a reply that is a success, and calls OnReply.
func (r *Request) accept(answer []byte, reply any) (sdk.Usage, error) {
	usage, err := r.read(answer, reply)
	if r.asked.Believes(usage) { // the Host gets any, and reports what cannot be
		r.usage = usage
	}
	if err == nil && r.OnReply != nil {
		err = r.OnReply()
	}
	return usage, err
}

func (r *Request) read(answer []byte, reply any) (sdk.Usage, error) {
	read := r.Read
	if read == nil {
		read = func(answer []byte) (sdk.Usage, error) { return Usage(answer), json.Unmarshal(answer, reply) }
	}
	usage, err := read(answer)
	if err != nil {
		text := r.Client.excerpt(err.Error())
		err = sdk.Invalid(&noAnswerError{fmt.Sprintf("the server's reply has another form: %s; check base_url", text)})
	}
	return usage, err
}

// send returns a reply that is a success, without secrets, and the result of the call.
func (c *Client) send(req *http.Request, join func([]byte) ([]byte, error)) ([]byte, sdk.Result, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, lostResult(err), c.lost(req, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, c.config.MaxReply+1))
	if err == nil && join != nil && isStream(res, text) {
		text, err = join(text)
	}
	if err != nil {
		return nil, lostResult(err), c.lost(req, err)
	}
	result, err := c.resultOf(res, text, time.Now())
	return c.redact(text), result, err
}

// encode is a body as it is sent: with the fields of Config.Body.
func (r *Request) encode(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil || r.Whole || len(r.Client.fields) == 0 {
		return text, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	maps.Copy(fields, r.Client.fields)
	return json.Marshal(fields)
}

func (c *Client) setHeaders(req *http.Request, further http.Header) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "racflow")
	if t := sdk.TraceOf(req.Context()); t.Parent != "" {
		if req.Header.Set("traceparent", t.Parent); t.State != "" {
			req.Header.Set("tracestate", t.State)
		}
	}
	if c.config.APIKey != "" && c.config.Key == nil {
		req.Header.Set("Authorization", "Bearer "+c.config.APIKey)
	}
	if c.config.Key != nil {
		maps.Copy(req.Header, c.config.Key(c.config.APIKey))
	}
	maps.Copy(req.Header, further)
	for name, value := range c.config.Headers {
		req.Header.Set(name, value)
	}
}

// Usage reads the token counts of a reply in OpenAI's form; zero where it has none.
// An impossible number stays one, so that whoever counts can tell that it is wrong.
func Usage(reply []byte) sdk.Usage {
	u := gjson.GetBytes(reply, "usage")
	prompt, completion := u.Get("prompt_tokens").Num, u.Get("completion_tokens").Num
	if prompt == 0 && completion == 0 { // some services for embeddings
		prompt = u.Get("total_tokens").Num
	}
	input, cached := Count(prompt), Count(max(u.Get("prompt_tokens_details.cached_tokens").Num, 0))
	return sdk.Usage{InputTokens: input, CachedTokens: min(cached, input), OutputTokens: Count(completion)}
}

// Count is a number of tokens as a service reports it: one that cannot be stays one.
func Count(n float64) uint64 {
	if !(n >= 0 && n < 1<<62) {
		return 1 << 62
	}
	return uint64(n)
}

// transferTime is how long a transfer of a file may take, unless requests may take longer.
const transferTime = 30 * time.Minute

// Transfer is a request that asks no model: for a file, or a job.
type Transfer struct {
	Client *Client
	Method string
	Path   string    // below the base address, with its query
	Type   string    // of Body; empty: JSON
	Body   io.Reader // nil: none
	Size   int64     // of Body; 0: unknown
	// Read gets the body of a reply that is a success, of any size, and returns the error of reading it; nil: it is
	// decoded into Reply.
	Read  func(io.Reader) error
	Reply any
}

// Do sends the request, without asking the Host: who does a job has asked for all of it. Its
// error is the context's or a coded one, and holds no secret.
func (t Transfer) Do(ctx context.Context) (http.Header, error) {
	c := t.Client
	req, err := http.NewRequestWithContext(ctx, t.Method, c.config.BaseURL+t.Path, t.Body)
	if err != nil {
		return nil, sdk.Invalid(fmt.Errorf("base_url: %w", err))
	}
	req.ContentLength = t.Size
	c.setHeaders(req, nil)
	if t.Type != "" {
		req.Header.Set("Content-Type", t.Type)
	}
	client := c.http
	if t.Read != nil || t.Size > 0 {
		client.Timeout = max(client.Timeout, transferTime)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, c.lost(req, err)
	}
	defer res.Body.Close()
	if t.Read != nil && res.StatusCode < 300 {
		if err = t.Read(res.Body); err != nil {
			err = c.lost(req, err)
		}
		return res.Header, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, c.config.MaxReply+1))
	if err != nil {
		return nil, c.lost(req, err)
	}
	if _, err := c.resultOf(res, text, time.Now()); err != nil {
		return res.Header, err
	}
	if err := json.Unmarshal(c.redact(text), t.Reply); err != nil {
		return res.Header, sdk.Invalid(fmt.Errorf("the server's reply has another form: %s; check base_url", c.excerpt(err.Error())))
	}
	return res.Header, nil
}

// RetryAfter is how long a server asks to wait in the headers of a reply; 0: it does not say.
func RetryAfter(h http.Header) time.Duration { return retryAfter(h, time.Now()) }
