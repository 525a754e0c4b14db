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

// Request is one call of a service.
type Request struct {
	Client *Client
	Fields map[string]any // that go into the body before those of Config.Body; a nil takes one out
	Tokens int            // that the reply may cost; those of the body are estimated
	Alone  bool           // it goes out without the Host: for a stage that is opening
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
	text, err := r.body(body)
	if err != nil {
		return sdk.Invalid(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return sdk.Invalid(fmt.Errorf("base_url: %w", err))
	}
	c.head(req)
	done := func(sdk.Outcome) {}
	if !r.Alone {
		call := sdk.Call{Endpoint: c.config.BaseURL, Tokens: Tokens(text) + r.Tokens}
		if done, err = c.config.Host.Admit(ctx, call); err != nil {
			return err
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
		done(outcome)
	}()
	answer, outcome, err := c.send(req)
	if err != nil {
		return err
	}
	r.usage = outcome.Usage
	err = r.read(answer, reply)
	outcome.Status = c.worth(err)
	return err
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
func (c *Client) send(req *http.Request) ([]byte, sdk.Outcome, error) {
	lost := sdk.Outcome{Status: sdk.StatusDown}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, lost, c.lost(req, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, c.config.MaxReply+1))
	if err != nil {
		return nil, lost, c.lost(req, err)
	}
	outcome, err := c.judge(res, text, time.Now())
	return c.redact(text), outcome, err
}

// body is a request's body with the fields that are added.
func (r *Request) body(of any) ([]byte, error) {
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
