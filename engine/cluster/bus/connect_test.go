package bus

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// authority signs certificates and keeps them in files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

// sign leaves NAME.pem and NAME-key.pem.
func (a *authority) sign(name string, change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	change(template)
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(a.t)
	private := must.Get(x509.MarshalECPrivateKey(key))(a.t)
	for path, block := range map[string]*pem.Block{a.file(name): {Type: "CERTIFICATE", Bytes: der}, a.file(name + "-key"): {Type: "EC PRIVATE KEY", Bytes: private}} {
		must.Do(a.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return must.Get(x509.ParseCertificate(der))(a.t), key
}

func (a *authority) config(name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	pair := must.Get(tls.LoadX509KeyPair(a.file(name), a.file(name+"-key")))(a.t)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}

func local(c *x509.Certificate)     { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }
func elsewhere(c *x509.Certificate) { c.DNSNames = []string{"elsewhere.example"} }

// What does not pass by itself is refused at once, with what to do; what may pass, after a bounded time, with the servers' names.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	ours.sign("server", local)
	ours.sign("stranger", elsewhere)
	ours.sign("client", local)
	others.sign("client", local)
	secure := natstest.Start(t, 1, func(_ int, o *server.Options) { o.TLSConfig, o.TLSTimeout = ours.config("server"), 5 })
	misnamed := natstest.Start(t, 1, func(_ int, o *server.Options) { o.TLSConfig, o.TLSTimeout = ours.config("stranger"), 5 })
	plain := natstest.Start(t, 1)
	users := natstest.Start(t, 1, func(_ int, o *server.Options) {
		none := server.NewAccount("SYS") // the system account keeps no streams
		o.SystemAccount = "SYS"
		o.Accounts = []*server.Account{none}
		o.Users = []*server.User{{Username: "a", Password: "right"}, {Username: "none", Password: "right", Account: none},
			{Username: "mute", Password: "right", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"x"}}}},
			{Username: "deaf", Password: "right", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"x"}}}}}
	})
	off := natstest.Start(t, 1, func(_ int, o *server.Options) { o.JetStream = false })
	old := fakeServer(t, "2.8.4")
	tlsURL := func(s *natstest.Servers) string { return strings.Replace(s.URL(), "nats://", "tls://", 1) }
	as := func(user string) string { return "nats://" + user + "@" + users.Host(0) }
	seed, _ := newKey(t)
	known, public := newKey(t)
	keys := natstest.Start(t, 1, func(_ int, o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	all := func(name string) Options {
		return Options{CA: ours.file("ca"), Certificate: ours.file(name), Key: ours.file(name + "-key")}
	}
	for name, c := range map[string]struct {
		o    Options
		url  string
		want []string
		slow bool // may be tried again for a while
	}{
		"all is right":               {all("client"), tlsURL(secure), nil, false},
		"TLS as the server says":     {all("client"), secure.URL(), nil, false},
		"unknown authority":          {Options{CA: others.file("ca"), Certificate: ours.file("client"), Key: ours.file("client-key")}, tlsURL(secure), []string{"unknown authority", "compare the certificates"}, false},
		"other host":                 {all("client"), tlsURL(misnamed), []string{"127.0.0.1", "compare the certificates"}, false},
		"no certificate":             {Options{CA: ours.file("ca")}, tlsURL(secure), []string{"compare the certificates"}, false},
		"foreign certificate":        {Options{CA: ours.file("ca"), Certificate: others.file("client"), Key: others.file("client-key")}, tlsURL(secure), []string{"compare the certificates"}, false},
		"no TLS there":               {all("client"), tlsURL(plain), []string{"write nats://"}, false},
		"certificate without a key":  {Options{Certificate: ours.file("client")}, tlsURL(secure), []string{"name both files"}, false},
		"no such file":               {Options{CA: "/none/ca.pem"}, tlsURL(secure), []string{"/none/ca.pem"}, false},
		"a user":                     {Options{}, as("a:right"), nil, false},
		"wrong password":             {Options{}, as("a:wrong"), []string{"check the credentials"}, false},
		"unknown user":               {Options{}, as("b:right"), []string{"check the credentials"}, false},
		"unknown key":                {Options{Credentials: seed}, "nats://" + users.Host(0), []string{"check the credentials"}, false},
		"unknown key where keys are": {Options{Credentials: seed}, keys.URL(), []string{"check the credentials"}, false},
		"a key":                      {Options{Credentials: known}, keys.URL(), nil, false},
		"no credentials":             {Options{Credentials: ours.file("ca")}, "nats://" + users.Host(0), []string{"neither a .creds file nor the seed"}, false},
		"account without JetStream":  {Options{}, as("none:right"), []string{"enable it for the account"}, false},
		"may not ask":                {Options{}, as("mute:right"), []string{"Permissions Violation for Publish", "permissions do not allow"}, false},
		"may not hear":               {Options{}, as("deaf:right"), []string{"Permissions Violation for Subscription", "permissions do not allow"}, false},
		"JetStream is off":           {Options{}, off.URL(), []string{"-js"}, true},
		"too old":                    {Options{}, old, []string{"2.8.4", "needs " + oldestVersion}, false},
		"nobody there":               {Options{}, "nats://127.0.0.1:1,127.0.0.1:2", []string{"127.0.0.1:1", "127.0.0.1:2", "start the servers"}, true},
		"no servers":                 {Options{}, " , ", []string{"no servers are named"}, false},
		"no address":                 {Options{}, "nats://a:secret@:4222", []string{"cannot be read"}, false},
		"another scheme":             {Options{}, "http://a", []string{"write nats://a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := patience
			if c.slow {
				limit = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c.o.Servers = c.url
			begin := time.Now()
			conn, err := Connect(ctx, c.o)
			if took := time.Since(begin); !c.slow && took > connectTimeout {
				t.Errorf("it took %s", took)
			}
			if err == nil {
				conn.Close()
			}
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "right") || strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%q shows a password", err)
			}
		})
	}
}

// A first connection that takes its time says so, and when it is over.
func TestConnectSays(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	servers.Stop(0)
	var said []string
	c, err := Connect(t.Context(), Options{Servers: servers.URL(), Waiting: func(why error) {
		said = append(said, fmt.Sprint(why))
		if why != nil {
			servers.Start(0)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(said) != 2 || !strings.Contains(said[0], servers.Host(0)+": cannot be used yet") || said[1] != "<nil>" {
		t.Errorf("%q", said)
	}
}

// newKey is a user's key: the file of its seed, and what a server knows of it.
func newKey(t *testing.T) (path, public string) {
	pair := must.Get(nkeys.CreateUser())(t)
	path = filepath.Join(t.TempDir(), "seed")
	must.Do(t, os.WriteFile(path, must.Get(pair.Seed())(t), 0o600))
	return path, must.Get(pair.PublicKey())(t)
}

// fakeServer says that it is a server of some version.
func fakeServer(t *testing.T, version string) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintf(c, "INFO {\"server_id\":\"x\",\"version\":%q,\"headers\":true,\"max_payload\":1048576,\"proto\":1}\r\n", version)
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if lines.Text() == "PING" {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}
