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

// identity is what host and plugins show each other.
type identity struct {
	dialing   *tls.Config // to plugins; go-plugin adds the certificate of a plugin that made its own
	authority string      // what plugins trust, as PEM
	// What a plugin shows where it asks for the engine's services, as PEM.
	certificate, key string
	// What the process of a built-in stage shows to the host, certificate and key, as PEM.
	builtin string
}

// newIdentity makes the certificates of the host and of its plugins, under an authority of
// its own that signs nothing else and whose key is gone when it returns. Plugins trust that
// authority: some TLS libraries refuse to take an authority's certificate for that of a peer.
// Keys are P-256, since the P-521 keys of go-plugin's own are refused by the TLS library of
// other languages' gRPC, and slower.
func newIdentity() (*identity, error) {
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
		return nil, err
	}
	leaf := template
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	shown, shownKey, err := pemPair(leaf, root, rootKey)
	if err != nil {
		return nil, err
	}
	leaf.Subject.CommonName, leaf.DNSNames = "localhost", []string{"localhost"}
	served := leaf
	served.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	builtin, builtinKey, err := pemPair(served, root, rootKey)
	if err != nil {
		return nil, err
	}
	leaf.ExtKeyUsage = append(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	own, key, err := certificate(&leaf, root, rootKey)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(root)
	return &identity{
		dialing: &tls.Config{
			RootCAs:      trusted,
			Certificates: []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}},
			MinVersion:   tls.VersionTLS12,
			ServerName:   "localhost",
		},
		authority:   pemOf("CERTIFICATE", root.Raw),
		certificate: shown, key: shownKey,
		builtin: builtin + builtinKey,
	}, nil
}

// serving is the configuration of the engine's services: who asks shows the certificate that
// plugins were given.
func (id *identity) serving() *tls.Config {
	return &tls.Config{
		Certificates: id.dialing.Certificates, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: id.dialing.RootCAs,
	}
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// pemPair makes a certificate and its key, as PEM.
func pemPair(template x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (shown, key string, err error) {
	made, private, err := certificate(&template, parent, signer)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return pemOf("CERTIFICATE", made.Raw), pemOf("PRIVATE KEY", der), err
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
