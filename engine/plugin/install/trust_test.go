package install

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"

	"github.com/racflow/racflow/engine/plugin/publish"
	"github.com/racflow/racflow/engine/plugin/signature"
)

// TestSigner publishes a version by one key and the next by another, or by none.
func TestSigner(t *testing.T) {
	author, thief := newKey(t), newKey(t)
	for _, c := range []struct {
		name   string
		before *signature.PrivateKey
		after  *signature.PrivateKey
		trust  bool
		want   string
	}{
		{"the same", author, author, false, ""},
		{"another", author, thief, false, "if its author has changed the key, accept the new one with --trust-new-signer mine"},
		{"another, accepted", author, thief, true, ""},
		{"none any more", author, nil, false, "is not signed, and what is locked is signed by minisign:RW"},
		{"none any more, accepted", author, nil, true, ""},
		{"signed from now on", nil, author, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := newServer(t), newPlace(t)
			release(t, s.source(), "1.0.0", c.before, both...)
			p.require(s.source(), "")
			p.init("")
			second := release(t, s.source(), "1.1.0", c.after, both...)
			p.installer.Upgrade = true
			if c.trust {
				p.installer.Trust = []string{"mine"}
			}
			p.init(c.want)
			if got := p.locked(); c.want == "" && (got.Version != "1.1.0" || got.Signer != second.Signer) {
				t.Errorf("locked %s, signed by %q", got.Version, got.Signer)
			}
			if c.want != "" {
				if all := must(p.installer.Store.List()); len(all) != 1 {
					t.Errorf("what is refused was installed: %v", all)
				}
			}
		})
	}
}

// cosigned adds a signature as cosign makes one by a plain key: under its own tag, or as a referrer.
func cosigned(t *testing.T, layout string, r publish.Release, key crypto.Signer, bundle bool) {
	t.Helper()
	ctx := context.Background()
	to := must(oci.New(layout))
	push := func(mediaType string, raw []byte) ocispec.Descriptor {
		d := content.NewDescriptorFromBytes(mediaType, raw)
		if there, _ := to.Exists(ctx, d); !there {
			if err := to.Push(ctx, d, bytes.NewReader(raw)); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	sign := func(message string) []byte {
		sum := sha256.Sum256([]byte(message))
		return must(key.Sign(rand.Reader, sum[:], crypto.SHA256))
	}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: push("application/vnd.oci.image.config.v1+json", []byte("{}"))}
	if !bundle {
		payload := fmt.Sprintf(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, r.Digest)
		layer := push("application/vnd.dev.cosign.simplesigning.v1+json", []byte(payload))
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sign(payload))}
		m.Layers = []ocispec.Descriptor{layer}
		d := push(m.MediaType, must(json.Marshal(m)))
		if err := to.Tag(ctx, d, strings.Replace(r.Digest, ":", "-", 1)+".sig"); err != nil {
			t.Fatal(err)
		}
		return
	}
	const form = "application/vnd.in-toto+json"
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`, strings.TrimPrefix(r.Digest, "sha256:"))
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	m.ArtifactType = kind
	subject := must(to.Resolve(ctx, r.Digest))
	m.Subject = &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	m.Layers = []ocispec.Descriptor{push(kind, must(json.Marshal(map[string]any{"mediaType": kind, "dsseEnvelope": map[string]any{
		"payload": []byte(payload), "payloadType": form,
		"signatures": []any{map[string]any{"sig": sign(fmt.Sprintf("DSSEv1 %d %s %d %s", len(form), form, len(payload), payload))}},
	}})))}
	push(m.MediaType, must(json.Marshal(m)))
}

// TestCosign checks signatures of cosign by the key that a person gives.
func TestCosign(t *testing.T) {
	for name, bundle := range map[string]bool{"tag": false, "referrer": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			layout := filepath.Join(p.dir, "plugins")
			key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
			r := release(t, layout, "1.0.0", nil, both...)
			cosigned(t, layout, r, key, bundle)
			p.require("./plugins", "")
			p.init("pass the public key with --key mine=cosign.pub, or take it unsigned with --trust-new-signer mine")
			p.installer.Keys = map[string]signature.Key{"mine": publicKey(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))}
			p.init("is not signed by the key that --key names")
			p.installer.Keys["mine"] = publicKey(t, key)
			p.init("")
			signer := p.locked().Signer
			if !strings.HasPrefix(signer, "cosign:sha256:") || !p.installer.Keys["mine"].Is(signer) {
				t.Errorf("signed by %q", signer)
			}
			p.init("")
			p.installer.Keys["mine"] = publicKey(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
			p.init("signed by cosign:sha256:")
			p.installer.Keys["mine"] = publicKey(t, key)
			release(t, layout, "1.1.0", newKey(t), both...)
			p.installer.Upgrade = true
			p.init("and not by the key that --key names")
		})
	}
}

func publicKey(t *testing.T, key *ecdsa.PrivateKey) signature.Key {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cosign.pub")
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(key.Public()))})))
	return must(signature.ReadKey(path))
}
