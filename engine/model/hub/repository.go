package hub

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Repository is a model's repository on a hub.
type Repository struct {
	Address  *url.URL // of its page, such as https://huggingface.co/OWNER/MODEL
	Revision string   // a branch, tag or commit
}

func (r Repository) String() string { return r.Address.String() }

// Name is the last part of the address.
func (r Repository) Name() string { return path.Base(r.Address.Path) }

// owned is OWNER/MODEL. Neither part may be a step up.
var owned = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// IsOwned reports whether a text is of the form OWNER/MODEL.
func IsOwned(text string) bool { return owned.MatchString(text) }

// Repository returns the repository that a text names: OWNER/MODEL at the endpoint, or the address
// of its page, which may go on with /tree/REVISION. A revision that is given beside it goes first;
// without any it is main.
func (c *Client) Repository(text, revision string) (Repository, error) {
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
		if len(steps) < 2 || !owned.MatchString(strings.Join(steps[len(steps)-2:], "/")) {
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

// parseAddress reads the address of a hub or of something there.
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

// safe reports whether nobody between here and there can read or change what is sent.
func safe(address *url.URL) bool {
	host := address.Hostname()
	ip := net.ParseIP(host)
	return address.Scheme == "https" || address.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// file is the address of one file of the repository.
func (r Repository) file(name string) *url.URL {
	a := *r.Address
	plain := strings.TrimSuffix(a.Path, "/") + "/resolve/"
	a.Path = plain + r.Revision + "/" + name
	a.RawPath = (&url.URL{Path: plain}).EscapedPath() + url.PathEscape(r.Revision) + "/" + (&url.URL{Path: name}).EscapedPath()
	return &a
}
