package api

import (
	"bytes"
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
	Fields map[string]any // that go into the body before those of Config.Body; a nil takes one out
	Tokens int            // that the reply may cost; those of the body are estimated
	// Bounded says that the reply has no more than Tokens, since the request sets
	// that limit, and that its body is all that the service reads.
	Bounded bool
	Alone   bool // it goes out without the Host: for a stage that is opening
	// Took is called when the reply has been decoded, before the Host hears that
	// the call has ended: what it keeps is safe when the Host lets the next call
	// through, so that no more than the calls under way are ever lost. Its error
	// is Post's; the Host hears of an answer all the same, unless it is NoAnswer.
	// nil: nothing to do.
	Took func() error

	usage sdk.Usage
}

// Usage is what the call cost, once Took is called or Post has returned.
func (r *Request) Usage() sdk.Usage { return r.usage }

// Post sends body, a JSON object, to a path below the base address and decodes
// the reply. Every error it returns is a context's, the Host's, Took's or a
// coded one, and none of its own holds a secret.
func (r *Request) Post(ctx context.Context, path string, body, reply any) (err error) {
	c := r.Client
	text, err := r.Body(body)
	if err != nil {
		return sdk.Invalid(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return sdk.Invalid(fmt.Errorf("base_url: %w", err))
	}
	c.head(req)
	release := func(sdk.Result) {}
	if !r.Alone {
		if release, err = c.config.Host.Acquire(ctx, r.call(text)); err != nil {
			return err
		}
	}
	result := sdk.Result{Status: sdk.StatusDown}
	defer func() {
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
	answer, result, err := c.send(req)
	if err != nil {
		return err
	}
	if result.Usage.Plausible() { // the Host hears of any, and says what cannot be
		r.usage = result.Usage
	}
	err = r.read(answer, reply)
	result.Status = c.worth(err)
	return err
}

// Call is what Post would ask the Host for.
func (r *Request) Call(body any) (sdk.Call, error) {
	text, err := r.Body(body)
	if err != nil {
		return sdk.Call{}, sdk.Invalid(err)
	}
	return r.call(text), nil
}

func (r *Request) call(body []byte) sdk.Call {
	call := sdk.Call{Endpoint: r.Client.config.BaseURL, Tokens: Tokens(body) + r.Tokens}
	if r.Bounded && r.Client.Plain() {
		// No token is shorter than a byte.
		call.Most = sdk.Usage{InputTokens: uint64(len(body)), OutputTokens: uint64(r.Tokens)}
	}
	return call
}

// harmless are fields of Config.Body that do not make a request take more.
var harmless = []string{
	"dimensions", "encoding_format", "frequency_penalty", "input_type", "logit_bias", "metadata", "min_p", "presence_penalty",
	"prompt_cache_key", "repetition_penalty", "safety_identifier", "seed", "stop", "store", "task", "temperature", "top_k", "top_p", "truncate", "user",
}

// Plain reports whether Config.Body adds nothing by which a request may take more
// than it seems to: another limit, more answers, tools.
func (c *Client) Plain() bool {
	for name := range c.fields {
		if !slices.Contains(harmless, name) {
			return false
		}
	}
	return true
}

// read decodes a reply that is a success, and hands it over.
func (r *Request) read(answer []byte, reply any) error {
	if err := json.Unmarshal(answer, reply); err != nil {
		text := r.Client.excerpt(err.Error())
		return sdk.Invalid(&noAnswerError{fmt.Sprintf("the server's reply has another form: %s; check base_url", text)})
	}
	if r.Took != nil {
		return r.Took()
	}
	return nil
}

// send returns a reply that is a success, without secrets, and how the call
// ended.
func (c *Client) send(req *http.Request) ([]byte, sdk.Result, error) {
	lost := sdk.Result{Status: sdk.StatusDown, Lost: true}
	res, err := c.http.Do(req)
	if err != nil {
		lost.Lost = !unsent(err)
		return nil, lost, c.lost(req, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, c.config.MaxReply+1))
	if err != nil {
		return nil, lost, c.lost(req, err)
	}
	result, err := c.judge(res, text, time.Now())
	return c.redact(text), result, err
}

// Body is what is sent for of, a JSON object, with the fields that are added.
func (r *Request) Body(of any) ([]byte, error) {
	text, err := json.Marshal(of)
	if err != nil || len(r.Fields)+len(r.Client.fields) == 0 {
		return text, err
	}
	// Values stay as they are: the order of a schema's properties matters.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range r.Fields {
		if value == nil {
			delete(fields, name)
		} else if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	maps.Copy(fields, r.Client.fields)
	return json.Marshal(fields)
}

func (c *Client) head(req *http.Request) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "racflow")
	if c.config.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.APIKey)
	}
	for name, value := range c.config.Headers {
		req.Header.Set(name, value)
	}
}

// Tokens estimates the tokens of a text: one for every four characters, which
// is about right for English.
func Tokens(text []byte) int { return (utf8.RuneCount(text) + 3) / 4 }

// usage reads what a reply says of its cost; zero where it says nothing. A number
// that no call can take stays one: whoever counts has to know that it is wrong.
func usage(reply []byte) sdk.Usage {
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
	input := count(u.Prompt)
	return sdk.Usage{InputTokens: input, CachedTokens: min(count(u.Details.Cached), input), OutputTokens: count(u.Completion)}
}

// count makes a number of tokens of a number.
func count(n float64) uint64 { return uint64(min(max(n, 0), 1<<62)) }
