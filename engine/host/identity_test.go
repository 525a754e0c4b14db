package host

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A plugin's TLS library takes the host for a peer: its certificate is no authority's,
// and the authority that the plugin is told to trust has signed it.
func TestIdentity(t *testing.T) {
	id, err := newIdentity()
	must.Do(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(id.authority)) {
		t.Fatalf("no certificate in %q", id.authority)
	}
	leaf := id.dialing.Certificates[0].Leaf
	if leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("the host's certificate is an authority's: %v, usage %b", leaf.IsCA, leaf.KeyUsage)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil || len(chains) != 1 || len(chains[0]) != 2 || !chains[0][1].IsCA {
			t.Errorf("chains %v, %v", chains, err)
		}
	}
	// A plugin's is a peer's too, and no server's: it cannot pass for the host.
	shown, err := tls.X509KeyPair([]byte(id.certificate), []byte(id.key))
	must.Do(t, err)
	if _, err := shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil || shown.Leaf.IsCA {
		t.Errorf("the plugin's certificate: %v, an authority's %v", err, shown.Leaf.IsCA)
	}
	if _, err := shown.Leaf.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("the plugin's certificate is a server's")
	}
	// A built-in stage's is a server's alone: what it leaks does not make anybody the host.
	builtin, err := tls.X509KeyPair([]byte(id.builtin), []byte(id.builtin))
	must.Do(t, err)
	for usage, fits := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: true, x509.ExtKeyUsageClientAuth: false} {
		_, err := builtin.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", KeyUsages: []x509.ExtKeyUsage{usage}})
		if (err == nil) != fits || builtin.Leaf.IsCA {
			t.Errorf("the certificate of built-in stages: usage %v, %v", usage, err)
		}
	}
}
