package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/store"
)

// pinned is what a lock has in place of the digest of an index for archives: the hash of what the file says of them, so that
// a change of it is seen.
func pinned(sums map[string]string) string {
	text := ""
	for _, platform := range slices.Sorted(maps.Keys(sums)) {
		text += platform + " " + strings.ToLower(sums[platform]) + "\n"
	}
	sum := sha256.Sum256([]byte(text))
	return "archives:" + hex.EncodeToString(sum[:])
}

// archive installs a plugin from plain archives, as Install does.
func (in *Installer) archive(ctx context.Context, w Wanted, source registry.Source, before *lock.Plugin, keep bool) (after lock.Plugin, installed bool, err error) {
	version := ""
	if source.Versioned() {
		if version = w.Version; !registry.Version(version) {
			return after, false, fmt.Errorf("the address of the archive holds {version}, so version has to be one, such as \"1.2.3\", and not %q", w.Version)
		}
	}
	if _, signed := in.Keys[w.Name]; signed {
		return after, false, errors.New("an archive is not signed: its sha256 in the file says which one it has to be; leave out --key")
	}
	here := in.platform()
	if _, ok := w.SHA256[here]; !ok {
		here = lock.AnyPlatform
	}
	if _, ok := w.SHA256[here]; !ok {
		return after, false, fmt.Errorf("no archive for %s is named: add its hash, sha256 = { %q = \"...\" }, as sha256sum prints it", in.platform(), in.platform())
	}
	if keep {
		after = *before
		after.Constraint = w.Version
		if in.has(after.Name, after.Programs[here]) {
			return after, false, nil
		}
	}
	if w.Name == "" {
		if w.Name = nameIn(source.Archive.Path); w.Name == "" {
			return after, false, fmt.Errorf("the archive's name does not say which plugin it holds: name it as in racflow-plugin-mine_%s.tar.gz", strings.Replace(here, "/", "_", 1))
		}
	}
	fresh := lock.Plugin{Name: w.Name, Source: w.Source, Version: version, Constraint: w.Version, Digest: pinned(w.SHA256), Programs: map[string]string{}}
	temp, err := os.MkdirTemp("", "racflow-archives-*")
	if err != nil {
		return after, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	elsewhere, err := store.Open(temp)
	if err != nil {
		return after, false, err
	}
	for _, platform := range slices.Sorted(maps.Keys(w.SHA256)) {
		if platform != here && keep {
			continue
		}
		a, err := source.At(version, platform)
		if err != nil {
			return after, false, err
		}
		in.say("getting %s ...", a)
		to, want := elsewhere, "" // of other machines only the hash is wanted
		if platform == here {
			to, want = in.Store, after.Programs[here]
		}
		hash, err := unpack(ctx, a, w, platform, to, want)
		if err != nil {
			return after, false, err
		}
		if platform != here {
			if err := elsewhere.Remove(hash); err != nil {
				return after, false, err
			}
		}
		fresh.Programs[platform] = hash
	}
	if !keep {
		after = fresh
	}
	return after, true, in.describe(ctx, &after, here)
}

// undescribed is the description of a program until it was asked for its own.
var undescribed = []byte(`{"protocol": 1}`)

// unpack downloads an archive into a store and returns the hash of its program.
func unpack(ctx context.Context, a registry.Archive, w Wanted, platform string, to *store.Store, want string) (hash string, err error) {
	f, err := os.CreateTemp("", "racflow-archive-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := a.Download(ctx, w.SHA256[platform], f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return to.Add(w.Name, f, a.Folder, want, undescribed)
}

// describe asks a program that came in an archive for its description, and keeps that. One that does not answer is removed.
func (in *Installer) describe(ctx context.Context, p *lock.Plugin, platform string) error {
	hash := p.Programs[platform]
	raw, err := in.ask(ctx, p.Name, hash)
	if err == nil {
		err = note(raw, p)
	}
	if ok, bad := registry.Matches(p.Constraint, p.Version); err == nil && (!ok || bad != nil) && p.Constraint != "" {
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
	return store.Encode(said)
}

var archiveName = regexp.MustCompile(`(?:^|/)racflow-plugin-([A-Za-z][A-Za-z0-9-]*)[^/]*$`)

// nameIn is the plugin that an archive's name names.
func nameIn(path string) string {
	if m := archiveName.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return ""
}
