package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/racflow/racflow/engine/plugin/store"
)

// Archive is a program in a file of its own: itself, or a tar.gz of the folder that belongs to it.
type Archive struct {
	Folder  bool
	address *url.URL
}

// Versioned reports whether the address of an archive is another one for each version.
func (s Source) Versioned() bool { return strings.Contains(s.Archive.Path, "{version}") }

// At is the archive for a platform, os/arch.
func (s Source) At(version, platform string) (Archive, error) {
	system, arch, _ := strings.Cut(platform, "/")
	u := *s.Archive
	u.RawPath = ""
	u.Path = strings.NewReplacer("{version}", version, "{os}", system, "{arch}", arch).Replace(u.Path)
	a := Archive{address: &u, Folder: strings.HasSuffix(u.Path, ".tar.gz") || strings.HasSuffix(u.Path, ".tgz")}
	for _, suffix := range []string{".zip", ".tar", ".xz", ".bz2", ".zst", ".gz"} {
		if !a.Folder && strings.HasSuffix(u.Path, suffix) {
			return a, fmt.Errorf("%s is packed in a way that racflow does not unpack: it takes a .tar.gz, or the program itself", a)
		}
	}
	return a, nil
}

// String is the address without what may be secret in it.
func (a Archive) String() string {
	if a.address.Scheme == "file" {
		return a.address.Path
	}
	return a.address.Scheme + "://" + a.address.Host + a.address.Path
}

// Download writes an archive to a file and compares it with its sha256, in hex.
func (a Archive) Download(ctx context.Context, want string, to io.Writer) error {
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("%q is no sha256: it has 64 digits from 0 to 9 and a to f, as sha256sum prints them", want)
	}
	body, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(body, store.MaxSize+1))
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return fmt.Errorf("download %s: it was cut off after %d bytes (%w); try again", a, n, plain(err))
	case n > store.MaxSize:
		return fmt.Errorf("%s has more than %d GiB", a, store.MaxSize>>30)
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
		return nil, plain(err)
	}
	client := &http.Client{Transport: retry.NewTransport(transport(silence)), CheckRedirect: stayEncrypted}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", a, plain(err))
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	return nil, errors.Join(fmt.Errorf("download %s: the server answers %s", a, response.Status), response.Body.Close())
}

// stayEncrypted refuses to be led from https to http.
func stayEncrypted(to *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return errors.New("the server leads on and on")
	}
	if before[0].URL.Scheme == "https" && to.URL.Scheme != "https" {
		return errors.New("the server leads to an address without https")
	}
	return nil
}

// plain leaves out the address that net/http puts before its errors, since a signed one holds a secret.
func plain(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}
