package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"aead.dev/minisign"
)

const (
	minisignPrefix = "minisign:"
	ed25519Prefix  = "ed25519:"
	cosignPrefix   = "cosign:"
)

// Key is the public key of a signer.
type Key struct {
	minisign *minisign.PublicKey
	ed25519  ed25519.PublicKey
	public   any    // of cosign: *ecdsa.PublicKey, *rsa.PublicKey or ed25519.PublicKey
	der      string // of public, of which cosign's name is the hash
}

// ReadKey reads the file of a public key: that of minisign, or one in PEM as openssl and cosign write it.
func ReadKey(path string) (Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("read the public key: %w", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if block.Type != "PUBLIC KEY" {
			return Key{}, fmt.Errorf("%s holds a %s, not a public key; name the file with the public one", path, block.Type)
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return Key{}, fmt.Errorf("%s: %w", path, err)
		}
		key := Key{public: public, der: string(block.Bytes)}
		key.ed25519, _ = public.(ed25519.PublicKey)
		return key, nil
	}
	key := Key{minisign: &minisign.PublicKey{}}
	if err := key.minisign.UnmarshalText(text); err != nil {
		return Key{}, fmt.Errorf("%s is neither a public key of minisign nor one in PEM (BEGIN PUBLIC KEY)", path)
	}
	return key, nil
}

// parse reads a signer's name that holds the key itself.
func parse(signer string) (Key, error) {
	if text, ok := strings.CutPrefix(signer, minisignPrefix); ok {
		key := Key{minisign: &minisign.PublicKey{}}
		return key, key.minisign.UnmarshalText([]byte(text))
	}
	text, ok := strings.CutPrefix(signer, ed25519Prefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != ed25519.PublicKeySize {
		return Key{}, errors.New("it is no key of minisign or Ed25519")
	}
	return Key{ed25519: raw}, nil
}

// Is reports whether the key is the signer's of that name. A plain Ed25519 key may be the one of cosign, too.
func (k Key) Is(signer string) bool {
	return signer != "" && (signer == k.name() || k.der != "" && signer == k.cosign())
}

// name is the key's name as a signer that brings its key along; empty: it cannot be one.
func (k Key) name() string {
	switch {
	case k.minisign != nil:
		return minisignPrefix + k.minisign.String()
	case k.ed25519 != nil:
		return ed25519Prefix + base64.StdEncoding.EncodeToString(k.ed25519)
	}
	return ""
}

// cosign is the key's name as the signer of a signature by cosign.
func (k Key) cosign() string {
	sum := sha256.Sum256([]byte(k.der))
	return cosignPrefix + "sha256:" + hex.EncodeToString(sum[:])
}
