package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Config says where a service is and what every request to it carries. Its
// fields are named after the arguments that stages have for them.
type Config struct {
	BaseURL  string            // up to and with the version, without a slash at its end
	APIKey   string            // for the Authorization header; empty: none
	Headers  map[string]string // further ones; they go before those of this package
	Body     string            // a JSON object whose fields go into every body; empty: none
	Reserved []string          // fields that Body must not set
	Timeout  time.Duration     // of one request, from its sending to the whole reply
	MaxReply int64             // bytes; 0: 16 MiB
	Host     sdk.Host
	Log      *slog.Logger // nil: nothing is logged
}

// Client calls one service. Its methods may be called by several goroutines.
type Client struct {
	config  Config
	http    http.Client
	fields  map[string]json.RawMessage // of Config.Body
	secrets []string                   // that no error may hold
	said    sync.Map                   // what was logged once
	slips   atomic.Int64               // replies in a row that were no answers
}

// Check reports what is wrong with a config: ArgumentErrors about base_url, api_key,
// headers and body.
func (c Config) Check() error {
	var faults Faults
	u, err := url.Parse(c.BaseURL)
	faults.Need(err == nil && u.Host != "", "base_url", "it must be an address such as http://127.0.0.1:8080/v1")
	faults.Need(err != nil || u.User == nil && u.RawQuery == "" && u.Fragment == "",
		"base_url", "it must hold no name, password or question mark: they would be shown; write a key as api_key or headers")
	faults.Need(printable(strings.TrimSpace(c.APIKey), false), "api_key", "it holds a character that no key has; was it copied whole?")
	for name, value := range c.Headers {
		faults.Need(token(name), "headers", fmt.Sprintf("%q is not the name of a header", name))
		faults.Need(printable(value, true), "headers", fmt.Sprintf("the value of %q holds a character that no header has", name))
		faults.Need(!slices.Contains([]string{"content-length", "host", "transfer-encoding"}, strings.ToLower(name)),
			"headers", fmt.Sprintf("%q is not for you to set", name))
	}
	fields, err := c.fields()
	faults.Need(err == nil, "body", `it must be a JSON object such as jsonencode({ user = "me" })`)
	for _, name := range c.Reserved {
		faults.Need(fields[name] == nil, "body", fmt.Sprintf("%q is set by the stage itself", name))
	}
	return faults.Err()
}

// fields are those of Body.
func (c Config) fields() (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if strings.TrimSpace(c.Body) == "" {
		return fields, nil
	}
	if err := json.Unmarshal([]byte(c.Body), &fields); err != nil || fields == nil {
		return nil, errors.New("the body is not a JSON object")
	}
	return fields, nil
}

// New returns a client. Its errors are those of Check.
func New(c Config) (*Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	fields, err := c.fields()
	if err != nil {
		return nil, err
	}
	c.APIKey = strings.TrimSpace(c.APIKey) // a key from a file often ends in a line break
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.MaxReply == 0 {
		c.MaxReply = 16 << 20
	}
	if c.Host == nil {
		c.Host = sdk.Alone()
	}
	return &Client{config: c, http: newHTTP(c.Timeout), fields: fields, secrets: secrets(c)}, nil
}

func newHTTP(timeout time.Duration) http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256 // as many as are under way are kept
	return http.Client{
		Transport: transport,
		Timeout:   timeout,
		// A redirect is shown, not followed: it would carry headers to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// shortest is the length from which a header's value counts as a secret: "1"
// stands in many texts.
const shortest = 6

func secrets(c Config) []string {
	var all []string
	if c.APIKey != "" {
		all = append(all, c.APIKey)
	}
	for _, value := range c.Headers {
		value = strings.TrimSpace(value)
		if len(value) >= shortest {
			all = append(all, value)
		}
		// Of "Bearer KEY" the key alone, too.
		if _, key, ok := strings.Cut(value, " "); ok && len(key) >= shortest {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // what holds another goes first
	return all
}

// unmistakable is the length from which a secret stands in no text by chance, so
// that it may be taken out of replies: answers can be any short word.
const unmistakable = 16

// redact takes out of a reply the secrets that a server repeats in it.
func (c *Client) redact(reply []byte) []byte {
	for _, secret := range c.secrets {
		if len(secret) >= unmistakable {
			reply = bytes.ReplaceAll(reply, []byte(secret), []byte(hiddenSecret))
		}
	}
	return reply
}

// hiddenSecret is shown in place of a secret.
const hiddenSecret = "(secret)"

func printable(text string, spaces bool) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r > '~' || r == ' ' && !spaces
	})
}

// token reports whether a text is a token of RFC 9110.
func token(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
	})
}

// Address is the service's base address: what limits are shared by.
func (c *Client) Address() string { return c.config.BaseURL }

// Body returns Config.Body in one form: the same fields, the same text. It is
// for cache keys.
func (c *Client) Body() string {
	if len(c.fields) == 0 {
		return ""
	}
	var sorted map[string]any
	text, err := json.Marshal(c.fields)
	if err == nil {
		err = json.Unmarshal(text, &sorted)
	}
	if err == nil {
		text, err = json.Marshal(sorted)
	}
	if err != nil { // New has decoded it
		panic(err)
	}
	return string(text)
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
