package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

const publicHub = "https://huggingface.co"

// ErrOffline says that the environment forbids to ask the hub.
var ErrOffline = errors.New("HF_HUB_OFFLINE is set, so the hub is not asked")

// Client asks hubs.
type Client struct {
	// Quick makes a hub that does not answer fail after seconds, without another attempt: there is
	// another way to get the files.
	Quick bool
	// Note gets a line where an attempt failed and another one follows; nil: nobody reads it.
	Note func(string)

	endpoint *url.URL
	token    string
	offline  bool
	http     *http.Client
	reached  bool // some server has answered

	answer time.Duration // the longest time until a server's headers are there, redirects included
	stall  time.Duration // the longest time without a byte
	sleep  func(context.Context, time.Duration) error
}

// New makes a client as the environment says.
func New() (*Client, error) {
	endpoint, err := parseAddress(cmp.Or(os.Getenv("HF_ENDPOINT"), publicHub))
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the proxies of the environment
	transport.DisableCompression = true                          // else sizes and hashes are of something else
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	transport.OnProxyConnectResponse = refused
	return &Client{
		endpoint: endpoint, token: token(), offline: isSet("HF_HUB_OFFLINE"),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		answer: 30 * time.Second, stall: time.Minute, sleep: support.SleepFor,
	}, nil
}

// refused says that a proxy lets nobody through to a hub.
func refused(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	text := fmt.Sprintf("the proxy %s answered %d %s", proxy.Host, answer.StatusCode, http.StatusText(answer.StatusCode))
	if answer.StatusCode == http.StatusProxyAuthRequired {
		text += "; put its user and password into HTTPS_PROXY"
	}
	return errors.New(text)
}

// isSet reports whether a variable of the hub is on, in the words that its own library takes.
func isSet(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// token is the user's token for the endpoint; "": there is none.
func token() string {
	if isSet("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		return ""
	}
	if t := cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN")); t != "" {
		return strings.TrimSpace(t)
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if home := os.Getenv("HF_HOME"); path == "" && home != "" {
		path = filepath.Join(home, "token")
	}
	if path == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if home, err := os.UserHomeDir(); cache == "" && err == nil {
			cache = filepath.Join(home, ".cache")
		}
		path = filepath.Join(cache, "huggingface", "token")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "" // most people have none
	}
	return strings.TrimSpace(string(content))
}

// answerTime is how long a server may take until its headers are there.
func (c *Client) answerTime() time.Duration {
	if c.Quick {
		return min(c.answer, 4*time.Second)
	}
	return c.answer
}

// stallTime is how long it may send nothing after that.
func (c *Client) stallTime() time.Duration {
	if c.Quick {
		return min(c.stall, 15*time.Second)
	}
	return c.stall
}

// attempts is how often in a row something may fail before the client gives up.
func (c *Client) attempts() int {
	if c.Quick {
		return 1
	}
	return 5
}

// longestWait is how long a server may ask to wait before another attempt.
const longestWait = 2 * time.Minute

// delay is how long to wait after a number of failures in a row, of which err is the last.
func delay(failures int, err error) (time.Duration, error) {
	var status *StatusError
	if errors.As(err, &status) && status.After > 0 {
		if status.After > longestWait {
			return 0, fmt.Errorf("%w; it asks to wait %s: try again later", err, status.After)
		}
		return status.After, nil
	}
	return support.Backoff{First: time.Second, Max: 30 * time.Second}.Delay(failures), nil
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
