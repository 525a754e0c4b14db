package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/signature"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// Installer installs plugins. Its fields may be set until it is used.
type Installer struct {
	Store    *store.Store
	Platform string                                                     // os/arch; "": this machine's
	Upgrade  bool                                                       // takes the newest version that a file allows, also where another is locked
	Locked   bool                                                       // changes no lock: what would change is an error
	Keys     map[string]signature.Key                                   // by plugin, who has to have signed it
	Trust    []string                                                   // plugins of which another signer, or none, is accepted
	Describe func(context.Context, program.Program) (sdk.Plugin, error) // asks the program of an archive
	Progress func(text string)                                          // says what takes long; nil: nobody listens
}

func (in *Installer) platform() string {
	if in.Platform != "" {
		return in.Platform
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

func (in *Installer) say(format string, args ...any) {
	if in.Progress != nil {
		in.Progress(fmt.Sprintf(format, args...))
	}
}

// Wanted is what is to be installed.
type Wanted struct {
	Name    string // "": as the plugin calls itself
	Source  string
	Version string            // the constraint
	SHA256  map[string]string // of an archive, by os/arch
	Dir     string            // that folders of the source are relative to
}

// hashOf is the program that is locked for a platform; empty: none.
func hashOf(p lock.Plugin, platform string) string {
	if hash := p.Programs[platform]; hash != "" {
		return hash
	}
	return p.Programs[lock.AnyPlatform]
}

// Install installs one plugin for this machine and returns what a lock has to say of it. Before is what one says
// already, nil for nothing. Installed reports whether the store did not have its program, or had it changed.
func (in *Installer) Install(ctx context.Context, w Wanted, before *lock.Plugin) (after lock.Plugin, installed bool, err error) {
	source, err := registry.Parse(w.Source, w.Dir)
	if err != nil {
		return after, false, err
	}
	if _, err := registry.Matches(w.Version, "0.0.0"); err != nil {
		return after, false, err
	}
	keep := before != nil && before.Source == w.Source && in.meets(w, *before)
	if source.Archive != nil {
		if keep = keep && before.Digest == pinned(w.SHA256); in.Locked && !keep {
			return after, false, stale(w, before)
		}
		return in.archive(ctx, w, source, before, keep)
	}
	if w.SHA256 != nil {
		return after, false, errors.New("sha256 is for archives; the programs of a registry are locked by its index: remove it")
	}
	key, given := in.Keys[w.Name]
	switch {
	case in.Locked && !keep:
		return after, false, stale(w, before)
	case keep && !in.Upgrade && given && !key.Is(before.Signer):
		return after, false, fmt.Errorf("%s has %q signed by %s, and not by the key that --key names: ask its author which key is right; --upgrade looks for its signature anew", lock.FileName, w.Name, cmp.Or(before.Signer, "nobody"))
	case keep && !in.Upgrade:
		after = *before
		after.Constraint = w.Version
		if hash := hashOf(after, in.platform()); hash != "" && in.has(after.Name, hash) {
			return after, false, nil
		}
	}
	repo, err := registry.Open(ctx, source)
	if err != nil {
		return after, false, err
	}
	if keep && !in.Upgrade {
		release, err := locked(ctx, repo, *before)
		if err != nil {
			return after, false, err
		}
		installed, err = in.add(ctx, release, &after)
		return after, installed, err
	}
	return in.choose(ctx, w, repo, before)
}

// meets reports whether the locked version satisfies the wanted constraint. With Locked, the lock has to
// have the same constraint, too.
func (in *Installer) meets(w Wanted, p lock.Plugin) bool {
	ok, err := registry.Matches(w.Version, p.Version)
	if w.Version == "" {
		ok = true // also a prerelease that a constraint allowed before
	}
	return ok && err == nil && (!in.Locked || p.Constraint == w.Version)
}

// stale says why a lock would have to change.
func stale(w Wanted, before *lock.Plugin) error {
	why := "it is not in the lock"
	switch {
	case before == nil:
	case before.Source != w.Source:
		why = fmt.Sprintf("the lock has it from %s, the file from %s", before.Source, w.Source)
	case before.Constraint != w.Version:
		why = fmt.Sprintf("the lock has version %s, chosen by %q, and the file now has %q", before.Version, before.Constraint, w.Version)
	default:
		why = "the file now has other archives (sha256)"
	}
	return fmt.Errorf("%s would change for %q: %s. Run racflow plugin init without --locked, look at the change, and commit it", lock.FileName, w.Name, why)
}

// locked finds the release that is locked, wherever its tag leads now.
func locked(ctx context.Context, repo *registry.Repository, p lock.Plugin) (*registry.Release, error) {
	release, err := repo.Release(ctx, p.Version, p.Digest)
	if !errors.Is(err, registry.ErrNotFound) {
		return release, err
	}
	now, tagged := repo.Tagged(ctx, p.Version)
	if tagged != nil {
		return nil, fmt.Errorf("version %s of %s is gone: there is neither its tag nor the locked index %s. Choose another version with racflow plugin init --upgrade", p.Version, p.Source, p.Digest)
	}
	return nil, fmt.Errorf("the locked index %s of version %s is gone from %s, and its tag now leads to %s: %s", p.Digest, p.Version, p.Source, now, moved(p.Name))
}

// moved is what to do about a tag that leads elsewhere now.
func moved(name string) string {
	return fmt.Sprintf("a release never changes, so ask its author why; to take the new one all the same, remove the block of %q from %s and run racflow plugin init", name, lock.FileName)
}

// choose takes the newest release that meets what is wanted.
func (in *Installer) choose(ctx context.Context, w Wanted, repo *registry.Repository, before *lock.Plugin) (after lock.Plugin, installed bool, err error) {
	version, err := repo.Newest(ctx, w.Version)
	if err != nil {
		return after, false, err
	}
	release, err := repo.Release(ctx, version, "")
	if err != nil {
		return after, false, err
	}
	after = lock.Plugin{Name: w.Name, Source: w.Source, Version: version, Constraint: w.Version, Digest: release.Digest, Programs: release.Programs()}
	signer := ""
	if before != nil {
		signer = before.Signer
		if before.Source == w.Source && before.Version == version && before.Digest != release.Digest {
			return after, false, fmt.Errorf("the tag of version %s of %s was moved: the lock has the index %s, the registry now %s: %s", version, w.Source, before.Digest, release.Digest, moved(w.Name))
		}
	}
	if after.Signer, err = in.signer(ctx, w.Name, release, signer); err != nil {
		return after, false, err
	}
	installed, err = in.add(ctx, release, &after)
	return after, installed, err
}

// has reports whether the store has a program as it has to be, with its description.
func (in *Installer) has(name, hash string) bool {
	if _, err := in.Store.Program(name, hash); err != nil {
		return false
	}
	_, _, err := in.Store.Description(hash)
	return err == nil
}

// add installs the program of a release, and notes what its description says.
func (in *Installer) add(ctx context.Context, release *registry.Release, p *lock.Plugin) (installed bool, err error) {
	build, err := release.Build(in.platform())
	if err != nil {
		return false, err
	}
	if want := hashOf(*p, in.platform()); want != build.Hash {
		return false, fmt.Errorf("%s has the program %s for %s, and the release %s: the lock was changed by hand; restore it, or remove the block of %q and run racflow plugin init", lock.FileName, want, in.platform(), build.Hash, p.Name)
	}
	description, err := release.Description(ctx, build)
	if err != nil {
		return false, err
	}
	if err := note(description, p); err != nil {
		return false, err
	}
	if in.has(p.Name, build.Hash) {
		return false, nil
	}
	in.say("getting %s %s for %s (%.1f MB) ...", p.Name, p.Version, build.Platform, float64(build.Size)/1e6)
	layer, err := release.Program(ctx, build)
	if err != nil {
		return false, err
	}
	_, err = in.Store.Add(p.Name, layer, build.Folder, build.Hash, description)
	if err == nil {
		_, err = io.Copy(io.Discard, layer) // what the archive's end did not need is part of the digest, too
	}
	return err == nil, errors.Join(err, layer.Close())
}

// note copies name, version and protocol from a description to p. It fails where they contradict p.
func note(description []byte, p *lock.Plugin) error {
	said, protocol, err := store.Decode(description)
	if err != nil {
		return err
	}
	p.Protocol = protocol
	switch {
	case said.Name == "": // it speaks another protocol: the loader says so
		return nil
	case p.Name == "":
		p.Name = said.Name
	case said.Name != p.Name:
		return fmt.Errorf("%s is the plugin %q: call the entry %s in place of %s", p.Source, said.Name, said.Name, p.Name)
	}
	if p.Version != "" && said.Version != p.Version {
		return fmt.Errorf("version %s of %s says of itself that it is version %s: its author has to publish it anew", p.Version, p.Source, said.Version)
	}
	p.Version = said.Version
	return nil
}

// accepted reports whether another signer of a plugin is accepted.
func (in *Installer) accepted(name string) bool { return slices.Contains(in.Trust, name) }
