package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/sdk"
)

const (
	maxReply   = 16 << 20       // bytes of a reply that are read
	maxExcerpt = 300            // characters of a server's message that are shown
	maxWait    = 24 * time.Hour // that a server may ask for
)

// doer sends the client's requests. It stands below go-openai because that
// drops what is needed here: a temperature of 0 from requests, and the headers
// from failures.
type doer struct {
	client          http.Client
	key             string
	temperatureZero bool
}

// Do sends a request and reads the whole reply. Every error it returns is a
// context's or a coded one, and none of them holds the key.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	if d.temperatureZero {
		var err error
		if req, err = withTemperatureZero(req); err != nil {
			return nil, err
		}
	}
	res, err := d.client.Do(req)
	if err != nil {
		return nil, d.lost(req, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return nil, d.lost(req, err)
	}
	if res.StatusCode >= 300 {
		return nil, d.refused(res, body)
	}
	if !json.Valid(body) {
		return nil, sdk.Invalid(fmt.Errorf("the server's reply is not JSON (%s); check base_url", d.excerpt(string(body))))
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// withTemperatureZero returns the request with the field that go-openai leaves
// out when it is 0, which servers would take for their default, mostly 1.
func withTemperatureZero(req *http.Request) (*http.Request, error) {
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(req.Body).Decode(&fields); err != nil {
		return nil, err
	}
	fields["temperature"] = json.RawMessage("0")
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	changed, err := http.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	changed.Header = req.Header
	return changed, nil
}

// lost is the error of a request that got no whole reply.
func (d *doer) lost(req *http.Request, err error) error {
	if req.Context().Err() != nil {
		return req.Context().Err()
	}
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		err = wrapped.Err // without the whole address
	}
	if errors.Is(err, context.DeadlineExceeded) { // not the context's: the client's own
		err = fmt.Errorf("no reply within %s", d.client.Timeout)
	}
	return sdk.Transient(fmt.Errorf("%s; check base_url and whether the server runs", d.excerpt(req.URL.Host+": "+err.Error())), 0)
}

// refused is the error of a status that is not a success.
func (d *doer) refused(res *http.Response, body []byte) error {
	message := string(body)
	var reply openai.ErrorResponse
	if json.Unmarshal(body, &reply) == nil && reply.Error != nil {
		message = reply.Error.Message
	}
	text := fmt.Sprintf("the server answered %d: %s", res.StatusCode, d.excerpt(message))
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += "; check api_key"
	case http.StatusNotFound:
		text += "; check base_url, endpoint and model"
	}
	err := &statusError{res.StatusCode, text}
	if retryable(res) {
		return sdk.Transient(err, retryAfter(res.Header, time.Now()))
	}
	return sdk.Invalid(err)
}

// statusError is a server's refusal, in words.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// badRequest reports whether a server found fault with the request's fields.
func badRequest(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusBadRequest || e.status == http.StatusUnprocessableEntity)
}

// retryable follows OpenAI's own clients: the server's word in x-should-retry
// first, then its status.
func retryable(res *http.Response) bool {
	if told, err := strconv.ParseBool(res.Header.Get("x-should-retry")); err == nil {
		return told
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return res.StatusCode >= 500
}

// retryAfter is how long the server asks to wait, in retry-after-ms or in
// retry-after as seconds or as a date; 0: it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := 0.0 // seconds
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil {
		wait = ms / 1000
	} else if s, err := strconv.ParseFloat(h.Get("retry-after"), 64); err == nil {
		wait = s
	} else if date, err := http.ParseTime(h.Get("retry-after")); err == nil {
		wait = date.Sub(now).Seconds()
	}
	if !(wait > 0) {
		return 0
	}
	return time.Duration(min(wait, maxWait.Seconds()) * float64(time.Second))
}

// excerpt makes a foreign text fit to be shown: on one line, not long, and
// without the key, which some servers repeat.
func (d *doer) excerpt(text string) string {
	if d.key != "" {
		text = strings.ReplaceAll(text, d.key, "(secret)")
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if runes := []rune(text); len(runes) > maxExcerpt {
		text = string(runes[:maxExcerpt]) + "..."
	}
	return text
}
