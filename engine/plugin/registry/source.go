package registry

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"oras.land/oras-go/v2/registry"
)

// MirrorVariable names a folder of OCI layouts, by registry and repository, that is asked in place of all registries.
const MirrorVariable = "RACFLOW_PLUGIN_MIRROR"

const layoutPrefix = "oci:"

// Source is where a plugin comes from. One of its fields is set.
type Source struct {
	Repository *registry.Reference
	Layout     string   // folder
	Archive    *url.URL // https or file; its path may hold {version}, {os} and {arch}
}

// Parse reads the source of a requirement; folders and files are relative to dir.
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

// parseURL reads the address of an archive. It repeats nothing of it, since it may hold a password.
func parseURL(source string) (Source, error) {
	u, err := url.Parse(source)
	switch {
	case err != nil:
		return Source{}, errors.New("the address of the archive cannot be read; write it as in \"https://example.com/racflow-plugin-mine_{os}_{arch}.tar.gz\"")
	case u.User != nil:
		return Source{}, errors.New("the address of the archive holds a name or a password, which would be in the lock file; name an address that needs none")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Host)):
		return Source{}, fmt.Errorf("an archive comes by https or from a file, not by %s", u.Scheme)
	}
	return Source{Archive: u}, nil
}

// loopback reports whether a host, with or without a port, is this machine, where nobody else listens on the way.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// mirrored replaces a repository by its layout in the mirror, where there is one.
func (s Source) mirrored() Source {
	mirror := os.Getenv(MirrorVariable)
	if mirror == "" || s.Repository == nil {
		return s
	}
	return Source{Layout: filepath.Join(mirror, s.Repository.Registry, filepath.FromSlash(s.Repository.Repository))}
}
