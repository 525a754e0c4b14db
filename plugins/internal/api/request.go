package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

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
	r.asked = r.called(ctx, text)
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
		result.Reason = c.excerpt(usageText(answer))
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

// Call is what Post would ask the Host to permit.
func (r *Request) Call(body any) (sdk.Call, error) {
	text, err := r.encode(body)
	if err != nil {
		return sdk.Call{}, sdk.Invalid(err)
	}
	return r.call(text), nil
}

type alternativeKey struct{}

// WithAlternative returns a context whose requests another service can answer as well.
func WithAlternative(ctx context.Context) context.Context {
	return context.WithValue(ctx, alternativeKey{}, true)
}

func (r *Request) called(ctx context.Context, body []byte) sdk.Call {
	call := r.call(body)
	call.Alternative, _ = ctx.Value(alternativeKey{}).(bool)
	return call
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
	lost := sdk.Result{Status: sdk.StatusDown, Lost: true}
	res, err := c.http.Do(req)
	if err != nil {
		if lost.Lost = !unsent(err); !lost.Lost {
			lost.RetryAfter = requeue
		}
		return nil, lost, c.lost(req, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, c.config.MaxReply+1))
	if err != nil {
		return nil, lost, c.lost(req, err)
	}
	if join != nil && isStream(res, text) {
		if text, err = join(text); err != nil {
			return nil, lost, c.lost(req, err)
		}
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

// Usage reads what a reply says of its cost in OpenAI's form; zero where it says nothing.
// An impossible number stays one, so that whoever counts can tell that it is wrong.
func Usage(reply []byte) sdk.Usage {
	var r struct {
		Usage struct {
			Prompt     float64 `json:"prompt_tokens"`
			Completion float64 `json:"completion_tokens"`
			Total      float64 `json:"total_tokens"`
			Details    struct {
				Cached float64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(reply, &r) // another form: zero
	u := r.Usage
	if u.Prompt == 0 && u.Completion == 0 { // some services for embeddings
		u.Prompt = u.Total
	}
	input := Count(u.Prompt)
	return sdk.Usage{InputTokens: input, CachedTokens: min(Count(max(u.Details.Cached, 0)), input), OutputTokens: Count(u.Completion)}
}

// usageText is what a reply says of its cost, as it stands there.
func usageText(reply []byte) string {
	var r struct{ Usage json.RawMessage }
	_ = json.Unmarshal(reply, &r) // another form: nothing
	return string(r.Usage)
}

// Count is a number of tokens as a service reports it: one that cannot be stays one.
func Count(n float64) uint64 {
	if !(n >= 0 && n < 1<<62) {
		return 1 << 62
	}
	return uint64(n)
}
