package registry

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"ghcr.io/acme/racflow-plugin-mine", "repository ghcr.io/acme/racflow-plugin-mine"},
		{"localhost:5000/mine", "repository localhost:5000/mine"},
		{"docker.io/acme/mine", "repository docker.io/acme/mine"},
		{"./plugins", "layout /dir/plugins"},
		{"../plugins", "layout /plugins"},
		{"oci:plugins", "layout /dir/plugins"},
		{"oci:/plugins", "layout /plugins"},
		{"/plugins", "layout /plugins"},
		{"https://example.com/1.2.3/mine.tar.gz?x=1", "archive https://example.com/1.2.3/mine.tar.gz"},
		{"http://127.0.0.1:80/mine_{os}_{arch}", "archive http://127.0.0.1:80/mine_linux_arm64"},
		{"file:mine.tgz", "archive /dir/mine.tgz"},
		{"file:///mine.tgz", "archive /mine.tgz"},
		{"http://example.com/mine.tar.gz", "error by https"},
		{"git://example.com/mine", "error by https"},
		{"https://me:word@example.com/mine", "error holds a name or a password"},
		{"https://%zz", "error cannot be read"},
		{"mine", "error names no repository"},
		{"acme/mine", "error names no repository"},
		{"ghcr.io/Acme/mine", "error names no repository"},
		{"ghcr.io/acme/mine:1.0", "error write the repository alone"},
		{"ghcr.io/acme/mine@sha256:" + strings.Repeat("0", 64), "error write the repository alone"},
	} {
		s, err := Parse(c.source, "/dir")
		var got string
		switch {
		case err != nil:
			got = "error " + err.Error()
		case s.Repository != nil:
			got = "repository " + s.Repository.String()
		case s.Layout != "":
			got = "layout " + s.Layout
		default:
			a, err := s.At("linux/arm64")
			must.Do(t, err)
			got = "archive " + a.String()
		}
		want, isError := strings.CutPrefix(c.want, "error ")
		if got != c.want && (!isError || !strings.HasPrefix(got, "error ") || !strings.Contains(got, want)) {
			t.Errorf("%s is %q, want %q", c.source, got, c.want)
		}
		if strings.Contains(got, "word@") {
			t.Errorf("%q repeats the password", got)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		constraint, version string
		want                bool
	}{
		{"", "1.2.3", true}, {"", "1.2.3-rc.1", false},
		{"~> 1.2", "1.2.0", true}, {"~> 1.2", "1.9.9", true}, {"~> 1.2", "2.0.0", false}, {"~> 1.2", "1.1.9", false}, {"~> 1.2", "1.3.0-rc.1", false},
		{"~> 1.2.3", "1.2.9", true}, {"~> 1.2.3", "1.3.0", false},
		{">= 1.0, < 2.0, != 1.5.0", "1.4.0", true}, {">= 1.0, < 2.0, != 1.5.0", "1.5.0", false},
		{"1.2.3", "1.2.3", true}, {"1.2.3", "1.2.4", false}, {"1.3.0-rc.1", "1.3.0-rc.1", true},
	} {
		if got, err := matches(c.constraint, c.version); err != nil || got != c.want {
			t.Errorf("%s meets %q: %t, %v", c.version, c.constraint, got, err)
		}
	}
	if _, err := matches("about 1", "1.0.0"); err == nil {
		t.Error("a false constraint has no error")
	}
}

// TestVersions orders versions, and omits tags that are not versions.
func TestVersions(t *testing.T) {
	ctx := context.Background()
	r, err := create(ctx, Source{Layout: filepath.Join(t.TempDir(), "layout")})
	must.Do(t, err)
	d, err := r.push(ctx, ocispec.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"manifests":[]}`))
	must.Do(t, err)
	for _, tag := range []string{"latest", "1.2", "v1.2.3", "1.10.0", "1.9.0", "2.0.0-rc.1", "1.9.0-rc.1", "sha256-0000.sig", "01.2.3"} {
		must.Do(t, r.to.Tag(ctx, d, tag))
	}
	want := []string{"2.0.0-rc.1", "1.10.0", "1.9.0", "1.9.0-rc.1"}
	if got, err := r.versions(ctx); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	for constraint, want := range map[string]string{"": "1.10.0", "~> 1.9.0": "1.9.0", "2.0.0-rc.1": "2.0.0-rc.1"} {
		if got, err := r.newest(ctx, constraint); err != nil || got != want {
			t.Errorf("the newest of %q is %s, %v", constraint, got, err)
		}
	}
	if _, err := r.newest(ctx, "~> 3.0"); err == nil || !strings.Contains(err.Error(), "there are 2.0.0-rc.1, 1.10.0") {
		t.Errorf("got %v", err)
	}
	if _, err := r.Release(ctx, "1.9.0", ""); err == nil || !strings.Contains(err.Error(), "is no plugin of racflow") {
		t.Errorf("an image gives %v", err)
	}
}

// TestBounds reads manifests only up to its bounds, whatever size a descriptor declares.
func TestBounds(t *testing.T) {
	ctx := context.Background()
	r, err := create(ctx, Source{Layout: filepath.Join(t.TempDir(), "layout")})
	must.Do(t, err)
	d, err := r.push(ctx, ocispec.MediaTypeImageIndex, []byte("{}"+strings.Repeat(" ", maxManifest)))
	must.Do(t, err)
	if _, err := r.Release(ctx, "1.0.0", d.Digest.String()); err == nil || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("got %v", err)
	}
}

// TestPlain omits the query of an address, which may be a signature, from errors.
func TestPlain(t *testing.T) {
	s, err := Parse("https://127.0.0.1:1/mine.tar.gz?signature=hunter2", "")
	must.Do(t, err)
	a, err := s.At("linux/amd64")
	must.Do(t, err)
	err = a.download(context.Background(), strings.Repeat("0", 64), os.Stderr)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "https://127.0.0.1:1/mine.tar.gz") {
		t.Errorf("got %v", err)
	}
}
