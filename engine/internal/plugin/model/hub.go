package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// This file downloads files of repositories on a model hub: Hugging Face's, a mirror of it, or any
// server with its addresses, ENDPOINT/OWNER/MODEL/resolve/REVISION/PATH.
//
// It respects the usual environment: HF_ENDPOINT, HF_TOKEN or the file with the token,
// HF_HUB_OFFLINE, and the proxy variables. It sends the token only to the endpoint's host, never
// along a redirect to another one. It resumes a partial file if the server still has the same
// content, and compares the result with the hash that the hub declares.
//
// contents.go knows which files make a model, and pull.go where they belong.

const publicHub = "https://huggingface.co"

// ErrOffline says that the environment forbids asking the hub.
var ErrOffline = errors.New("HF_HUB_OFFLINE is set, so the hub is not asked")

// HubClient sends requests to hubs.
type HubClient struct {
	// Quick gives up after seconds on a hub that does not answer, without another attempt: the caller
	// has another source of the files.
	Quick bool
	// Note gets a line when an attempt has failed and another one follows; may be nil.
	Note func(string)

	endpoint *url.URL
	token    string
	offline  bool
	http     *http.Client
	reached  bool // a server has answered

	answer time.Duration // the longest time until a server has sent its headers, redirects included
	stall  time.Duration // the longest time without a byte
	sleep  func(context.Context, time.Duration) error
}

// NewHubClient returns a client configured by the environment.
func NewHubClient() (*HubClient, error) {
	endpoint, err := parseAddress(cmp.Or(os.Getenv("HF_ENDPOINT"), publicHub))
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the environment's proxies
	transport.DisableCompression = true                          // compression would change sizes and hashes
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	transport.OnProxyConnectResponse = refused
	return &HubClient{
		endpoint: endpoint, token: token(), offline: isSet("HF_HUB_OFFLINE"),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		answer: 30 * time.Second, stall: time.Minute, sleep: support.SleepFor,
	}, nil
}

// refused returns an error if a proxy refuses a connection to a hub.
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

// isSet reports whether a variable of the hub is on, as the hub's own library reads it.
func isSet(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// token returns the user's token for the endpoint; "": there is none.
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

// answerTime is how long a server may take to send its headers.
func (c *HubClient) answerTime() time.Duration {
	if c.Quick {
		return min(c.answer, 4*time.Second)
	}
	return c.answer
}

// stallTime is how long a server may then send nothing.
func (c *HubClient) stallTime() time.Duration {
	if c.Quick {
		return min(c.stall, 15*time.Second)
	}
	return c.stall
}

// attempts is how many failures in a row make the client give up.
func (c *HubClient) attempts() int {
	if c.Quick {
		return 1
	}
	return 5
}

// longestWait is how long a server may ask the client to wait: if it asks for more, the client gives up.
const longestWait = 2 * time.Minute

// delay returns how long to wait after a number of failures in a row; err is the last one.
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

// retryAfter parses the header Retry-After: seconds or a date.
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

// StatusError is an answer other than a file.
type StatusError struct {
	Host    string
	Status  int           // HTTP status
	Code    string        // the hub's error code, such as GatedRepo; may be empty
	Message string        // from the hub, safe to print on a terminal; may be empty
	After   time.Duration // how long to wait before another attempt; 0: unknown

	token bool // the request had a token
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.Host, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch {
	case e.Code == "GatedRepo":
		return text + "; accept the model's terms on its page, and set HF_TOKEN to a token that may read it"
	case e.Code == "RevisionNotFound":
		return text + "; there is no such revision"
	case e.Status == http.StatusUnauthorized && e.token:
		return text + "; the repository does not exist, or the token (HF_TOKEN) is not valid for it"
	case e.Status == http.StatusUnauthorized, e.Code == "RepoNotFound":
		return text + "; the repository does not exist, or it is private: then set HF_TOKEN"
	case e.Status == http.StatusForbidden:
		return text + "; the token (HF_TOKEN) may not read it, or a proxy forbids it"
	}
	return text
}

// Is makes a StatusError for a missing file match fs.ErrNotExist.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Status == http.StatusNotFound && (e.Code == "" || e.Code == "EntryNotFound")
}

func statusError(r *http.Response) *StatusError {
	message := []rune(terminal.Sanitize(r.Header.Get("X-Error-Message")))
	if len(message) > 200 {
		message = append(message[:200], '…')
	}
	return &StatusError{
		Host: r.Request.URL.Host, Status: r.StatusCode, Code: r.Header.Get("X-Error-Code"), Message: string(message),
		After: retryAfter(r.Header, time.Now()), token: r.Request.Header.Get("Authorization") != "",
	}
}

// temporary reports whether another attempt may succeed.
func temporary(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status == http.StatusRequestTimeout || status.Status == http.StatusTooManyRequests || status.Status >= 500
	}
	var broken *transferError
	return errors.As(err, &broken)
}

// transferError is a failed connection.
type transferError struct{ err error }

func (e *transferError) Error() string { return e.err.Error() }
func (e *transferError) Unwrap() error { return e.err }

var (
	errSilent  = errors.New("no answer in time")
	errStalled = errors.New("nothing more arrived")
)

// transferred describes a failed request without its address, which may contain a signature.
func transferred(ctx context.Context, host string, err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return &transferError{fmt.Errorf("%s: %w", host, err)}
}

// Repository is a model's repository on a hub.
type Repository struct {
	Address  *url.URL // of its page, such as https://huggingface.co/OWNER/MODEL
	Revision string   // branch, tag or commit
}

func (r Repository) String() string { return r.Address.String() }

// Name returns the last part of the address.
func (r Repository) Name() string { return path.Base(r.Address.Path) }

// owned matches OWNER/MODEL; neither part can be "..".
var owned = support.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// IsOwned reports whether a text has the form OWNER/MODEL.
func IsOwned(text string) bool { return owned().MatchString(text) }

// Repository parses the name of a repository: OWNER/MODEL at the endpoint, or the address of its
// page, optionally with /tree/REVISION. The argument revision takes precedence; without any
// revision, it is main.
func (c *HubClient) Repository(text, revision string) (Repository, error) {
	var r Repository
	if IsOwned(text) {
		r = Repository{Address: c.endpoint.JoinPath(text)}
	} else {
		address, err := parseAddress(text)
		if err != nil {
			return r, err
		}
		steps := strings.Split(strings.Trim(address.Path, "/"), "/")
		for i, step := range steps {
			if i > 1 && i+1 < len(steps) && (step == "tree" || step == "resolve" || step == "blob") {
				r.Revision = steps[i+1]
				steps = steps[:i]
				break
			}
		}
		if len(steps) < 2 || !owned().MatchString(strings.Join(steps[len(steps)-2:], "/")) {
			return r, fmt.Errorf("%q is not the address of a model: it is https://HUB/OWNER/MODEL", text)
		}
		address.Path, address.RawPath = "/"+strings.Join(steps, "/"), ""
		r.Address = address
	}
	if revision != "" {
		r.Revision = revision
	}
	if r.Revision == "" {
		r.Revision = "main"
	}
	if strings.Contains(r.Revision, "..") || strings.ContainsFunc(r.Revision, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return r, fmt.Errorf("%q is not a revision: use a branch, a tag or a commit", r.Revision)
	}
	return r, nil
}

// parseAddress parses the address of a hub or of something on it.
func parseAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("%q is neither a folder, nor OWNER/MODEL, nor an address such as https://HUB/OWNER/MODEL", text)
	}
	if address.User != nil {
		return nil, errors.New("an address with a password: give the hub's token in HF_TOKEN")
	}
	if !safe(address) {
		return nil, fmt.Errorf("%q: use https", text)
	}
	address.RawQuery, address.Fragment = "", ""
	return address, nil
}

// safe reports whether no third party can read or change what is sent to an address.
func safe(address *url.URL) bool {
	host := address.Hostname()
	ip := net.ParseIP(host)
	return address.Scheme == "https" || address.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// file returns the address of one file of the repository.
func (r Repository) file(name string) *url.URL {
	a := *r.Address
	plain := strings.TrimSuffix(a.Path, "/") + "/resolve/"
	a.Path = plain + r.Revision + "/" + name
	a.RawPath = (&url.URL{Path: plain}).EscapedPath() + url.PathEscape(r.Revision) + "/" + (&url.URL{Path: name}).EscapedPath()
	return &a
}
