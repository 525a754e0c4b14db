package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/sdk"
)

// Described describes a release whose program was neither downloaded nor executed.
type Described struct {
	Plugin   sdk.Plugin
	Protocol int
	Version  string
	Digest   string   // of the index
	Builds   []Build  // by platform
	Signers  []string // signers with valid signatures
	Unsigned error    // why no signature is valid, if there are any
}

// Describe reads the description of the newest release that satisfies a constraint; folders are relative to dir.
func Describe(ctx context.Context, source, constraint, dir string) (d Described, err error) {
	s, err := Parse(source, dir)
	if err != nil {
		return d, err
	}
	if s.Archive != nil {
		return d, errors.New("an archive brings no description along: install it with racflow plugin install, and describe it by its name")
	}
	repo, err := Open(ctx, s)
	if err != nil {
		return d, err
	}
	if d.Version, err = repo.newest(ctx, constraint); err != nil {
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
	if d.Plugin, d.Protocol, err = decodeDescription(description); err != nil {
		return d, err
	}
	all, err := release.signatures(ctx)
	if err != nil {
		return d, err
	}
	d.Signers, d.Unsigned = Signers(release.Digest, all)
	return d, nil
}

// Change is the outcome of Init for one plugin.
type Change struct {
	Name      string
	Before    *plugin.LockedPlugin // nil: not locked before
	After     *plugin.LockedPlugin // nil: no file of the folder requires it any more
	Installed bool                 // on this machine, by this Init
}

// Outcome is the outcome of Init for a folder's files.
type Outcome struct {
	Lock    string   // path
	Changes []Change // by name, including unchanged plugins
	Written bool
	Sources map[string]*hcl.File // for diagnostics
}

// PipelineFiles returns the pipeline files of a folder, by name.
func PipelineFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".hcl") && !strings.HasPrefix(name, ".") && !e.IsDir() {
			all = append(all, filepath.Join(dir, name))
		}
	}
	return all, nil
}

// Init installs the plugins that files of one folder require, and locks them. With whole, files are all files of the
// folder; then Init removes plugins from the lock that none of them requires. An error points at the requirement; then
// the lock stays unchanged.
func (in *Installer) Init(ctx context.Context, files []string, whole bool) (out Outcome, diags hcl.Diagnostics) {
	if len(files) == 0 {
		return out, nil
	}
	out.Lock, out.Sources = plugin.LockBeside(files[0]), map[string]*hcl.File{}
	var required []require.Plugin
	for _, file := range files {
		src, err := bounded.Read(ctx, file, nil)
		if err != nil {
			return out, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot read the file", Detail: err.Error() + "."}}
		}
		found, bad := require.All(file, src)
		out.Sources[file] = &hcl.File{Bytes: src}
		diags = append(diags, bad...)
		for _, r := range found {
			if r.Source != "" {
				required, bad = join(required, r)
				diags = append(diags, bad...)
			}
		}
	}
	before, bad := plugin.ReadLock(out.Lock)
	if diags = append(diags, bad...); diags.HasErrors() {
		return out, diags
	}
	after := &plugin.Lock{}
	for _, r := range required {
		c := Change{Name: r.Name, Before: before.Plugin(r.Name)}
		p, installed, err := in.Install(ctx, r, c.Before)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Plugin not installed", Detail: sentence(err), Subject: r.SourceRange.Ptr()})
			continue
		}
		c.After, c.Installed = &p, installed
		out.Changes, after.Plugins = append(out.Changes, c), append(after.Plugins, p)
	}
	for _, p := range before.Plugins {
		switch {
		case slices.ContainsFunc(required, func(r require.Plugin) bool { return r.Name == p.Name }):
		case !whole:
			after.Plugins = append(after.Plugins, p)
		default:
			out.Changes = append(out.Changes, Change{Name: p.Name, Before: &p})
		}
	}
	slices.SortFunc(out.Changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	if diags.HasErrors() || string(after.Bytes()) == string(before.Bytes()) {
		return out, diags
	}
	if in.Locked {
		return out, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "The lock would change", Detail: out.differs()})
	}
	if err := after.Write(out.Lock); err != nil {
		return out, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot write the lock", Detail: sentence(err)})
	}
	out.Written = true
	return out, diags
}

// join adds a requirement to the requirements of the folder's other files, which share one lock.
func join(all []require.Plugin, r require.Plugin) ([]require.Plugin, hcl.Diagnostics) {
	for _, other := range all {
		if other.Name != r.Name {
			continue
		}
		if other.Source == r.Source && other.Version == r.Version && pinned(other.SHA256) == pinned(r.SHA256) {
			return all, nil
		}
		return all, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Different requirements", Subject: r.Range.Ptr(),
			Detail: fmt.Sprintf("%s requires %q from another source or in another version. Files of one folder share one lock: write the same in both, or move one of them.",
				filepath.Base(other.Range.Filename), r.Name),
		}}
	}
	return append(all, r), nil
}

// differs lists the changes that a lock would need.
func (o Outcome) differs() string {
	var all []string
	for _, c := range o.Changes {
		if what := c.What(); what != "" {
			all = append(all, fmt.Sprintf("%s (%s)", c.Name, what))
		}
	}
	return fmt.Sprintf("%s would change: %s. Run racflow plugin init without --locked, look at the change, and commit it.", plugin.LockName, strings.Join(all, ", "))
}

// What says how a lock's entry changes; empty: it does not.
func (c Change) What() string {
	switch {
	case c.Before == nil:
		return "added"
	case c.After == nil:
		return "removed"
	case c.Before.Version != c.After.Version:
		return fmt.Sprintf("%s -> %s", c.Before.Version, c.After.Version)
	case c.Before.Digest != c.After.Digest:
		return "other programs"
	case c.Before.Signer != c.After.Signer:
		return "other signer"
	case c.Before.Source != c.After.Source:
		return "other source"
	case c.Before.Constraint != c.After.Constraint:
		return "other constraint"
	case c.Before.Protocol != c.After.Protocol:
		return "other protocol"
	}
	return ""
}

// sentence turns an error into the detail of a diagnostic.
func sentence(err error) string {
	text := err.Error()
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// signer checks who signed a release. before is the signer of the locked release; empty: nobody. It returns the signer
// to lock; empty: nobody.
func (in *Installer) signer(ctx context.Context, name string, release *Release, before string) (string, error) {
	all, err := release.signatures(ctx)
	if err != nil {
		return "", err
	}
	var keys []PublicKey
	key, given := in.Keys[name]
	if given {
		keys = append(keys, key)
	}
	signers, bad := Signers(release.Digest, all, keys...)
	what := fmt.Sprintf("version %s of %q", release.Version, name)
	wanted := func(s string) bool {
		return (!given || key.Is(s)) && (before == "" || s == before || in.accepted(name))
	}
	accept := fmt.Sprintf("if its author has changed the key, accept the new one with --trust-new-signer %s", name)
	switch i := slices.IndexFunc(signers, wanted); {
	case slices.Contains(signers, before) && wanted(before):
		return before, nil
	case i >= 0:
		return signers[i], nil
	case errors.Is(bad, errKeyNeeded) && !in.accepted(name):
		return "", fmt.Errorf("%s is not checked yet: %w; pass the public key with --key %s=cosign.pub, or take it unsigned with --trust-new-signer %s", what, errKeyNeeded, name, name)
	case given && len(signers) > 0:
		return "", fmt.Errorf("%s is signed by %s, and not by the key that --key names: ask its author which key is right", what, signers[0])
	case given:
		return "", fmt.Errorf("%s is not signed by the key that --key names%s", what, because(bad))
	case len(signers) > 0:
		return "", fmt.Errorf("%s is signed by %s, and what is locked by %s: %s", what, signers[0], before, accept)
	case bad != nil && !errors.Is(bad, errKeyNeeded):
		return "", fmt.Errorf("the signature of %s is not valid: %w; do not use it, and ask its author", what, bad)
	case before != "" && !in.accepted(name):
		return "", fmt.Errorf("%s is not signed, and what is locked is signed by %s: ask its author; to take it unsigned, pass --trust-new-signer %s", what, before, name)
	}
	return "", nil
}

func because(err error) string {
	if err == nil {
		return ": it has no signature"
	}
	return ": " + err.Error()
}
