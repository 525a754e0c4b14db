package install

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"

	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/signature"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/sdk"
)

// Described is what a release says of itself, before anything of it is downloaded or executed.
type Described struct {
	Plugin   sdk.Plugin
	Protocol int
	Version  string
	Digest   string           // of the index
	Builds   []registry.Build // by platform
	Signers  []string         // whose signatures hold
	Unsigned error            // why none does, although there are some
}

// Describe reads the description of the newest release that meets a constraint; folders are relative to dir.
func Describe(ctx context.Context, source, constraint, dir string) (d Described, err error) {
	s, err := registry.Parse(source, dir)
	if err != nil {
		return d, err
	}
	if s.Archive != nil {
		return d, errors.New("an archive brings no description along: install it with racflow plugin install, and describe it by its name")
	}
	repo, err := registry.Open(ctx, s)
	if err != nil {
		return d, err
	}
	if d.Version, err = repo.Newest(ctx, constraint); err != nil {
		return d, err
	}
	release, err := repo.Release(ctx, d.Version, "")
	if err != nil {
		return d, err
	}
	d.Digest = release.Digest
	for _, platform := range slices.Sorted(maps.Keys(release.Builds)) {
		d.Builds = append(d.Builds, release.Builds[platform])
	}
	if len(d.Builds) == 0 {
		return d, errors.New("the release has no program")
	}
	build, err := release.Build(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		build = d.Builds[0]
	}
	description, err := release.Description(ctx, build)
	if err != nil {
		return d, err
	}
	if d.Plugin, d.Protocol, err = store.Decode(description); err != nil {
		return d, err
	}
	all, err := release.Signatures(ctx)
	if err != nil {
		return d, err
	}
	d.Signers, d.Unsigned = signature.Signers(release.Digest, all)
	return d, nil
}
