package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// simpleSigning is what cosign signs for an image; of it, only what names the digest.
// Source: https://github.com/containers/image/blob/main/docs/containers-signature.5.md
type simpleSigning struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// bundle is what cosign 3 writes, as far as a plain key needs it: an envelope after
// https://github.com/secure-systems-lab/dsse/blob/master/envelope.md around a statement after
// https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
type bundle struct {
	Envelope struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  []struct {
			Content []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

type statement struct {
	Predicate string `json:"predicateType"`
	Subject   []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// cosigned reports whether a key made this signature of a digest.
func (s Signature) cosigned(k Key, digest string) bool {
	if s.Form == Cosign {
		var signed simpleSigning
		return holds(k.public, s.Payload, s.Content) && json.Unmarshal(s.Payload, &signed) == nil &&
			signed.Critical.Type == "cosign container image signature" && signed.Critical.Image.Digest == digest
	}
	var b bundle
	if json.Unmarshal(s.Content, &b) != nil {
		return false
	}
	e := b.Envelope
	var signed statement
	if e.PayloadType != "application/vnd.in-toto+json" || json.Unmarshal(e.Payload, &signed) != nil || signed.Predicate != "https://sigstore.dev/cosign/sign/v1" {
		return false // a statement about something else, such as how it was built
	}
	var message bytes.Buffer
	fmt.Fprintf(&message, "DSSEv1 %d %s %d ", len(e.PayloadType), e.PayloadType, len(e.Payload))
	message.Write(e.Payload)
	for _, subject := range signed.Subject {
		if "sha256:"+strings.ToLower(subject.Digest["sha256"]) != digest {
			continue
		}
		for _, one := range e.Signatures {
			if holds(k.public, message.Bytes(), one.Content) {
				return true
			}
		}
	}
	return false
}

// holds reports whether a signature of a message is by a key of a kind that cosign uses.
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
