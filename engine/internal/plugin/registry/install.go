package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// This file chooses releases of the plugins that pipeline files require, checks who signed them, and puts their
// programs into the store. It records all of this in the lock beside the files.
//
// The lock has precedence: its digest over a moved tag, and its signer over another signer. If lock and store have
// everything, no registry is asked. A newer version is chosen only if the locked one no longer satisfies the file, or
// on demand. The first installation locks the signer. From then on a release with another signature, or with none, is
// refused until a person accepts it.
//
// The lock is written only once all plugins are chosen and installed.
//
// release.go reads releases, and store.go stores programs. A program is started only to describe itself, and only if it
// came in a plain archive with the sha256 that the file requires.

// pinned returns what a lock stores for plain archives, which have no index with a digest. It is a hash of their
// platforms and sha256 in the file, to detect a change.
func pinned(sums map[string]string) string {
	text := ""
	for _, platform := range slices.Sorted(maps.Keys(sums)) {
		text += platform + " " + strings.ToLower(sums[platform]) + "\n"
	}
	sum := sha256.Sum256([]byte(text))
	return "archives:" + hex.EncodeToString(sum[:])
}

// archive installs a plugin from plain archives, as Install does.
func (in *Installer) archive(ctx context.Context, w require.Plugin, source Source, before *plugin.LockedPlugin, keep bool) (after plugin.LockedPlugin, installed bool, err error) {
	if _, signed := in.Keys[w.Name]; signed {
		return after, false, errors.New("an archive is not signed: its sha256 in the file says which one it has to be; leave out --key")
	}
	here := in.platform()
	if _, ok := w.SHA256[here]; !ok {
		here = plugin.AnyPlatform
	}
	if _, ok := w.SHA256[here]; !ok {
		return after, false, fmt.Errorf("no archive for %s is named: add its hash, sha256 = { %q = \"...\" }, as sha256sum prints it", in.platform(), in.platform())
	}
	if w.Name == "" {
		if w.Name = nameIn(source.Archive.Path); w.Name == "" {
			return after, false, fmt.Errorf("the archive's name does not say which plugin it holds: name it as in racflow-plugin-mine_%s.tar.gz", strings.Replace(here, "/", "_", 1))
		}
	}
	after = plugin.LockedPlugin{Name: w.Name, Source: w.Source, Constraint: w.Version, Digest: pinned(w.SHA256), Programs: map[string]string{}}
	if keep {
		after.Version, after.Protocol, after.Programs = before.Version, before.Protocol, maps.Clone(before.Programs)
		if in.has(after.Name, after.Programs[here]) && in.Store.Vouched(after, after.Programs[here]) {
			return after, false, nil
		}
	}
	for _, platform := range slices.Sorted(maps.Keys(w.SHA256)) {
		if platform != here && keep {
			continue
		}
		hash, err := in.unpack(ctx, source, w, platform, after.Programs[platform])
		if err == nil && platform != here && hash != after.Programs[here] { // only its hash is needed
			err = in.Store.Remove(hash)
		}
		if err != nil {
			return after, false, err
		}
		after.Programs[platform] = hash
	}
	if err := in.describe(ctx, &after, here); err != nil {
		return after, true, err
	}
	return after, true, in.Store.Vouch(after, after.Programs[here])
}

// undescribed replaces a program's description until the program is asked.
var undescribed = []byte(`{"protocol": 1}`)

// unpack downloads an archive into the store and returns the hash of its program.
func (in *Installer) unpack(ctx context.Context, source Source, w require.Plugin, platform, want string) (hash string, err error) {
	a, err := source.At(platform)
	if err != nil {
		return "", err
	}
	in.say("getting %s ...", a)
	f, err := os.CreateTemp("", "racflow-archive-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := a.download(ctx, w.SHA256[platform], f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return in.Store.Add(w.Name, f, a.Folder, want, undescribed)
}

// describe asks a program from an archive for its description, and stores the description. After an error it removes
// the program.
func (in *Installer) describe(ctx context.Context, p *plugin.LockedPlugin, platform string) error {
	hash := p.Programs[platform]
	raw, err := in.ask(ctx, p.Name, hash)
	if err == nil {
		err = note(raw, p)
	}
	if ok, bad := matches(p.Constraint, p.Version); err == nil && (!ok || bad != nil) && p.Constraint != "" {
		err = fmt.Errorf("the archive holds version %s of %q, which does not meet %q", p.Version, p.Name, p.Constraint)
	}
	if err != nil {
		return errors.Join(err, in.Store.Remove(hash))
	}
	return in.Store.Describe(hash, raw)
}

func (in *Installer) ask(ctx context.Context, name, hash string) ([]byte, error) {
	program, err := in.Store.Program(name, hash)
	if err != nil {
		return nil, err
	}
	said, err := in.Describe(ctx, program)
	if err != nil {
		return nil, err
	}
	return EncodeDescription(said)
}

var archiveName = regexp.MustCompile(`(?:^|/)racflow-plugin-([A-Za-z][A-Za-z0-9-]*)[^/]*$`)

// nameIn returns the plugin's name in the file name of an archive.
func nameIn(path string) string {
	if m := archiveName.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return ""
}

// Installer installs plugins. Set its fields before its first use.
type Installer struct {
	Store    *Store
	Platform string                                                     // os/arch; "": this machine's
	Upgrade  bool                                                       // take the newest version that a file allows, even if another is locked
	Locked   bool                                                       // fail if the lock would change
	Keys     map[string]PublicKey                                       // by plugin: the key that must have signed the plugin
	Trust    []string                                                   // plugins that may have another signer, or none
	Describe func(context.Context, program.Program) (sdk.Plugin, error) // starts the program of an archive to get its description
	Progress func(text string)                                          // reports slow steps; may be nil
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

// hashOf returns the hash of the locked program for a platform; empty: none.
func hashOf(p plugin.LockedPlugin, platform string) string {
	if hash := p.Programs[platform]; hash != "" {
		return hash
	}
	return p.Programs[plugin.AnyPlatform]
}

// Install installs one plugin for this machine and returns its entry for the lock. A requirement without a name gets
// the plugin's own name. before is the present entry, or nil. installed reports whether the program was missing from
// the store, or changed there.
func (in *Installer) Install(ctx context.Context, w require.Plugin, before *plugin.LockedPlugin) (after plugin.LockedPlugin, installed bool, err error) {
	source, err := Parse(w.Source, filepath.Dir(w.Range.Filename))
	if err != nil {
		return after, false, err
	}
	if _, err := matches(w.Version, "0.0.0"); err != nil {
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
		return after, false, fmt.Errorf("%s has %q signed by %s, and not by the key that --key names: ask its author which key is right; --upgrade looks for its signature anew", plugin.LockName, w.Name, cmp.Or(before.Signer, "nobody"))
	case keep && !in.Upgrade:
		after = *before
		after.Constraint = w.Version
		if hash := hashOf(after, in.platform()); hash != "" && in.has(after.Name, hash) && in.Store.Vouched(after, hash) {
			return after, false, nil
		}
	}
	repo, err := Open(ctx, source)
	if err != nil {
		return after, false, err
	}
	if keep && !in.Upgrade {
		release, err := locked(ctx, repo, *before)
		if err != nil {
			return after, false, err
		}
		if before.Signer != "" && (given || !strings.HasPrefix(before.Signer, cosignPrefix)) { // cosign's signatures lack the key
			if after.Signer, err = in.signer(ctx, w.Name, release, before.Signer); err != nil {
				return after, false, fmt.Errorf("%w; if somebody has changed %s, restore it", err, plugin.LockName)
			}
		}
		installed, err = in.add(ctx, release, &after)
		return after, installed, err
	}
	return in.choose(ctx, w, repo, before)
}

// meets reports whether the locked version satisfies the wanted constraint. With Locked, the lock must
// also have the same constraint.
func (in *Installer) meets(w require.Plugin, p plugin.LockedPlugin) bool {
	ok, err := matches(w.Version, p.Version)
	if w.Version == "" {
		ok = true // even a prerelease that an earlier constraint allowed
	}
	return ok && err == nil && (!in.Locked || p.Constraint == w.Version)
}

// stale returns the error that a lock would have to change.
func stale(w require.Plugin, before *plugin.LockedPlugin) error {
	why := "it is not in the lock"
	if before != nil {
		why = fmt.Sprintf("the lock has version %s, chosen by %q from %s; the file now has %q from %s, or other archives (sha256)",
			before.Version, before.Constraint, before.Source, w.Version, w.Source)
	}
	return fmt.Errorf("%s would change for %q: %s. Run racflow plugin init without --locked, look at the change, and commit it", plugin.LockName, w.Name, why)
}

// locked finds the locked release, wherever its tag points now.
func locked(ctx context.Context, repo *repository, p plugin.LockedPlugin) (*Release, error) {
	release, err := repo.Release(ctx, p.Version, p.Digest)
	if errors.Is(err, errNotFound) {
		err = fmt.Errorf("the locked index %s of version %s is gone from %s: %s", p.Digest, p.Version, p.Source, moved(p.Name))
	}
	return release, err
}

// moved gives advice about a release that is gone, or whose tag now points elsewhere.
func moved(name string) string {
	return fmt.Sprintf("a release never changes, so ask its author why; to take what is there now, remove the block of %q from %s and run racflow plugin init", name, plugin.LockName)
}

// choose chooses the newest release that satisfies the wanted constraint.
func (in *Installer) choose(ctx context.Context, w require.Plugin, repo *repository, before *plugin.LockedPlugin) (after plugin.LockedPlugin, installed bool, err error) {
	version, err := repo.newest(ctx, w.Version)
	if err != nil {
		return after, false, err
	}
	release, err := repo.Release(ctx, version, "")
	if err != nil {
		return after, false, err
	}
	after = plugin.LockedPlugin{Name: w.Name, Source: w.Source, Version: version, Constraint: w.Version, Digest: release.Digest, Programs: release.programs()}
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

// has reports whether the store has an unchanged program with its description.
func (in *Installer) has(name, hash string) bool {
	if _, err := in.Store.Program(name, hash); err != nil {
		return false
	}
	_, _, err := in.Store.Description(hash)
	return err == nil
}

// add installs the program of a release, and records in p what its description says.
func (in *Installer) add(ctx context.Context, release *Release, p *plugin.LockedPlugin) (installed bool, err error) {
	build, err := release.Build(in.platform())
	if err != nil {
		return false, err
	}
	if want := hashOf(*p, in.platform()); want != build.Hash {
		return false, fmt.Errorf("%s has the program %s for %s, and the release %s: the lock was changed by hand; restore it, or remove the block of %q and run racflow plugin init", plugin.LockName, want, in.platform(), build.Hash, p.Name)
	}
	description, err := release.Description(ctx, build)
	if err != nil {
		return false, err
	}
	if err := note(description, p); err != nil {
		return false, err
	}
	if in.has(p.Name, build.Hash) {
		return false, in.Store.Vouch(*p, build.Hash)
	}
	in.say("getting %s %s for %s (%.1f MB) ...", p.Name, p.Version, build.Platform, float64(build.Size)/1e6)
	layer, err := release.Program(ctx, build)
	if err != nil {
		return false, err
	}
	_, err = in.Store.Add(p.Name, layer, build.Folder, build.Hash, description)
	if err = errors.Join(release.from.explain("download the program of version "+p.Version, err), layer.Close()); err == nil {
		err = in.Store.Vouch(*p, build.Hash)
	}
	return err == nil, err
}

// note copies name, version and protocol from a description to p. It fails if they contradict p.
func note(description []byte, p *plugin.LockedPlugin) error {
	said, protocol, err := decodeDescription(description)
	if err != nil {
		return err
	}
	p.Protocol = protocol
	switch {
	case said.Name == "": // the description uses another protocol: the loader reports that
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
