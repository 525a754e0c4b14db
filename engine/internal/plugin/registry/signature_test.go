package registry

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	signedDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	another      = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func mustHave[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inPEM returns the files of a private key and of its public key.
func inPEM(t *testing.T, key crypto.Signer) (private, public string) {
	t.Helper()
	raw := mustHave(x509.MarshalPKCS8PrivateKey(key))
	der := mustHave(x509.MarshalPKIXPublicKey(key.Public()))
	return file(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), file(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// TestSign signs, and reads the signer from the public key's file.
func TestSign(t *testing.T) {
	private, public := inPEM(t, newEd25519(t))
	s := mustHave(ReadPrivateKey(private)).Sign(signedDigest)
	signers, err := Signers(signedDigest, []Signature{s, s})
	if err != nil || len(signers) != 1 || !strings.HasPrefix(signers[0], "ed25519:") {
		t.Fatalf("signed by %q, %v", signers, err)
	}
	if !mustHave(ReadPublicKey(public)).Is(signers[0]) {
		t.Errorf("%s is not the key in the file", signers[0])
	}
	if _, err := Signers(another, []Signature{s}); err == nil {
		t.Error("the signature holds for another release")
	}
	s.Content[len(s.Content)/2] ^= 1
	if _, err := Signers(signedDigest, []Signature{s}); err == nil {
		t.Error("a damaged signature holds")
	}
}

func newEd25519(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// simple returns the payload that cosign signs for a digest.
func simple(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"ghcr.io/acme/mine"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// sign does what cosign does with a key.
func sign(t *testing.T, key crypto.Signer, message []byte) []byte {
	t.Helper()
	if _, ok := key.(ed25519.PrivateKey); ok {
		return mustHave(key.Sign(rand.Reader, message, crypto.Hash(0)))
	}
	sum := sha256.Sum256(message)
	return mustHave(key.Sign(rand.Reader, sum[:], crypto.SHA256))
}

func bundleOf(t *testing.T, key crypto.Signer, predicate, digest string) []byte {
	t.Helper()
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
	const form = "application/vnd.in-toto+json"
	message := fmt.Sprintf("DSSEv1 %d %s %d %s", len(form), form, len(payload), payload)
	return mustHave(json.Marshal(map[string]any{"dsseEnvelope": map[string]any{
		"payload": []byte(payload), "payloadType": form, "signatures": []any{map[string]any{"sig": sign(t, key, []byte(message))}},
	}}))
}

// TestSignatureCosign checks both forms of cosign's signatures, with every kind of key that cosign accepts.
func TestSignatureCosign(t *testing.T) {
	_, stranger := inPEM(t, mustHave(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	for name, key := range map[string]crypto.Signer{
		"ecdsa": mustHave(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "rsa": mustHave(rsa.GenerateKey(rand.Reader, 2048)), "ed25519": newEd25519(t),
	} {
		_, path := inPEM(t, key)
		public := mustHave(ReadPublicKey(path))
		const signed = "https://sigstore.dev/cosign/sign/v1"
		for _, c := range []struct {
			what  string
			s     Signature
			holds bool
		}{
			{"simple", Signature{Form: Cosign, Payload: simple(signedDigest), Content: sign(t, key, simple(signedDigest))}, true},
			{"simple of another release", Signature{Form: Cosign, Payload: simple(another), Content: sign(t, key, simple(another))}, false},
			{"simple with a false payload", Signature{Form: Cosign, Payload: simple(signedDigest), Content: sign(t, key, simple(another))}, false},
			{"bundle", Signature{Form: Bundle, Content: bundleOf(t, key, signed, signedDigest)}, true},
			{"bundle of another release", Signature{Form: Bundle, Content: bundleOf(t, key, signed, another)}, false},
			{"bundle about how it was built", Signature{Form: Bundle, Content: bundleOf(t, key, "https://slsa.dev/provenance/v1", signedDigest)}, false},
		} {
			t.Run(name+" "+c.what, func(t *testing.T) {
				signers, err := Signers(signedDigest, []Signature{c.s}, public)
				if c.holds != (err == nil && len(signers) == 1 && public.Is(signers[0])) {
					t.Errorf("signed by %q, %v", signers, err)
				}
				if _, err := Signers(signedDigest, []Signature{c.s}, mustHave(ReadPublicKey(stranger))); err == nil {
					t.Error("it holds by another key")
				}
				if _, err := Signers(signedDigest, []Signature{c.s}); !errors.Is(err, errKeyNeeded) {
					t.Errorf("without a key: %v", err)
				}
			})
		}
	}
}

// TestForged has signatures that claim another signer.
func TestForged(t *testing.T) {
	s := PrivateKey{newEd25519(t)}.Sign(signedDigest)
	author := PrivateKey{newEd25519(t)}.Sign(signedDigest).Signer
	for _, signer := range []string{author, "", "ed25519:", "ed25519:AAAA", "minisign:" + strings.TrimPrefix(s.Signer, "ed25519:"), "cosign:sha256:00", "x"} {
		s.Signer = signer
		if signers, err := Signers(signedDigest, []Signature{s}); err == nil {
			t.Errorf("as %q it is signed by %q", signer, signers)
		}
	}
	if signers, err := Signers(signedDigest, nil); signers != nil || err != nil {
		t.Errorf("unsigned: %q, %v", signers, err)
	}
}

// TestKeyFiles has files without a suitable key.
func TestKeyFiles(t *testing.T) {
	p256 := mustHave(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	private, public := inPEM(t, p256)
	text := file(t, []byte("no key"))
	for _, c := range []struct {
		read func() error
		want string
	}{
		{func() error { _, err := ReadPublicKey(private); return err }, "name the file with the public one"},
		{func() error { _, err := ReadPublicKey(text); return err }, "holds no key in PEM"},
		{func() error { _, err := ReadPrivateKey(private); return err }, "holds no Ed25519 key; make one"},
		{func() error { _, err := ReadPrivateKey(public); return err }, "holds a PUBLIC KEY"},
		{func() error { _, err := ReadPrivateKey(text); return err }, "holds no key in PEM"},
		{func() error { _, err := ReadPrivateKey(text + "0"); return err }, "read the private key"},
	} {
		if err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
