package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// certify writes a certificate for 127.0.0.1 with a serial number, and its key.
func certify(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	content := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	private := must.Get(x509.MarshalECPrivateKey(key))(t)
	for name, block := range map[string]*pem.Block{"key.pem": {Type: "EC PRIVATE KEY", Bytes: private}, "cert.pem": {Type: "CERTIFICATE", Bytes: content}} {
		replace(t, filepath.Join(dir, name), pem.EncodeToMemory(block))
	}
	return must.Get(x509.ParseCertificate(content))(t)
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir, 1)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, test := range map[string]struct {
		network Network
		tokens  bool
		want    string // empty: it listens
	}{
		"loopback":          {Network{Address: "127.0.0.1:0"}, false, ""},
		"loopback of IPv6":  {Network{Address: "[::1]:0"}, false, ""},
		"localhost":         {Network{Address: "localhost:0"}, false, ""},
		"everywhere":        {Network{Address: ":0"}, true, "for TLS"},
		"without tokens":    {Network{Address: "0.0.0.0:0", Cert: cert, Key: key}, false, "give tokens"},
		"with both":         {Network{Address: "0.0.0.0:0", Cert: cert, Key: key}, true, ""},
		"insecure":          {Network{Address: "0.0.0.0:0", Insecure: true}, false, ""},
		"without the key":   {Network{Address: "127.0.0.1:0", Cert: cert}, true, "give both"},
		"another key":       {Network{Address: "127.0.0.1:0", Cert: cert, Key: cert}, true, "certificate: "},
		"no such file":      {Network{Address: "127.0.0.1:0", Cert: cert, Key: key + "x"}, true, "certificate: "},
		"no address at all": {Network{Address: "127.0.0.1"}, true, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			test.network.Log = slog.New(slog.DiscardHandler)
			var all *Tokens
			if test.tokens {
				all = tokens(t)
			}
			l, err := Listen(test.network, all)
			if err == nil {
				_ = l.Close()
			} else if strings.Contains(err.Error(), "cannot assign requested address") {
				t.Skip("this machine has no such address")
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestRenewedCertificate: the next client gets a replaced certificate, over HTTP/2.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	first := certify(t, dir, 1)
	log := slog.New(slog.DiscardHandler)
	l, err := Listen(Network{Address: "127.0.0.1:0", Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Log: log, Connections: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(echo), GuardOptions{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	defer func() {
		_ = server.Close()
		<-ended
	}()
	shown := func(trusted *x509.Certificate) int64 {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AddCert(trusted)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		must.Do(t, err)
		_ = response.Body.Close()
		if response.ProtoMajor != 2 {
			t.Errorf("it speaks %s", response.Proto)
		}
		return response.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if n := shown(first); n != 1 {
		t.Errorf("number %d", n)
	}
	if n := shown(certify(t, dir, 2)); n != 2 {
		t.Errorf("number %d", n)
	}
}
