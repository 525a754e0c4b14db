package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/racflow/racflow/sdk"
)

// transferTime is how long a transfer of a file may take, unless requests may take longer.
const transferTime = 30 * time.Minute

// Transfer is a request that asks no model: for a file, or a job.
type Transfer struct {
	Client *Client
	Method string
	Path   string      // below the base address, with its query
	Type   string      // of Body; empty: JSON
	Header http.Header // further headers
	Body   io.Reader   // nil: none
	Size   int64       // of Body; 0: unknown
	// Read gets the body of a reply that is a success, of any size; nil: it is decoded into Reply.
	Read  func(io.Reader) error
	Reply any
}

// Do sends the request, without asking the Host: who does a job has asked for all of it. Its
// error is the context's, Read's or a coded one, and holds no secret.
func (t Transfer) Do(ctx context.Context) (http.Header, error) {
	c := t.Client
	req, err := http.NewRequestWithContext(ctx, t.Method, c.config.BaseURL+t.Path, t.Body)
	if err != nil {
		return nil, sdk.Invalid(fmt.Errorf("base_url: %w", err))
	}
	req.ContentLength = t.Size
	c.setHeaders(req, t.Header)
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
		body := &noting{Reader: res.Body}
		if err = t.Read(body); body.err != nil {
			err = c.lost(req, body.err)
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

// noting remembers the error of reading.
type noting struct {
	io.Reader
	err error
}

func (n *noting) Read(p []byte) (int, error) {
	k, err := n.Reader.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return k, err
}
