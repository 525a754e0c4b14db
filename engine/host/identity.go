package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// newIdentity makes the host's certificate, under an authority of its own that signs
// nothing else and whose key is gone when it returns. Plugins trust that authority,
// whose certificate is returned as PEM: some TLS libraries refuse to take an authority's
// certificate for that of a peer. Keys are P-256, since the P-521 keys of go-plugin's own
// are refused by the TLS library of other languages' gRPC, and slower.
func newIdentity() (*tls.Config, string, error) {
	template := x509.Certificate{
		Subject:               pkix.Name{CommonName: "racflow", Organization: []string{"racflow"}},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		BasicConstraintsValid: true,
	}
	authority := template
	authority.IsCA, authority.MaxPathLenZero, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	root, rootKey, err := certificate(&authority, nil, nil)
	if err != nil {
		return nil, "", err
	}
	leaf := template
	leaf.Subject.CommonName, leaf.DNSNames = "localhost", []string{"localhost"}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	own, key, err := certificate(&leaf, root, rootKey)
	if err != nil {
		return nil, "", err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}},
		MinVersion:   tls.VersionTLS12,
		ServerName:   "localhost",
	}
	return config, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})), nil
}

// certificate makes a key and its certificate, signed by a parent or, without one, by
// itself.
func certificate(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}
