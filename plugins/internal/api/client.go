package api

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
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
	return &Client{config: c, fields: fields, secrets: secrets(c), http: http.Client{
		Transport: transport,
		Timeout:   c.Timeout,
		// A redirect is reported, not followed: it would carry headers to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

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
