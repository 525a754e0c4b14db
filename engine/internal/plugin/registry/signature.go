package registry

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// This file signs the releases of plugins, and determines who signed one.
//
// A signature covers the digest of a release's index, as text: "sha256:HEX". The index contains the digests of
// everything else, so the signature covers the programs of all platforms and the description. Keys are plain Ed25519
// keys. For checking, they may also be plain keys of cosign.
//
// A signer is written as "ed25519:BASE64" (the public key itself) or "cosign:sha256:HEX" (the sha256 of the public
// key in DER, since cosign's signatures do not contain the key).
//
// The file knows neither registries nor lock files, and does not decide whom to trust: install_files.go does. It does
// not check cosign's keyless signatures (by certificates and a transparency log).

// Signature is one signature as a registry stores it. Check it before trusting any of it.
type Signature struct {
	Form    SignatureForm
	Content []byte
	Payload []byte
	Signer  string // its claimed signer, with the public key; empty for cosign
}

// cosigned reports whether a key made this signature of a digest. What cosign signs is described in
// https://github.com/containers/image/blob/main/docs/containers-signature.5.md. A bundle of cosign 3 holds an envelope,
// https://github.com/secure-systems-lab/dsse/blob/master/envelope.md, around a statement,
// https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md.
func (s Signature) cosigned(k PublicKey, digest string) bool {
	if s.Form == Cosign {
		signed := gjson.GetBytes(s.Payload, "critical")
		return gjson.ValidBytes(s.Payload) && holds(k.public, s.Payload, s.Content) &&
			signed.Get("type").Str == "cosign container image signature" && signed.Get("image.docker-manifest-digest").Str == digest
	}
	const kind = "application/vnd.in-toto+json"
	envelope := gjson.GetBytes(s.Content, "dsseEnvelope")
	payload, err := base64.StdEncoding.DecodeString(envelope.Get("payload").Str)
	statement := gjson.ParseBytes(payload)
	if err != nil || !gjson.ValidBytes(payload) || envelope.Get("payloadType").Str != kind || statement.Get("predicateType").Str != "https://sigstore.dev/cosign/sign/v1" {
		return false // a statement about something else, such as the build
	}
	if !slices.ContainsFunc(statement.Get("subject.#.digest.sha256").Array(), func(sum gjson.Result) bool { return "sha256:"+strings.ToLower(sum.Str) == digest }) {
		return false
	}
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
	return slices.ContainsFunc(envelope.Get("signatures.#.sig").Array(), func(one gjson.Result) bool {
		content, err := base64.StdEncoding.DecodeString(one.Str)
		return err == nil && holds(k.public, message, content)
	})
}

// holds reports whether a signature of a message is valid for a key. It supports the kinds of keys that cosign uses.
func holds(public any, message, content []byte) bool {
	sum := sha256.Sum256(message)
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], content)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], content) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, content)
	}
	return false
}

const (
	ed25519Prefix = "ed25519:"
	cosignPrefix  = "cosign:"
)

// PublicKey is the public key of a signer.
type PublicKey struct {
	public any    // *ecdsa.PublicKey, *rsa.PublicKey or ed25519.PublicKey
	der    string // DER of public; cosign names the key by its hash
}

// ReadPublicKey reads a public key from PEM, as openssl and cosign write it.
func ReadPublicKey(path string) (PublicKey, error) {
	block, err := readPEM(path)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read the public key: %w", err)
	}
	if block.Type != "PUBLIC KEY" {
		return PublicKey{}, fmt.Errorf("%s holds a %s, not a public key; name the file with the public one", path, block.Type)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", path, err)
	}
	return PublicKey{public, string(block.Bytes)}, nil
}

func readPEM(path string) (*pem.Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no key in PEM (BEGIN ... KEY)", path)
	}
	return block, nil
}

// Is reports whether the key belongs to the named signer. An Ed25519 key may also be cosign's.
func (k PublicKey) Is(signer string) bool {
	ed, ok := k.public.(ed25519.PublicKey)
	return ok && signer == nameOf(ed) || signer == k.cosign()
}

// nameOf returns the signer's name that contains the key itself.
func nameOf(key ed25519.PublicKey) string {
	return ed25519Prefix + base64.StdEncoding.EncodeToString(key)
}

// cosign returns the signer's name for cosign signatures by this key, which contains the key's hash.
func (k PublicKey) cosign() string {
	sum := sha256.Sum256([]byte(k.der))
	return cosignPrefix + "sha256:" + hex.EncodeToString(sum[:])
}

// PrivateKey signs releases.
type PrivateKey struct{ ed25519.PrivateKey }

// ReadPrivateKey reads an Ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` writes it. Its errors do not
// contain the key.
func ReadPrivateKey(path string) (PrivateKey, error) {
	block, err := readPEM(path)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read the private key: %w", err)
	}
	if block.Type != "PRIVATE KEY" {
		return PrivateKey{}, fmt.Errorf("%s holds a %s; name an Ed25519 key without a password (BEGIN PRIVATE KEY); "+
			"with a key of cosign, publish without --key and sign by cosign sign --key", path, block.Type)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	ed, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return PrivateKey{}, fmt.Errorf("%s holds no Ed25519 key; make one with: openssl genpkey -algorithm ed25519", path)
	}
	return PrivateKey{ed}, nil
}

// Sign signs the digest of a release.
func (k PrivateKey) Sign(digest string) Signature {
	public := k.Public().(ed25519.PublicKey)
	return Signature{Form: Ed25519, Content: ed25519.Sign(k.PrivateKey, []byte(digest)), Signer: nameOf(public)}
}

// SignatureForm names the format of a signature.
type SignatureForm string

// The forms of signatures.
const (
	Ed25519 SignatureForm = "ed25519" // Content is 64 bytes
	Cosign  SignatureForm = "cosign"  // Content signs Payload, which names the digest
	Bundle  SignatureForm = "bundle"  // Content is the JSON bundle of cosign 3
)

// Signers returns who validly signed a digest, sorted. It knows the keys that signatures contain and, for cosign, the
// given keys. If there are signatures and none is valid, it returns why.
func Signers(digest string, all []Signature, given ...PublicKey) ([]string, error) {
	var signers []string
	var errs []error
	for _, s := range all {
		signer, err := s.check(digest, given)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		signers = append(signers, signer)
	}
	slices.Sort(signers)
	if signers = slices.Compact(signers); len(signers) > 0 {
		return signers, nil
	}
	return nil, errors.Join(errs...)
}

// errKeyNeeded says that checking a signature needs a key from the user.
var errKeyNeeded = errors.New("it is signed by cosign, whose signatures do not bring their key along")

// check returns who signed a digest, if the signature is valid.
func (s Signature) check(digest string, given []PublicKey) (string, error) {
	if s.Form == Cosign || s.Form == Bundle {
		if len(given) == 0 {
			return "", errKeyNeeded
		}
		for _, k := range given {
			if s.cosigned(k, digest) {
				return k.cosign(), nil
			}
		}
		return "", errors.New("a signature by cosign is not by the given key, or not of this release")
	}
	text, ok := strings.CutPrefix(s.Signer, ed25519Prefix)
	key, err := base64.StdEncoding.DecodeString(text)
	switch {
	case !ok || err != nil || len(key) != ed25519.PublicKeySize:
		return "", errors.New("a signature does not say by which key it is")
	case !ed25519.Verify(key, []byte(digest), s.Content):
		return "", errors.New("a signature is not of this release: it was made for another one, or is damaged")
	}
	return nameOf(key), nil
}
