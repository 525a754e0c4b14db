package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"

	"github.com/racflow/racflow/engine/plugin/signature"
)

// Types and annotations of signatures. Those of cosign are after
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
const (
	signatureType   = "application/vnd.racflow.plugin.signature.v1+"
	signerKey       = "org.racflow.signer"
	cosignType      = "application/vnd.dev.cosign.artifact.sig.v1+json"
	cosignLayerType = "application/vnd.dev.cosign.simplesigning.v1+json"
	cosignKey       = "dev.cosignproject.cosign/signature"
	bundlePrefix    = "application/vnd.dev.sigstore.bundle."
	maxSignatures   = 64
)

// Signatures reads the signatures of a release, without checking them.
func (r *Release) Signatures(ctx context.Context) ([]signature.Signature, error) {
	const what = "look for signatures"
	referrers, err := registry.Referrers(ctx, r.from.from, r.index, "")
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return nil, r.from.explain(what, err)
	}
	d, err := r.from.from.Resolve(ctx, strings.Replace(r.Digest, ":", "-", 1)+".sig")
	switch {
	case err == nil:
		d.ArtifactType = cosignType
		referrers = append(referrers, d)
	case !errors.Is(err, errdef.ErrNotFound):
		return nil, r.from.explain(what, err)
	}
	var all []signature.Signature
	for _, d := range referrers[:min(len(referrers), maxSignatures)] {
		found, err := r.from.signatures(ctx, d)
		if err != nil {
			return nil, r.from.explain("read a signature", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// signatures are those of one manifest; nil: it is about something else.
func (r *Repository) signatures(ctx context.Context, d ocispec.Descriptor) ([]signature.Signature, error) {
	if d.MediaType != ocispec.MediaTypeImageManifest {
		return nil, nil
	}
	var m ocispec.Manifest
	if err := r.fetch(ctx, d, &m); err != nil {
		return nil, err
	}
	kind := m.ArtifactType // not every registry repeats it where it lists referrers
	if kind == "" {
		kind = d.ArtifactType
	}
	own, ours := strings.CutPrefix(kind, signatureType)
	cosign, bundle := kind == cosignType, strings.HasPrefix(kind, bundlePrefix)
	var all []signature.Signature
	for _, layer := range m.Layers[:min(len(m.Layers), maxSignatures)] {
		if !ours && !cosign && !bundle {
			continue
		}
		raw, err := r.bytes(ctx, layer)
		if err != nil {
			return nil, err
		}
		switch {
		case ours:
			all = append(all, signature.Signature{Form: signature.Form(own), Content: raw, Signer: layer.Annotations[signerKey]})
		case bundle:
			all = append(all, signature.Signature{Form: signature.Bundle, Content: raw})
		case layer.MediaType == cosignLayerType:
			signed, err := base64.StdEncoding.DecodeString(layer.Annotations[cosignKey])
			if err == nil {
				all = append(all, signature.Signature{Form: signature.Cosign, Content: signed, Payload: raw})
			}
		}
	}
	return all, nil
}
