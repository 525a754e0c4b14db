package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"

	"github.com/racflow/racflow/engine/internal/plugin"
)

// Release is one version of a plugin.
type Release struct {
	Version string
	Digest  string // of its index
	Builds  map[string]Build
	from    *repository
	index   ocispec.Descriptor
}

// Types and annotations of signatures. For cosign's signatures see
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

// signatures reads the signatures of a release, without checking them.
func (r *Release) signatures(ctx context.Context) ([]Signature, error) {
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
	var all []Signature
	for _, d := range referrers[:min(len(referrers), maxSignatures)] {
		found, err := r.from.signatures(ctx, d)
		if err != nil {
			return nil, r.from.explain("read a signature", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// signatures reads the signatures in one manifest; nil: the manifest contains something else.
func (r *repository) signatures(ctx context.Context, d ocispec.Descriptor) ([]Signature, error) {
	if d.MediaType != ocispec.MediaTypeImageManifest {
		return nil, nil
	}
	var m ocispec.Manifest
	if err := r.fetch(ctx, d, &m); err != nil {
		return nil, err
	}
	kind := m.ArtifactType // some registries omit it from the list of referrers
	if kind == "" {
		kind = d.ArtifactType
	}
	ours := kind == signatureType+string(Ed25519)
	cosign, bundle := kind == cosignType, strings.HasPrefix(kind, bundlePrefix)
	var all []Signature
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
			all = append(all, Signature{Form: Ed25519, Content: raw, Signer: layer.Annotations[signerKey]})
		case bundle:
			all = append(all, Signature{Form: Bundle, Content: raw})
		case layer.MediaType == cosignLayerType:
			signed, err := base64.StdEncoding.DecodeString(layer.Annotations[cosignKey])
			if err == nil {
				all = append(all, Signature{Form: Cosign, Content: signed, Payload: raw})
			}
		}
	}
	return all, nil
}

// Media types and annotations of a release.
const (
	artifactType = "application/vnd.racflow.plugin.v1"
	configType   = "application/vnd.racflow.plugin.config.v1+json"
	programType  = "application/vnd.racflow.plugin.program.v1"
	folderType   = "application/vnd.racflow.plugin.folder.v1.tar+gzip"
	hashKey      = "org.racflow.hash"
	maxManifest  = 4 << 20 // bytes of an index, manifest or description
	maxPlatforms = 64
)

// Build is the program of a release for a platform.
type Build struct {
	Platform string // os/arch
	Hash     string // of the program
	Folder   bool   // packed as a tar.gz of its folder
	Size     int64  // bytes to download
	config   ocispec.Descriptor
	layer    ocispec.Descriptor
}

// tagged returns the digest to which a version's tag now points.
func (r *repository) tagged(ctx context.Context, version string) (string, error) {
	d, err := r.from.Resolve(ctx, version)
	return d.Digest.String(), r.explain("find version "+version, err)
}

// Release reads the release of a version: the index with the given digest or, if digest is empty, the tagged
// index.
func (r *repository) Release(ctx context.Context, version, digest string) (*Release, error) {
	reference := digest
	if digest == "" {
		reference = version
	}
	what := "read the index of version " + version
	d, err := r.from.Resolve(ctx, reference)
	if err != nil {
		return nil, r.explain(what, err)
	}
	if digest != "" && d.Digest.String() != digest {
		return nil, fmt.Errorf("%s: asked for the index %s, it answered with %s", r.name, digest, d.Digest)
	}
	release := &Release{Version: version, Digest: d.Digest.String(), Builds: map[string]Build{}, from: r, index: d}
	var index ocispec.Index
	if err := r.fetch(ctx, d, &index); err != nil {
		return nil, r.explain(what, err)
	}
	if index.ArtifactType != artifactType {
		return nil, fmt.Errorf("%s: version %s is no plugin of racflow, but %q: look whether the source is right", r.name, version, index.ArtifactType+d.MediaType)
	}
	if len(index.Manifests) > maxPlatforms {
		return nil, fmt.Errorf("%s: version %s has %d builds, more than %d", r.name, version, len(index.Manifests), maxPlatforms)
	}
	for _, m := range index.Manifests {
		if m.Platform == nil {
			continue
		}
		b, err := r.build(ctx, m)
		if err != nil {
			return nil, r.explain("read the manifest for "+b.Platform, err)
		}
		release.Builds[b.Platform] = b
	}
	return release, nil
}

func (r *repository) build(ctx context.Context, d ocispec.Descriptor) (Build, error) {
	b := Build{Platform: d.Platform.OS + "/" + d.Platform.Architecture}
	var m ocispec.Manifest
	if err := r.fetch(ctx, d, &m); err != nil {
		return b, err
	}
	if len(m.Layers) != 1 || m.Config.MediaType != configType {
		return b, errors.New("it does not hold a description and a program")
	}
	b.config, b.layer = m.Config, m.Layers[0]
	b.Hash, b.Size, b.Folder = b.layer.Annotations[hashKey], b.layer.Size, b.layer.MediaType == folderType
	switch {
	case b.Hash == "":
		return b, fmt.Errorf("its program has no annotation %s", hashKey)
	case !b.Folder && b.layer.MediaType != programType:
		return b, fmt.Errorf("its program has the unknown type %q; a newer racflow may know it", b.layer.MediaType)
	case b.Size > maxProgram:
		return b, fmt.Errorf("its program has more than %d GiB", maxProgram>>30)
	}
	return b, nil
}

// fetch reads a small JSON document and compares it with its digest.
func (r *repository) fetch(ctx context.Context, d ocispec.Descriptor, to any) error {
	raw, err := r.bytes(ctx, d)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

func (r *repository) bytes(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	if d.Size > maxManifest {
		return nil, fmt.Errorf("%s has %d bytes, more than %d MiB", d.Digest, d.Size, maxManifest>>20)
	}
	return content.FetchAll(ctx, r.from, d)
}

// Build returns the program for a platform, or the program for all platforms. If there is none, the error lists
// the platforms.
func (r *Release) Build(platform string) (Build, error) {
	for _, p := range []string{platform, plugin.AnyPlatform} {
		if b, ok := r.Builds[p]; ok {
			return b, nil
		}
	}
	return Build{}, fmt.Errorf("version %s of %s has no program for %s, only for %s: choose another version, or ask its author for one",
		r.Version, r.from.name, platform, strings.Join(slices.Sorted(maps.Keys(r.Builds)), ", "))
}

// programs returns the hashes of the programs by platform, as in a lock.
func (r *Release) programs() map[string]string {
	all := map[string]string{}
	for platform, b := range r.Builds {
		all[platform] = b.Hash
	}
	return all
}

// Description reads the plugin's description (see decodeDescription), without downloading the program.
func (r *Release) Description(ctx context.Context, b Build) ([]byte, error) {
	raw, err := r.from.bytes(ctx, b.config)
	return raw, r.from.explain("read the description of version "+r.Version, err)
}

// Program opens the layer of a build. The program's hash in the index shows whether all of it arrived.
func (r *Release) Program(ctx context.Context, b Build) (io.ReadCloser, error) {
	body, err := r.from.from.Fetch(ctx, b.layer)
	return body, r.from.explain(fmt.Sprintf("download the program of version %s for %s", r.Version, b.Platform), err)
}
