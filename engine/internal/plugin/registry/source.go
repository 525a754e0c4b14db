package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/redact"
)

// Source is the origin of a plugin. Exactly one of its fields is set.
type Source struct {
	Repository *registry.Reference
	Layout     string   // folder
	Archive    *url.URL // https or file; its path may contain {os} and {arch}
}

// errNotFound says that a repository, or something in it, does not exist.
var errNotFound = errors.New("it is not there")

// problem is an error with advice, without credentials that a registry may repeat.
type problem struct {
	text string
	is   error
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.is }

// explain describes an error of reading or writing something, and what to do about it.
func (r *repository) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	var answer *errcode.ErrorResponse
	var network net.Error
	text, is := err.Error(), error(nil)
	switch {
	case errors.Is(err, context.Canceled):
		is = context.Canceled
	case errors.Is(err, auth.ErrBasicCredentialNotFound) || errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		text = fmt.Sprintf("the registry refuses it; log in with docker login %s, and look whether the repository's name is right", r.host)
	case errors.Is(err, errdef.ErrNotFound) || errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		text, is = errNotFound.Error(), errNotFound
	case errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrTrailingData) || errors.Is(err, content.ErrInvalidDescriptorSize) || errors.Is(err, io.ErrUnexpectedEOF):
		text = fmt.Sprintf("what arrived is not what its digest says, or it was cut off (%v); try again, and if that does not help, ask whoever runs %s", err, r.name)
	case errors.As(err, &network):
		text += "; without a network, install what the lock has on a machine with one, or name a mirror in " + mirrorVariable
	}
	return &problem{r.secrets.Message(fmt.Sprintf("%s: %s: %s", r.name, what, text)), is}
}

// repository holds the releases of a plugin.
type repository struct {
	name    string // for people
	from    reader
	to      writer // nil: read only
	host    string // of a registry; otherwise empty
	secrets redact.Secrets
}

// reader is the common interface of registries and layouts.
type reader interface {
	content.ReadOnlyGraphStorage
	content.Resolver
	registry.TagLister
}

type writer interface {
	content.Pusher
	content.Tagger
}

// Open opens the repository of a source for reading. It does not contact a registry yet.
func Open(ctx context.Context, s Source) (*repository, error) {
	mirrored := s.mirrored()
	if mirrored.Layout == "" {
		return openRemote(s)
	}
	r := &repository{name: mirrored.Layout}
	layout, err := oci.NewFromFS(ctx, os.DirFS(mirrored.Layout))
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.Repository != nil:
		return nil, fmt.Errorf("the mirror has no %s: %s is no OCI layout; copy the repository there, for example by oras cp --recursive --to-oci-layout, or unset %s",
			s.Repository, mirrored.Layout, mirrorVariable)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is no OCI layout: name the folder that racflow plugin publish wrote", mirrored.Layout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", mirrored.Layout, err)
	}
	r.from = layout
	return r, nil
}

// create opens the repository of a source for publishing. It creates a missing layout.
func create(ctx context.Context, s Source) (*repository, error) {
	if s.Layout == "" {
		return openRemote(s)
	}
	layout, err := oci.NewWithContext(ctx, s.Layout)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Layout, err)
	}
	return &repository{name: s.Layout, from: layout, to: layout}, nil
}

func openRemote(s Source) (*repository, error) {
	if s.Repository == nil {
		return nil, errors.New("an archive has no releases: it is one program")
	}
	r := &repository{name: s.Repository.String(), host: s.Repository.Host()}
	known, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the configuration of docker: %w", err)
	}
	get := credentials.Credential(known)
	here := confine.ThisMachine(s.Repository.Registry)
	client := &auth.Client{
		Client: &http.Client{Transport: retry.NewTransport(plugin.Transport(plugin.Silence))},
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			c, err := get(ctx, host)
			if c != auth.EmptyCredential {
				r.secrets.Add(c.Password, c.AccessToken, c.RefreshToken, base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password)))
			}
			return c, err
		},
	}
	if here {
		client.BlockedRealmPrefixes = []netip.Prefix{} // allow a token server on this machine, too
	}
	client.SetUserAgent("racflow")
	repo := &remote.Repository{
		Client: client, Reference: *s.Repository, PlainHTTP: here,
		TagListMaxPages: 256, ReferrerListMaxPages: 64, SkipReferrersGC: true,
	}
	r.from, r.to = repo, repo
	return r, nil
}

// mirrorVariable names a folder of OCI layouts, by registry and repository, that replaces all registries.
const mirrorVariable = "RACFLOW_PLUGIN_MIRROR"

const layoutPrefix = "oci:"

// Parse parses the source of a requirement; dir is the base of relative folders and files.
func Parse(source, dir string) (Source, error) {
	path, layout := strings.CutPrefix(source, layoutPrefix)
	switch {
	case layout || isPath(source):
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return Source{Layout: path}, nil
	case strings.HasPrefix(source, "file:"):
		path := strings.TrimPrefix(strings.TrimPrefix(source, "file:"), "//")
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return Source{Archive: &url.URL{Scheme: "file", Path: path}}, nil
	case strings.Contains(source, "://"):
		return parseURL(source)
	}
	ref, err := registry.ParseReference(source)
	switch {
	case err != nil || !strings.ContainsAny(ref.Registry, ".:") && ref.Registry != "localhost":
		return Source{}, fmt.Errorf("%q names no repository; write the registry and the repository, such as \"ghcr.io/acme/racflow-plugin-mine\", "+
			"or a folder with an OCI layout, such as \"./plugins\"", source)
	case ref.Reference != "":
		return Source{}, fmt.Errorf("%q names a tag or digest; write the repository alone, and the version in version", source)
	}
	return Source{Repository: &ref}, nil
}

// isPath reports whether a source is a folder.
func isPath(source string) bool {
	return filepath.IsAbs(source) || source == "." || source == ".." || strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../")
}

// parseURL parses the address of an archive. Errors do not repeat it, since it may contain a password.
func parseURL(source string) (Source, error) {
	u, err := url.Parse(source)
	switch {
	case err != nil:
		return Source{}, errors.New("the address of the archive cannot be read; write it as in \"https://example.com/racflow-plugin-mine_{os}_{arch}.tar.gz\"")
	case u.User != nil:
		return Source{}, errors.New("the address of the archive holds a name or a password, which would be in the lock file; name an address that needs none")
	case !plugin.Safe(u):
		return Source{}, fmt.Errorf("an archive comes by https or from a file, not by %s", u.Scheme)
	}
	return Source{Archive: u}, nil
}

// mirrored replaces a repository by its layout in the mirror, if one is set.
func (s Source) mirrored() Source {
	mirror := os.Getenv(mirrorVariable)
	if mirror == "" || s.Repository == nil {
		return s
	}
	return Source{Layout: filepath.Join(mirror, s.Repository.Registry, filepath.FromSlash(s.Repository.Repository))}
}

// Version reports whether a text is a version for a release's tag: a semver.org version without build metadata, which a
// tag cannot contain.
func Version(text string) bool {
	v, err := version.NewSemver(text)
	return err == nil && v.String() == text && v.Metadata() == ""
}

// matches reports whether a version satisfies a constraint such as "~> 1.2". An empty constraint accepts every version
// except prereleases. An error concerns the constraint.
func matches(constraint, v string) (bool, error) {
	parsed, err := version.NewSemver(v)
	if err != nil {
		return false, nil //nolint:nilerr // what is no version meets nothing
	}
	if strings.TrimSpace(constraint) == "" {
		return parsed.Prerelease() == "", nil
	}
	c, err := version.NewConstraint(constraint)
	if err != nil {
		return false, fmt.Errorf("%q is no constraint of versions; write it as in \"~> 1.2\", \">= 1.2, < 2\" or \"1.2.3\"", constraint)
	}
	return c.Check(parsed), nil
}

// versions lists the releases, newest first. It ignores tags that are not versions.
func (r *repository) versions(ctx context.Context) ([]string, error) {
	tags, err := registry.Tags(ctx, r.from)
	if err != nil {
		return nil, r.explain("list the versions", err)
	}
	var all []*version.Version
	for _, tag := range tags {
		if Version(tag) {
			v, _ := version.NewSemver(tag) // cannot fail after Version
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *version.Version) int { return b.Compare(a) })
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = v.String()
	}
	return texts, nil
}

// newest returns the newest version that satisfies a constraint.
func (r *repository) newest(ctx context.Context, constraint string) (string, error) {
	all, err := r.versions(ctx)
	if err != nil {
		return "", err
	}
	for _, v := range all {
		ok, err := matches(constraint, v)
		if ok || err != nil {
			return v, err
		}
	}
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("%s has no release: no tag is a version such as 1.2.3", r.name)
	case constraint == "":
		return "", fmt.Errorf("%s has prereleases alone, such as %s; name one in version to take it", r.name, all[0])
	}
	const shown = 5
	return "", fmt.Errorf("no release of %s meets %q; there are %s%s", r.name, constraint, strings.Join(all[:min(shown, len(all))], ", "), more(len(all)-shown))
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d older ones", n)
}
