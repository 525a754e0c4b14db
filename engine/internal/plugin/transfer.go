package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/racflow/racflow/engine/internal/process/confine"
)

// This file holds what downloads of plugins and of models share: connections that end after a silence, addresses on
// which nobody can listen, and errors that do not repeat signed addresses.

// Silence is how long a server may send nothing before the connection ends.
const Silence = time.Minute

// Transport is the default transport, with the environment's proxies. It ends a connection whose server sends nothing
// for the given time, even in the middle of a download. It uses no compression, so that sizes and hashes are those of
// the files.
func Transport(silence time.Duration) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.OnProxyConnectResponse = refused
	dial := (&net.Dialer{Timeout: min(silence, 10*time.Second)}).DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &patient{c, silence}, nil
	}
	return t
}

// patient is a connection with a deadline for each read.
type patient struct {
	net.Conn
	silence time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.silence)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// refused returns an error if a proxy refuses a connection.
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

// Safe reports whether nobody on the network can read or change what is sent to an address: the address uses https, or
// is this machine.
func Safe(address *url.URL) bool {
	return address.Scheme == "https" || address.Scheme == "http" && confine.ThisMachine(address.Host)
}

// maxRedirects limits how often a server may redirect.
const maxRedirects = 8

// StaySafe refuses redirects to addresses that are not Safe. It also refuses redirects from https to this machine,
// whose services must not be exposed to other servers. It is for http.Client.CheckRedirect.
func StaySafe(to *http.Request, before []*http.Request) error {
	switch from := before[0].URL; {
	case len(before) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case !Safe(to.URL) || from.Scheme == "https" && to.URL.Scheme != "https":
		return fmt.Errorf("%s redirects to an address that is not https", from.Host)
	}
	return nil
}

// Plain returns an error of net/http with the host in place of the address, since a signed address contains a secret.
func Plain(err error) error {
	var about *url.Error
	if !errors.As(err, &about) {
		return err
	}
	if address, bad := url.Parse(about.URL); bad == nil && address.Host != "" {
		return fmt.Errorf("%s: %w", address.Host, about.Err)
	}
	return about.Err
}
