package signature

import (
	"crypto/ed25519"
	"errors"
	"slices"

	"aead.dev/minisign"
)

// Form says what a signature consists of.
type Form string

// The forms of signatures.
const (
	Minisign Form = "minisign" // Content is minisign's file
	Ed25519  Form = "ed25519"  // Content is 64 bytes
	Cosign   Form = "cosign"   // Content is the signature of Payload, which names the digest
	Bundle   Form = "bundle"   // Content is the bundle that cosign 3 writes, in JSON
)

// Signature is one signature as a registry keeps it. Nothing in it is trusted before it is checked.
type Signature struct {
	Form    Form
	Content []byte
	Payload []byte
	Signer  string // as it calls itself, with the public key; of cosign it is empty
}

// Signers returns who signed a digest, sorted: those whose keys the signatures bring along, and of cosign
// those of the given keys. If signatures are there and none of them holds, it says why.
func Signers(digest string, all []Signature, given ...Key) ([]string, error) {
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

// ErrKeyNeeded is the error for a signature by a key that has to be given.
var ErrKeyNeeded = errors.New("it is signed by cosign, whose signatures do not bring their key along")

// check returns who made the signature of a digest.
func (s Signature) check(digest string, given []Key) (string, error) {
	if s.Form == Cosign || s.Form == Bundle {
		if len(given) == 0 {
			return "", ErrKeyNeeded
		}
		for _, k := range given {
			if k.public != nil && s.cosigned(k, digest) {
				return k.cosign(), nil
			}
		}
		return "", errors.New("a signature by cosign is not by the given key, or not of this release")
	}
	key, err := parse(s.Signer)
	if err != nil {
		return "", errors.New("a signature does not say by which key it is")
	}
	holds := false
	switch {
	case s.Form == Minisign && key.minisign != nil:
		holds = minisign.Verify(*key.minisign, []byte(digest), s.Content)
	case s.Form == Ed25519 && key.ed25519 != nil:
		holds = ed25519.Verify(key.ed25519, []byte(digest), s.Content)
	}
	if !holds {
		return "", errors.New("a signature is not of this release: it was made for another one, or is damaged")
	}
	return key.name(), nil
}
