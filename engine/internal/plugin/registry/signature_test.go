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
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
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

// inPEM are the files of a private key and of its public one.
func inPEM(t *testing.T, key crypto.Signer) (private, public string) {
	t.Helper()
	raw := mustHave(x509.MarshalPKCS8PrivateKey(key))
	der := mustHave(x509.MarshalPKIXPublicKey(key.Public()))
	return file(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), file(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// none is for keys without a password.
func none() (string, error) { return "", errors.New("a password was asked for") }

// TestSign signs by each kind of key and reads the signer from the public key's file.
func TestSign(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edPrivate, edPublic := inPEM(t, ed)
	minisignPublic := file(t, mustHave(public.MarshalText()))
	for _, c := range []struct {
		name, private, public, prefix string
		password                      func() (string, error)
	}{
		{"minisign", file(t, mustHave(private.MarshalText())), minisignPublic, "minisign:RW", none},
		{"ed25519", edPrivate, edPublic, "ed25519:", none},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := ReadPrivateKey(c.private, c.password)
			if err != nil {
				t.Fatal(err)
			}
			s, err := key.Sign(signedDigest)
			if err != nil {
				t.Fatal(err)
			}
			signers, err := Signers(signedDigest, []Signature{s, s})
			if err != nil || len(signers) != 1 || !strings.HasPrefix(signers[0], c.prefix) {
				t.Fatalf("signed by %q, %v", signers, err)
			}
			if !mustHave(ReadPublicKey(c.public)).Is(signers[0]) {
				t.Errorf("%s is not the key in the file", signers[0])
			}
			if _, err := Signers(another, []Signature{s}); err == nil {
				t.Error("the signature holds for another release")
			}
			s.Content[len(s.Content)/2] ^= 1
			if _, err := Signers(signedDigest, []Signature{s}); err == nil {
				t.Error("a damaged signature holds")
			}
		})
	}
}

// encrypted is a private key of minisign's with the password "open sesame", made with the least work
// that scrypt may take, since what minisign itself demands takes seconds.
const encrypted = `untrusted comment: minisign encrypted secret key
RWRTY0IybrBvzt/2/sIGXCsM3EUmZsR0ecZQCEsGy19sOT/CVT8AgAAAAAAAAAAAAAEAAAAAPcfivscZ4pWaoDRy/EhHK9TuL/V+tVVF8dF3vE/1BgZUcx8vaxjmpO/W8lEf7O5cWdL7lpBhmQXOMLB0Cf5trQYdF5lDmG6w5CfxAaNGjknXasNpyulqOkp7If/l4BTzHOSkRkbgu9E=
`

// TestPassword opens a key that is kept by a password, and says nothing of a false one.
func TestPassword(t *testing.T) {
	path := file(t, []byte(encrypted))
	if _, err := ReadPrivateKey(path, func() (string, error) { return "swordfish", nil }); err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("a false password gives %v", err)
	}
	if _, err := ReadPrivateKey(path, none); err == nil || !strings.Contains(err.Error(), "a password was asked for") {
		t.Errorf("without a password: %v", err)
	}
	key, err := ReadPrivateKey(path, func() (string, error) { return "open sesame", nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Signers(signedDigest, []Signature{mustHave(key.Sign(signedDigest))}); err != nil {
		t.Error(err)
	}
}

// simple is the payload that cosign signs of a digest.
func simple(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"ghcr.io/acme/mine"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// sign does what cosign does by a key.
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

// TestSignatureCosign checks both forms of signatures that cosign makes, by every kind of key that it takes.
func TestSignatureCosign(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger := inPEM(t, mustHave(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	for name, key := range map[string]crypto.Signer{
		"ecdsa": mustHave(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "rsa": mustHave(rsa.GenerateKey(rand.Reader, 2048)), "ed25519": ed,
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
				if _, err := Signers(signedDigest, []Signature{c.s}); !errors.Is(err, ErrKeyNeeded) {
					t.Errorf("without a key: %v", err)
				}
			})
		}
	}
}

// TestForged has signatures that say they are somebody else's.
func TestForged(t *testing.T) {
	author, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, thief, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := mustHave(ReadPrivateKey(file(t, mustHave(thief.MarshalText())), none))
	s := mustHave(key.Sign(signedDigest))
	mine := s.Signer
	for _, signer := range []string{minisignPrefix + author.String(), "", "minisign:", "ed25519:" + strings.TrimPrefix(mine, minisignPrefix), "cosign:sha256:00", "x"} {
		s.Signer = signer
		if signers, err := Signers(signedDigest, []Signature{s}); err == nil {
			t.Errorf("as %q it is signed by %q", signer, signers)
		}
	}
	s.Signer = "minisign:untrusted comment: the author\n" + strings.TrimPrefix(mine, minisignPrefix)
	if signers, _ := Signers(signedDigest, []Signature{s}); !slices.Equal(signers, []string{mine}) {
		t.Errorf("with a comment it is signed by %q", signers)
	}
	if signers, err := Signers(signedDigest, nil); signers != nil || err != nil {
		t.Errorf("unsigned: %q, %v", signers, err)
	}
}

// TestKeyFiles has files that hold no key that fits.
func TestKeyFiles(t *testing.T) {
	p256 := mustHave(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	private, public := inPEM(t, p256)
	text := file(t, []byte("no key"))
	for _, c := range []struct {
		read func() error
		want string
	}{
		{func() error { _, err := ReadPublicKey(private); return err }, "name the file with the public one"},
		{func() error { _, err := ReadPublicKey(text); return err }, "neither a public key of minisign"},
		{func() error { _, err := ReadPrivateKey(private, none); return err }, "holds no Ed25519 key; make one"},
		{func() error { _, err := ReadPrivateKey(public, none); return err }, "holds a PUBLIC KEY"},
		{func() error { _, err := ReadPrivateKey(text, none); return err }, "neither a private key of minisign"},
		{func() error { _, err := ReadPrivateKey(text+"0", none); return err }, "read the private key"},
	} {
		if err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
