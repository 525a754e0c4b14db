package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"github.com/racflow/racflow/engine/plugin/signature"
)

// Layer is a program that is published.
type Layer struct {
	Path   string // of the program, or of the tar.gz of its folder
	Hash   string
	Folder bool
}

// Push uploads a release without tagging it, so that nobody finds it yet, and returns its digest. What it makes depends on
// nothing but what it is given: the same release has the same digest.
func (r *Repository) Push(ctx context.Context, name, version string, description []byte, programs map[string]Layer) (string, error) {
	what := "upload version " + version
	config, err := r.push(ctx, configType, description)
	if err != nil {
		return "", r.explain(what, err)
	}
	about := map[string]string{ocispec.AnnotationTitle: name, ocispec.AnnotationVersion: version}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, ArtifactType: artifactType, Annotations: about}
	for _, platform := range slices.Sorted(maps.Keys(programs)) {
		layer, err := r.pushFile(ctx, programs[platform])
		if err != nil {
			return "", r.explain("upload the program for "+platform, err)
		}
		d, err := r.pushJSON(ctx, ocispec.MediaTypeImageManifest, ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
			Config: config, Layers: []ocispec.Descriptor{layer}, Annotations: about,
		})
		if err != nil {
			return "", r.explain(what, err)
		}
		system, arch, _ := strings.Cut(platform, "/")
		d.ArtifactType, d.Platform = artifactType, &ocispec.Platform{OS: system, Architecture: arch}
		index.Manifests = append(index.Manifests, d)
	}
	d, err := r.pushJSON(ctx, ocispec.MediaTypeImageIndex, index)
	return d.Digest.String(), r.explain(what, err)
}

// Sign uploads a signature of a release.
func (r *Repository) Sign(ctx context.Context, digest string, s signature.Signature) error {
	const what = "upload the signature"
	subject, err := r.from.Resolve(ctx, digest)
	if err != nil {
		return r.explain(what, err)
	}
	subject = ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	config, err := r.push(ctx, ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data)
	if err != nil {
		return r.explain(what, err)
	}
	kind := signatureType + string(s.Form)
	layer, err := r.push(ctx, kind, s.Content)
	if err != nil {
		return r.explain(what, err)
	}
	layer.Annotations = map[string]string{signerKey: s.Signer}
	_, err = r.pushJSON(ctx, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind,
		Config: config, Layers: []ocispec.Descriptor{layer}, Subject: &subject,
	})
	return r.explain(what, err)
}

// Tag makes an uploaded release the one of a version. A version that was released before is left as it is.
func (r *Repository) Tag(ctx context.Context, digest, version string) error {
	before, err := r.Tagged(ctx, version)
	switch {
	case err == nil && before == digest:
		return nil
	case err == nil:
		return fmt.Errorf("%s has a version %s already, with the digest %s; a release never changes: raise the plugin's version", r.name, version, before)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	d, err := r.from.Resolve(ctx, digest)
	if err == nil {
		err = r.to.Tag(ctx, d, version)
	}
	return r.explain("tag version "+version, err)
}

func (r *Repository) pushJSON(ctx context.Context, mediaType string, v any) (ocispec.Descriptor, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return r.push(ctx, mediaType, raw)
}

func (r *Repository) push(ctx context.Context, mediaType string, raw []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, raw)
	return d, r.upload(ctx, d, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
}

// pushFile uploads a program, which is read twice: for its digest, and to send it.
func (r *Repository) pushFile(ctx context.Context, l Layer) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: programType, Annotations: map[string]string{hashKey: l.Hash}}
	if l.Folder {
		d.MediaType = folderType
	}
	f, err := os.Open(l.Path)
	if err != nil {
		return d, err
	}
	sum := digest.Canonical.Digester()
	d.Size, err = io.Copy(sum.Hash(), f)
	if err = errors.Join(err, f.Close()); err != nil {
		return d, err
	}
	d.Digest = sum.Digest()
	return d, r.upload(ctx, d, func() (io.ReadCloser, error) { return os.Open(l.Path) })
}

// upload sends what is not there yet.
func (r *Repository) upload(ctx context.Context, d ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	if there, err := r.from.Exists(ctx, d); err != nil || there {
		return err
	}
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	if err := r.to.Push(ctx, d, body); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return err
	}
	return nil
}
