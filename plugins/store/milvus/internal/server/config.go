package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Config are the arguments of the connection.
type Config struct {
	Address  string `config:"address" affects_output:"false" default:"127.0.0.1:19530" doc:"host:port, or a URI with https:// for a server with TLS, such as Zilliz Cloud."`
	Database string `config:"database" affects_output:"false" doc:"The database on the server; its default one if not given."`
	User     string `config:"user" affects_output:"false" requires:"password" conflicts:"token" doc:"User name, with a password."`
	Password string `config:"password,secret" requires:"user" doc:"The user's password."`
	Token    string `config:"token,secret" doc:"API key, in place of user and password."`

	TLS        bool     `config:"tls" affects_output:"false" doc:"Encrypt the connection; https:// does as well."`
	CA         sdk.Path `config:"ca" affects_output:"false" doc:"PEM file of the authority that signed the server's certificate; the system's if not given."`
	ServerName string   `config:"server_name" affects_output:"false" doc:"Name in the server's certificate, where it is not that of the address."`
	Cert       sdk.Path `config:"cert" affects_output:"false" requires:"key" doc:"PEM file of a client certificate, where the server asks for one."`
	Key        sdk.Path `config:"key" affects_output:"false" requires:"cert" doc:"PEM file of its key."`

	ConnectTimeout time.Duration `config:"connect_timeout" affects_output:"false" default:"10s" above:"0s" doc:"How long a connection may take."`
	CallTimeout    time.Duration `config:"call_timeout" affects_output:"false" default:"30s" above:"0s" max:"1m" doc:"How long one call may take."`
	RetryTime      time.Duration `config:"retry_time" affects_output:"false" default:"1m" min:"0s" doc:"How long a call is tried again while the server is away or overloaded."`
}

// endpoint takes the address apart. Zilliz Cloud shows URIs with https.
func (c *Config) endpoint() (address string, secure bool, err error) {
	if strings.Contains(c.Address, "@") {
		// Its text could hold a password.
		return "", false, errors.New("user and password do not belong into it: use the arguments user and password")
	}
	scheme, rest, ok := strings.Cut(c.Address, "://")
	if !ok {
		scheme, rest = "tcp", c.Address
	}
	port := "19530"
	switch scheme {
	case "https":
		port = "443"
	case "http", "tcp":
	default:
		return "", false, fmt.Errorf("%q begins with none of https://, http:// and tcp://", c.Address)
	}
	u, err := url.Parse("tcp://" + rest)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, fmt.Errorf("%q is not host:port or a URI of a server", c.Address)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port), c.TLS || scheme == "https", nil
}

// tlsConfig reads the files of certificates.
func (c *Config) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(string(c.CA))
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "ca", Err: err}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &sdk.ArgumentError{Argument: "ca", Err: fmt.Errorf("%s holds no certificate", c.CA)}
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(string(c.Cert), string(c.Key))
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "cert", Err: err}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
