package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Options say how the servers are reached.
type Options struct {
	Servers              string          // "nats://a:4222,b,c", or tls://...; a user and password of the first hold for all
	Name                 string          // of this process, unlike all others: "host-1234-k3v9q2"
	Credentials          string          // file: .creds (JWT and key) or a seed (NKEY); empty: none
	CA, Certificate, Key string          // PEM files for TLS; empty: the system's authorities, no certificate
	Log                  *slog.Logger    // nil: nothing is logged
	Waiting              func(why error) // the servers cannot do what is asked of them for now: why when waiting begins, nil when it is over. It returns soon and asks nothing of the Conn. May be nil
}

const (
	dialTimeout    = 5 * time.Second
	pingInterval   = 5 * time.Second // a server that does not answer two pings is lost
	reconnectWait  = 500 * time.Millisecond
	oldestVersion  = "2.10.0" // consumers with filters in their subjects, subjects in a stream's info
	connectTimeout = 10 * time.Second
	sayAfter       = 2 * time.Second // people are told that a first connection takes its time
)

// servers gives each server of a list the scheme and the user of the first.
func servers(list string) ([]*url.URL, error) {
	var urls []*url.URL
	for each := range strings.SplitSeq(list, ",") {
		each = strings.TrimSpace(each)
		if each == "" {
			continue
		}
		scheme := "nats"
		if len(urls) > 0 {
			scheme = urls[0].Scheme
		}
		if !strings.Contains(each, "://") {
			each = scheme + "://" + each
		}
		u, err := url.Parse(each)
		if err != nil || u.Hostname() == "" {
			return nil, errors.New("the list of servers cannot be read: write nats:// or tls:// and HOST:PORT,HOST") // err may hold a password
		}
		if u.Scheme != "nats" && u.Scheme != "tls" {
			return nil, fmt.Errorf("server %s: write nats://%s or tls://%s", u.Host, u.Host, u.Host)
		}
		if u.Port() == "" {
			u.Host = u.Hostname() + ":4222"
			if strings.Contains(u.Hostname(), ":") {
				u.Host = "[" + u.Hostname() + "]:4222"
			}
		}
		if u.User == nil && len(urls) > 0 {
			u.User = urls[0].User
		}
		urls = append(urls, u)
	}
	if len(urls) == 0 {
		return nil, errors.New("no servers are named: write nats:// or tls:// and HOST:PORT,HOST")
	}
	return urls, nil
}

func hosts(urls []*url.URL) string {
	names := make([]string, len(urls))
	for i, u := range urls {
		names[i] = u.Scheme + "://" + u.Host
	}
	return strings.Join(names, ", ")
}

// dialOptions are the options of nats.go but the handlers.
func (o Options) dialOptions() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(o.Name), nats.Timeout(dialTimeout), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.ReconnectBufSize(-1), // what cannot be sent fails, and is sent again by who knows whether it should
	}
	if o.CA != "" {
		if err := readable("certificate authority", o.CA); err != nil {
			return nil, err
		}
		options = append(options, nats.RootCAs(o.CA))
	}
	switch {
	case o.Certificate != "" && o.Key != "":
		if err := errors.Join(readable("certificate", o.Certificate), readable("key", o.Key)); err != nil {
			return nil, err
		}
		options = append(options, nats.ClientCert(o.Certificate, o.Key))
	case o.Certificate != "" || o.Key != "":
		return nil, errors.New("a certificate for TLS and its key belong together: name both files")
	}
	if o.Credentials == "" {
		return options, nil
	}
	data, err := os.ReadFile(o.Credentials)
	if err != nil {
		return nil, fmt.Errorf("credentials for the servers: %w", err)
	}
	if strings.Contains(string(data), "NATS USER JWT") {
		return append(options, nats.UserCredentials(o.Credentials)), nil
	}
	seed, err := nats.NkeyOptionFromSeed(o.Credentials)
	if err != nil {
		return nil, fmt.Errorf("credentials for the servers: %s is neither a .creds file nor the seed of a user's key: %w", o.Credentials, err)
	}
	return append(options, seed), nil
}

func readable(what, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s for TLS: %w", what, err)
	}
	return file.Close()
}
