package registry

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// This file makes a release of a plugin from its built programs and uploads it, signed if a key is given.
//
// A folder has the programs by platform, as OS_ARCH/racflow-plugin-NAME. Each program is a file or a whole
// folder; any_any is for a plugin that is the same everywhere. The program for this machine describes the
// plugin, so it must exist. A release gets its tag last, once it is complete and signed, so nobody finds an
// incomplete release.
//
// The file builds no programs, and never changes a published version.

var platformName = regexp.MustCompile(`^([a-z0-9]+)_([a-z0-9]+)$`)

// Programs finds the programs of a folder by platform, os/arch. It returns the name of the one plugin to
// which they belong.
func Programs(dist string) (name string, all map[string]program.Program, err error) {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return "", nil, fmt.Errorf("read the built programs: %w", err)
	}
	all = map[string]program.Program{}
	for _, e := range entries {
		m := platformName.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		found, err := program.Find([]string{filepath.Join(dist, e.Name())})
		if err != nil {
			return "", nil, err
		}
		platform := m[1] + "/" + m[2]
		if len(found) != 1 {
			return "", nil, fmt.Errorf("%s holds %d programs named %sNAME, and a release has one for each platform", filepath.Join(dist, e.Name()), len(found), program.Prefix)
		}
		p := found[0]
		if name != "" && p.Name != name {
			return "", nil, fmt.Errorf("%s holds programs of the plugins %q and %q: publish each from a folder of its own", dist, name, p.Name)
		}
		name = p.Name
		if p.Hash, err = p.Check(); err != nil {
			return "", nil, err
		}
		all[platform] = p
	}
	if len(all) == 0 {
		return "", nil, fmt.Errorf("%s holds no built program: put them where their platform says, such as %s, or any_any for one that is the same everywhere",
			dist, filepath.Join(dist, "linux_amd64", program.Prefix+"mine"))
	}
	return name, all, nil
}

// here returns the program for this machine.
func here(all map[string]program.Program) (program.Program, error) {
	for _, platform := range []string{runtime.GOOS + "/" + runtime.GOARCH, plugin.AnyPlatform} {
		if p, ok := all[platform]; ok {
			return p, nil
		}
	}
	return program.Program{}, fmt.Errorf("none of the programs runs on this machine, and one has to describe the plugin: build %s_%s, too", runtime.GOOS, runtime.GOARCH)
}

// folderName returns the name of a platform's folder.
func folderName(platform string) string { return strings.Replace(platform, "/", "_", 1) }

// packProgram writes the tar.gz of a program's folder. The same folder always yields the same bytes: names
// are sorted; times, owners and all permissions except execution are omitted.
func packProgram(folder string, to io.Writer) error {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(to)
	out := tar.NewWriter(packed)
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != folder && program.Skipped(e.Name()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Typeflag: tar.TypeReg, Size: info.Size(), Format: tar.FormatPAX}
		if info.Mode()&0o111 != 0 {
			h.Mode = 0o755
		}
		if info.Mode()&fs.ModeSymlink != 0 { // Check has made sure that the link stays inside
			h.Typeflag, h.Mode, h.Size = tar.TypeSymlink, 0o777, 0
			if h.Linkname, err = os.Readlink(path); err != nil {
				return err
			}
			return out.WriteHeader(h)
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, f)
		return errors.Join(err, f.Close())
	})
	return errors.Join(err, out.Close(), packed.Close())
}

// Published describes a published release.
type Published struct {
	Name, Version string
	Digest        string // of the index
	Platforms     []string
	Signer        string // empty: unsigned
}

// Publish uploads the programs of a folder to a repository or an OCI layout; see Programs. describe starts
// one of them. Without a key the release is unsigned.
func Publish(ctx context.Context, dist string, target Source, key *PrivateKey, describe func(context.Context, program.Program) (sdk.Plugin, error)) (r Published, err error) {
	name, programs, err := Programs(dist)
	if err != nil {
		return r, err
	}
	p, err := here(programs)
	if err != nil {
		return r, err
	}
	said, err := describe(ctx, p)
	switch {
	case err != nil:
		return r, err
	case said.Name != name:
		return r, fmt.Errorf("the program is named %s%s, and says that it is the plugin %q: give both one name", program.Prefix, name, said.Name)
	case !Version(said.Version):
		return r, fmt.Errorf("the plugin says that its version is %q; a release needs one such as 1.2.3 or 2.0.0-rc.1 (semver.org, without +)", said.Version)
	}
	description, err := EncodeDescription(said)
	if err != nil {
		return r, err
	}
	temp, err := os.MkdirTemp("", "racflow-publish-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	layers := map[string]layer{}
	for platform, p := range programs {
		if layers[platform], err = layerOf(p, filepath.Join(temp, folderName(platform))); err != nil {
			return r, fmt.Errorf("pack the program for %s: %w", platform, err)
		}
	}
	repo, err := create(ctx, target)
	if err != nil {
		return r, err
	}
	r = Published{Name: name, Version: said.Version, Platforms: slices.Sorted(maps.Keys(programs))}
	if r.Digest, err = repo.Push(ctx, name, said.Version, description, layers); err != nil {
		return r, err
	}
	if key != nil {
		s := key.Sign(r.Digest)
		if err := repo.Sign(ctx, r.Digest, s); err != nil {
			return r, err
		}
		r.Signer = s.Signer
	}
	return r, repo.Tag(ctx, r.Digest, said.Version)
}

// layerOf prepares a program for upload; it first packs a folder into the file packed.
func layerOf(p program.Program, packed string) (layer, error) {
	l := layer{Path: p.Path, Hash: p.Hash}
	if p.Folder == "" {
		return l, nil
	}
	l.Path, l.Folder = packed, true
	f, err := os.Create(packed)
	if err != nil {
		return l, err
	}
	return l, errors.Join(packProgram(p.Folder, f), f.Close())
}
