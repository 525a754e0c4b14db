package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/signature"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// Release is what was published.
type Release struct {
	Name, Version string
	Digest        string // of the index
	Platforms     []string
	Signer        string // empty: it is not signed
}

// Publish uploads the programs of a folder to a repository or an OCI layout; see Programs. Describe starts one of them. Without a
// key the release is not signed.
func Publish(ctx context.Context, dist string, target registry.Source, key *signature.PrivateKey, describe func(context.Context, program.Program) (sdk.Plugin, error)) (r Release, err error) {
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
	case !registry.Version(said.Version):
		return r, fmt.Errorf("the plugin says that its version is %q; a release needs one such as 1.2.3 or 2.0.0-rc.1 (semver.org, without +)", said.Version)
	}
	description, err := store.Encode(said)
	if err != nil {
		return r, err
	}
	temp, err := os.MkdirTemp("", "racflow-publish-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	layers := map[string]registry.Layer{}
	for platform, p := range programs {
		if layers[platform], err = layerOf(p, filepath.Join(temp, folderName(platform))); err != nil {
			return r, fmt.Errorf("pack the program for %s: %w", platform, err)
		}
	}
	repo, err := registry.Create(ctx, target)
	if err != nil {
		return r, err
	}
	r = Release{Name: name, Version: said.Version, Platforms: slices.Sorted(maps.Keys(programs))}
	if r.Digest, err = repo.Push(ctx, name, said.Version, description, layers); err != nil {
		return r, err
	}
	if key != nil {
		s, err := key.Sign(r.Digest)
		if err != nil {
			return r, err
		}
		if err := repo.Sign(ctx, r.Digest, s); err != nil {
			return r, err
		}
		r.Signer = s.Signer
	}
	return r, repo.Tag(ctx, r.Digest, said.Version)
}

// layerOf is a program as it is uploaded; a folder is packed to a file first.
func layerOf(p program.Program, packed string) (registry.Layer, error) {
	l := registry.Layer{Path: p.Path, Hash: p.Hash}
	if p.Folder == "" {
		return l, nil
	}
	l.Path, l.Folder = packed, true
	f, err := os.Create(packed)
	if err != nil {
		return l, err
	}
	return l, errors.Join(pack(p.Folder, f), f.Close())
}
