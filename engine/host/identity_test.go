package host

import (
	"crypto/x509"
	"testing"
)

// A plugin's TLS library takes the host for a peer: its certificate is no authority's,
// and the authority that the plugin is told to trust has signed it.
func TestIdentity(t *testing.T) {
	config, authority, err := newIdentity()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		t.Fatalf("no certificate in %q", authority)
	}
	leaf := config.Certificates[0].Leaf
	if leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("the host's certificate is an authority's: %v, usage %b", leaf.IsCA, leaf.KeyUsage)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || len(chains) != 1 || len(chains[0]) != 2 || !chains[0][1].IsCA {
		t.Errorf("chains %v, %v", chains, err)
	}
}
