package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Request is one call of a service. It also serves as the HTTP client of a
// library that makes the request, which is why it has a Do.
type Request struct {
	Client *Client
	Fields map[string]any // that go into the body before those of Config.Body; a nil takes one out
	Tokens int            // that the reply may cost; those of the body are estimated
	Alone  bool           // it goes out without the Host: for a stage that is opening
	// Hold puts off telling the Host that the call has ended until Finish, which
	// the caller then has to call: when the Host lets the next one through, the
	// answer of this one is kept, and no more than the calls under way are lost.
	Hold bool

	usage  sdk.Usage
	finish func() // nil: it has been told
}

// Finish tells the Host that a call has ended that was held.
func (r *Request) Finish() {
	if r.finish != nil {
		r.finish()
		r.finish = nil
	}
}

// Usage is what the call cost, once Do or Post has returned.
func (r *Request) Usage() sdk.Usage { return r.usage }

// Post sends body to a path below the base address and decodes the reply.
func (r *Request) Post(ctx context.Context, path string, body, reply any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return sdk.Invalid(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Client.config.BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return sdk.Invalid(fmt.Errorf("base_url: %w", err))
	}
	res, err := r.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(reply); err != nil {
		return sdk.Invalid(fmt.Errorf("the server's reply has another form: %s; check base_url", r.Client.excerpt(err.Error())))
	}
	return nil
}

// Do sends a request whose body is a JSON object, and reads the whole reply,
// which is JSON. Every error it returns is a context's, the Host's or a coded
// one, and none of them holds a secret.
func (r *Request) Do(req *http.Request) (_ *http.Response, err error) {
	ctx, c := req.Context(), r.Client
	body, err := r.body(req)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	sent, err := http.NewRequestWithContext(ctx, req.Method, req.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	c.head(sent)
	done := func(sdk.Outcome) {}
	if !r.Alone {
		call := sdk.Call{Endpoint: c.config.BaseURL, Tokens: Tokens(body) + r.Tokens}
		if done, err = c.config.Host.Admit(ctx, call); err != nil {
			return nil, err
		}
	}
	outcome := sdk.Outcome{Status: sdk.StatusDown}
	defer func() {
		if ctx.Err() != nil && outcome.Status != sdk.StatusOK {
			outcome.Status = sdk.StatusLeft
		}
		if (outcome.Status == sdk.StatusDown || outcome.Status == sdk.StatusDenied) && err != nil {
			outcome.Reason = err.Error()
		}
		if r.finish = func() { done(outcome) }; !r.Hold {
			r.Finish()
		}
	}()
	res, err := c.http.Do(sent)
	if err != nil {
		return nil, c.lost(sent, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, c.config.MaxReply+1))
	if err != nil {
		return nil, c.lost(sent, err)
	}
	if outcome, err = c.judge(res, text, time.Now()); err != nil {
		return nil, err
	}
	r.usage = outcome.Usage
	res.Body = io.NopCloser(bytes.NewReader(c.redact(text)))
	return res, nil
}

// body returns the request's body with the fields that are added.
func (r *Request) body(req *http.Request) ([]byte, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if len(r.Fields)+len(r.Client.fields) == 0 {
		return text, nil
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

// usage reads what a reply says of its cost; zero where it says nothing.
func usage(reply []byte) sdk.Usage {
	var r struct {
		Usage struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
			Total      int64 `json:"total_tokens"`
			Details    struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(reply, &r) // another form: zero
	u := r.Usage
	if u.Prompt == 0 && u.Completion == 0 { // some services for embeddings
		u.Prompt = u.Total
	}
	input := max(0, u.Prompt)
	return sdk.Usage{
		InputTokens: uint64(input), CachedTokens: uint64(min(max(0, u.Details.Cached), input)), OutputTokens: uint64(max(0, u.Completion)),
	}
}
