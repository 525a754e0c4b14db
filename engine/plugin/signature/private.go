package signature

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"aead.dev/minisign"
)

// PrivateKey signs releases.
type PrivateKey struct {
	minisign *minisign.PrivateKey
	ed25519  ed25519.PrivateKey
}

// ReadPrivateKey reads the file of a private key: that of minisign, or an Ed25519 key in PEM as
// `openssl genpkey -algorithm ed25519` writes it. It asks for the password of a key that has one. Its
// errors hold nothing of either.
func ReadPrivateKey(path string, password func() (string, error)) (PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read the private key: %w", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if block.Type != "PRIVATE KEY" {
			return PrivateKey{}, fmt.Errorf("%s holds a %s; name an Ed25519 key (BEGIN PRIVATE KEY) or one of minisign; "+
				"with a key of cosign, publish without --key and sign by cosign sign --key", path, block.Type)
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		ed, ok := key.(ed25519.PrivateKey)
		if err != nil || !ok {
			return PrivateKey{}, fmt.Errorf("%s holds no Ed25519 key; make one with: openssl genpkey -algorithm ed25519", path)
		}
		return PrivateKey{ed25519: ed}, nil
	}
	key := &minisign.PrivateKey{}
	if !minisign.IsEncrypted(text) {
		if err := key.UnmarshalText(text); err != nil {
			return PrivateKey{}, fmt.Errorf("%s is neither a private key of minisign nor one in PEM", path)
		}
		return PrivateKey{minisign: key}, nil
	}
	word, err := password()
	if err != nil {
		return PrivateKey{}, err
	}
	if *key, err = minisign.DecryptKey(word, text); err != nil {
		return PrivateKey{}, fmt.Errorf("the password does not open %s", path)
	}
	return PrivateKey{minisign: key}, nil
}

// Sign signs the digest of a release.
func (k PrivateKey) Sign(digest string) (Signature, error) {
	switch {
	case k.minisign != nil:
		public, ok := k.minisign.Public().(minisign.PublicKey)
		if !ok {
			return Signature{}, errors.New("the private key has no public one")
		}
		r := minisign.NewReader(strings.NewReader(digest))
		if _, err := io.Copy(io.Discard, r); err != nil {
			return Signature{}, err
		}
		return Signature{Form: Minisign, Content: r.Sign(*k.minisign), Signer: Key{minisign: &public}.name()}, nil
	case k.ed25519 != nil:
		public, ok := k.ed25519.Public().(ed25519.PublicKey)
		if !ok {
			return Signature{}, errors.New("the private key has no public one")
		}
		return Signature{Form: Ed25519, Content: ed25519.Sign(k.ed25519, []byte(digest)), Signer: Key{ed25519: public}.name()}, nil
	}
	return Signature{}, errors.New("there is no private key")
}
