package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/racflow/racflow/engine/internal/plugin"
)

// Archive is the address of a program: a single file, or a tar.gz of its folder.
type Archive struct {
	Folder  bool
	address *url.URL
}

// At returns the archive for a platform, os/arch.
func (s Source) At(platform string) (Archive, error) {
	system, arch, _ := strings.Cut(platform, "/")
	u := *s.Archive
	u.RawPath = ""
	u.Path = strings.NewReplacer("{os}", system, "{arch}", arch).Replace(u.Path)
	a := Archive{address: &u, Folder: strings.HasSuffix(u.Path, ".tar.gz") || strings.HasSuffix(u.Path, ".tgz")}
	for _, suffix := range []string{".zip", ".tar", ".xz", ".bz2", ".zst", ".gz"} {
		if !a.Folder && strings.HasSuffix(u.Path, suffix) {
			return a, fmt.Errorf("%s is packed in a way that racflow does not unpack: it takes a .tar.gz, or the program itself", a)
		}
	}
	return a, nil
}

// String returns the address without parts that may be secret.
func (a Archive) String() string {
	if a.address.Scheme == "file" {
		return a.address.Path
	}
	return a.address.Scheme + "://" + a.address.Host + a.address.Path
}

// download writes an archive to a file and compares it with want, its sha256 in hex.
func (a Archive) download(ctx context.Context, want string, to io.Writer) error {
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("%q is no sha256: it has 64 digits from 0 to 9 and a to f, as sha256sum prints them", want)
	}
	body, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(body, maxProgram+1))
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return fmt.Errorf("download %s: it was cut off after %d bytes (%w); try again", a, n, plugin.Plain(err))
	case n > maxProgram:
		return fmt.Errorf("%s has more than %d GiB", a, maxProgram>>30)
	case !strings.EqualFold(got, want):
		return fmt.Errorf("%s has the sha256 %s, not %s: it was changed, or was cut off after %d bytes; if its author has published a new one, put its sha256 into the file", a, got, want, n)
	}
	return nil
}

func (a Archive) open(ctx context.Context) (io.ReadCloser, error) {
	if a.address.Scheme == "file" {
		return os.Open(a.address.Path)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.address.String(), nil)
	if err != nil {
		return nil, plugin.Plain(err)
	}
	client := &http.Client{Transport: retry.NewTransport(plugin.Transport(plugin.Silence)), CheckRedirect: plugin.StaySafe}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", a, plugin.Plain(err))
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	return nil, errors.Join(fmt.Errorf("download %s: the server answers %s", a, response.Status), response.Body.Close())
}

// layer is a program to publish.
type layer struct {
	Path   string // of the program, or of the tar.gz of its folder
	Hash   string
	Folder bool
}

// Push uploads a release without a tag, so that nobody finds it yet, and returns its digest. The digest depends
// only on the arguments.
func (r *repository) Push(ctx context.Context, name, version string, description []byte, programs map[string]layer) (string, error) {
	what := "upload version " + version
	config, err := r.push(ctx, configType, description)
	if err != nil {
		return "", r.explain(what, err)
	}
	about := map[string]string{ocispec.AnnotationTitle: name, ocispec.AnnotationVersion: version, ocispec.AnnotationCreated: epoch}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, ArtifactType: artifactType, Annotations: about}
	for _, platform := range slices.Sorted(maps.Keys(programs)) {
		layer, err := r.pushFile(ctx, programs[platform])
		if err != nil {
			return "", r.explain("upload the program for "+platform, err)
		}
		d, err := oras.PackManifest(ctx, r.to, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{
			ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: about,
		})
		if err != nil {
			return "", r.explain(what, err)
		}
		system, arch, _ := strings.Cut(platform, "/")
		d.Platform = &ocispec.Platform{OS: system, Architecture: arch}
		index.Manifests = append(index.Manifests, d)
	}
	raw, err := json.Marshal(index)
	if err != nil {
		return "", err
	}
	d, err := r.push(ctx, ocispec.MediaTypeImageIndex, raw)
	return d.Digest.String(), r.explain(what, err)
}

// Sign uploads a signature of a release.
func (r *repository) Sign(ctx context.Context, digest string, s Signature) error {
	const what = "upload the signature"
	subject, err := r.from.Resolve(ctx, digest)
	if err != nil {
		return r.explain(what, err)
	}
	kind := signatureType + string(s.Form)
	layer, err := r.push(ctx, kind, s.Content)
	if err != nil {
		return r.explain(what, err)
	}
	layer.Annotations = map[string]string{signerKey: s.Signer}
	_, err = oras.PackManifest(ctx, r.to, oras.PackManifestVersion1_1, kind, oras.PackManifestOptions{
		Subject: &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Layers:  []ocispec.Descriptor{layer}, ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: epoch},
	})
	return r.explain(what, err)
}

// epoch replaces the time of creation, so that the same release has the same digest whenever it is published.
const epoch = "1970-01-01T00:00:00Z"

// Tag tags an uploaded release with its version. It never changes an earlier release of the version.
func (r *repository) Tag(ctx context.Context, digest, version string) error {
	before, err := r.tagged(ctx, version)
	switch {
	case err == nil && before == digest:
		return nil
	case err == nil:
		return fmt.Errorf("%s has a version %s already, with the digest %s; a release never changes: raise the plugin's version", r.name, version, before)
	case !errors.Is(err, errNotFound):
		return err
	}
	d, err := r.from.Resolve(ctx, digest)
	if err == nil {
		err = r.to.Tag(ctx, d, version)
	}
	return r.explain("tag version "+version, err)
}

func (r *repository) push(ctx context.Context, mediaType string, raw []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, raw)
	return d, r.upload(ctx, d, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
}

// pushFile uploads a program. It reads the file twice: for its digest, and to send it.
func (r *repository) pushFile(ctx context.Context, l layer) (ocispec.Descriptor, error) {
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

// upload sends content unless the repository already has it.
func (r *repository) upload(ctx context.Context, d ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
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
