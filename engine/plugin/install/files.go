package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/plugin/lock"
)

// Change is what became of a plugin.
type Change struct {
	Name      string
	Before    *lock.Plugin // nil: it was not locked
	After     *lock.Plugin // nil: no file of the folder requires it any more
	Installed bool         // on this machine
}

// Outcome is what became of the plugins of a folder's files.
type Outcome struct {
	Lock    string   // path
	Changes []Change // by name; plugins that stayed as they were are among them
	Written bool
	Sources map[string]*hcl.File // for diagnostics
}

// Files are the pipeline files of a folder, by name.
func Files(dir string) ([]string, error) {
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

// Init installs what files of one folder require, and locks it. With whole they are all that the folder has, so that
// what none of them requires leaves the lock. A diagnostic stands at the requirement that it is about; then the lock stays as it was.
func (in *Installer) Init(ctx context.Context, files []string, whole bool) (out Outcome, diags hcl.Diagnostics) {
	if len(files) == 0 {
		return out, nil
	}
	out.Lock, out.Sources = lock.Beside(files[0]), map[string]*hcl.File{}
	var required []plugin.Requirement
	for _, file := range files {
		src, err := bounded.Read(ctx, file, nil)
		if err != nil {
			return out, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot read the file", Detail: err.Error() + "."}}
		}
		found, bad := plugin.Requirements(file, src)
		out.Sources[file] = &hcl.File{Bytes: src}
		diags = append(diags, bad...)
		for _, r := range found {
			if r.Source != "" {
				required, bad = join(required, r)
				diags = append(diags, bad...)
			}
		}
	}
	before, bad := lock.Read(out.Lock)
	if diags = append(diags, bad...); diags.HasErrors() {
		return out, diags
	}
	after := &lock.File{}
	for _, r := range required {
		c := Change{Name: r.Name, Before: before.Plugin(r.Name)}
		p, installed, err := in.Install(ctx, wanted(r), c.Before)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Plugin not installed", Detail: sentence(err), Subject: r.SourceRange.Ptr()})
			continue
		}
		c.After, c.Installed = &p, installed
		out.Changes, after.Plugins = append(out.Changes, c), append(after.Plugins, p)
	}
	for _, p := range before.Plugins {
		switch {
		case slices.ContainsFunc(required, func(r plugin.Requirement) bool { return r.Name == p.Name }):
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

// join adds a requirement to those of other files of the folder, which share one lock.
func join(all []plugin.Requirement, r plugin.Requirement) ([]plugin.Requirement, hcl.Diagnostics) {
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

func wanted(r plugin.Requirement) Wanted {
	return Wanted{Name: r.Name, Source: r.Source, Version: r.Version, SHA256: r.SHA256, Dir: filepath.Dir(r.Range.Filename)}
}

// differs says what would change in a lock.
func (o Outcome) differs() string {
	var all []string
	for _, c := range o.Changes {
		if what := c.What(); what != "" {
			all = append(all, fmt.Sprintf("%s (%s)", c.Name, what))
		}
	}
	return fmt.Sprintf("%s would change: %s. Run racflow plugin init without --locked, look at the change, and commit it.", lock.FileName, strings.Join(all, ", "))
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

// sentence is an error as the detail of a diagnostic.
func sentence(err error) string {
	text := err.Error()
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
