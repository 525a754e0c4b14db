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

// Config says where a service is and what every request to it contains.
type Config struct {
	Service
	BaseURL  string                       // up to and with the version
	Limited  string                       // the name for limits and circuit breakers; empty: BaseURL
	Key      func(key string) http.Header // headers for APIKey; nil: a bearer token
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
	secrets   []string                   // no error may contain them
	warned    sync.Map                   // topics of WarnOnce
	noAnswers atomic.Int64               // replies in a row without an answer
	outage    outage
}

// New returns a client for a valid config (Check).
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
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256 // keep the connections of all running calls
	// Even a slow service accepts connections at once. A service that does not is down.
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return dial(ctx, network, address)
	}
	return &Client{config: c, fields: fields, secrets: secrets(c), http: http.Client{
		Transport: transport,
		Timeout:   c.Timeout,
		// A redirect is reported, not followed: it would send headers to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// connectTime is how long a service may take to accept a connection.
const connectTime = 10 * time.Second

// minSecret is the length from which a value counts as a secret here: "1" occurs in many texts. The engine removes
// shorter secrets from output, where they are whole words.
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
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // a secret that contains another one comes first
	return all
}

// minRedacted is the length from which a secret cannot occur in a text by chance. Only such secrets are removed from
// replies, since an answer can be any short word.
const minRedacted = 16

// redact removes secrets that a server repeats in a reply.
func (c *Client) redact(reply []byte) []byte {
	for _, secret := range c.secrets {
		if len(secret) >= minRedacted {
			reply = bytes.ReplaceAll(reply, []byte(secret), []byte(redacted))
		}
	}
	return reply
}

// redacted replaces a secret.
const redacted = "(secret)"

// Address is the service's base address. Clients of the same address share limits.
func (c *Client) Address() string { return c.config.BaseURL }

// Host returns the stage's host.
func (c *Client) Host() sdk.Host { return c.config.Host }

// Fields returns the fields of Config.Body.
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

// WarnOnce logs a warning at the first call with a topic.
func (c *Client) WarnOnce(topic, message string, args ...any) {
	if _, warned := c.warned.LoadOrStore(topic, true); !warned && c.config.Log != nil {
		c.config.Log.Warn(message, args...)
	}
}

// Courier replaces single calls of a service: it sends many requests in one job, and the replies come later.
type Courier interface {
	// Deliver calls read with the status and body of the reply, if there is a reply already. read returns the cost of
	// the reply. Deliver returns read's error, or why there is no reply.
	Deliver(d Delivery, read func(status int, body []byte) (sdk.Usage, error)) error
	// Forgets reports whether a cached answer counts as absent.
	Forgets(key sdk.Key) bool
}

// Delivery is a request for a Courier.
type Delivery struct {
	Answer sdk.Key // the key of the answer that the reply is for; see For
	Again  bool    // a reply for Answer was delivered, and the stage asks in another way
	Path   string  // below the base address
	Body   []byte
	Call   sdk.Call // what a single call would ask the Host for
}

type courierKey struct{}

type answerKey struct{}

// answering is the answer that the requests of a context ask for.
type answering struct {
	key       sdk.Key
	delivered atomic.Bool
}

// For returns a context whose requests ask for one answer, named by its cache key. For a Courier, equal requests for
// different answers are two questions. Requests for the same answer are one question, even if they differ.
func For(ctx context.Context, answer sdk.Key) context.Context {
	return context.WithValue(ctx, answerKey{}, &answering{key: answer})
}

// Through returns a context whose requests go to a courier; nil: they are sent as usual.
func Through(ctx context.Context, by Courier) context.Context {
	return context.WithValue(ctx, courierKey{}, by)
}

// Later reports whether replies to a context's requests may come later. Then waiting for one reply before the next
// request is useless.
func Later(ctx context.Context) bool { return courierOf(ctx) != nil }

func courierOf(ctx context.Context) Courier {
	by, _ := ctx.Value(courierKey{}).(Courier)
	return by
}

// deliver does the work of Post with a courier.
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

// NotFound reports whether the server does not know the requested object.
func NotFound(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.refusal.Status == http.StatusNotFound
}

// patience is how long a stage that opens waits for its service. The engine ends the wait after two minutes with a
// reason; this limit is for other callers.
const patience = 3 * time.Minute

var openings = support.Backoff{First: 200 * time.Millisecond, Max: 10 * time.Second}

// Patiently makes a call while a stage opens, when the engine does not retry. It repeats the call after temporary
// errors, for a few minutes, and returns the last error.
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
	Tokens int         // limit of the reply; tokens of the body are estimated
	Header http.Header // further headers
	// Bounded says that the request limits the reply to Tokens, and that the service reads nothing but the body.
	Bounded bool
	Whole   bool // the body already has the fields of Config.Body
	// Join combines a stream of events into one reply; nil: a stream is an error.
	Join func(events []byte) ([]byte, error)
	// Read reads a reply and returns its reported cost; nil: the reply is decoded, with the cost in OpenAI's form.
	Read func(reply []byte) (sdk.Usage, error)
	// OnReply is called with the decoded reply before the call is released. So only answers of running calls can be
	// lost before they are cached. Post returns its error. The Host still records a success, unless the error is
	// NoAnswer. nil: nothing to do.
	OnReply func() error

	asked sdk.Call
	usage sdk.Usage
}

// Usage is the cost of the call. It is valid from OnReply on.
func (r *Request) Usage() sdk.Usage { return r.usage }

// Post sends body, a JSON object, to a path below the base address and decodes the reply. Its error comes from the
// context, the Host or OnReply, or is a coded error. It contains no secret.
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
	defer func() { // even if OnReply panics
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

// Key is the cache key of the reply to a request. It depends on the whole body, the address, and parts, which
// describe how the reply is processed before it is cached. It does not depend on headers.
func (r *Request) Key(path string, body any, parts ...string) sdk.Key {
	text, err := r.encode(body)
	if err != nil { // texts and finite numbers can always be encoded
		panic(err)
	}
	return sdk.KeyOf(append([]string{"request", r.Client.config.BaseURL, path, string(text)}, parts...)...)
}

type alternativeKey struct{}

// WithAlternative returns a context whose requests another service can answer, too.
func WithAlternative(ctx context.Context) context.Context {
	return context.WithValue(ctx, alternativeKey{}, true)
}

func (r *Request) call(body []byte) sdk.Call {
	call := sdk.Call{Endpoint: cmp.Or(r.Client.config.Limited, r.Client.config.BaseURL), Tokens: sdk.EstimateTokens(utf8.RuneCount(body)) + r.Tokens}
	if r.Bounded && r.Client.Plain() {
		// A token has at least one byte.
		call.Most = sdk.Usage{InputTokens: uint64(len(body)), OutputTokens: uint64(r.Tokens)}
	}
	return call
}

// harmless are fields of Config.Body that do not raise the cost of a request.
var harmless = []string{
	"dimensions", "encoding_format", "frequency_penalty", "input_type", "logit_bias", "metadata", "min_p", "presence_penalty",
	"prompt_cache_key", "repetition_penalty", "safety_identifier", "seed", "stop", "store", "task", "temperature", "top_k", "top_p", "truncate", "user",
}

// Plain reports whether Config.Body adds nothing that may raise the cost of a request, such as another limit, more
// answers or tools.
func (c *Client) Plain() bool {
	for name := range c.fields {
		if !slices.Contains(harmless, name) {
			return false
		}
	}
	return true
}

// accept reads a successful reply, and calls OnReply.
func (r *Request) accept(answer []byte, reply any) (sdk.Usage, error) {
	usage, err := r.read(answer, reply)
	if r.asked.Believes(usage) { // the Host gets any number, and reports impossible ones
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

// send returns a successful reply without secrets, and the result of the call.
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

// encode returns the body as it is sent, with the fields of Config.Body.
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

// Usage reads the token counts of a reply in OpenAI's form; zero if there are none. Impossible numbers stay
// impossible, so that the reader of the count can detect them.
func Usage(reply []byte) sdk.Usage {
	u := gjson.GetBytes(reply, "usage")
	prompt, completion := u.Get("prompt_tokens").Num, u.Get("completion_tokens").Num
	if prompt == 0 && completion == 0 { // some services for embeddings
		prompt = u.Get("total_tokens").Num
	}
	input, cached := Count(prompt), Count(max(u.Get("prompt_tokens_details.cached_tokens").Num, 0))
	return sdk.Usage{InputTokens: input, CachedTokens: min(cached, input), OutputTokens: Count(completion)}
}

// Count converts a service's number of tokens. Impossible numbers stay impossible.
func Count(n float64) uint64 {
	if !(n >= 0 && n < 1<<62) {
		return 1 << 62
	}
	return uint64(n)
}

// transferTime is the time limit of a file transfer, if the limit of requests is not longer.
const transferTime = 30 * time.Minute

// Transfer is a request that asks no model, such as for a file or a job.
type Transfer struct {
	Client *Client
	Method string
	Path   string    // below the base address, with its query
	Type   string    // of Body; empty: JSON
	Body   io.Reader // nil: none
	Size   int64     // of Body; 0: unknown
	// Read reads the body of a successful reply, of any size; nil: the body is decoded into Reply.
	Read  func(io.Reader) error
	Reply any
}

// Do sends the request without asking the Host, which has already permitted the whole job. Its error is the context's
// or a coded one, and contains no secret.
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

// RetryAfter is the wait that a server asks for in the headers of a reply; 0: none.
func RetryAfter(h http.Header) time.Duration { return retryAfter(h, time.Now()) }
