package plugin

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/process/disk"
)

// This file reads and writes the lock, which fixes the program of each plugin that a pipeline file
// requires: its version, its signer, and its hash on every platform. The lock is next to the
// pipeline file and is meant to be committed, so that everybody who has the file runs the same
// programs.
//
// Only the command that installs plugins writes the lock. Its bytes are sorted and depend only on
// its content, so that writing the same content again changes no byte. Other packages find and
// store the programs.

// LockName is the name of the lock beside a pipeline file.
const LockName = ".racflow.lock.hcl"

// AnyPlatform is the platform of a program that is the same everywhere.
const AnyPlatform = "any/any"

// Lock lists the locked plugins of a pipeline file.
type Lock struct {
	Plugins []LockedPlugin `hcl:"plugin,block"`
}

// LockedPlugin fixes the version and the programs of a plugin.
type LockedPlugin struct {
	Name       string            `hcl:"name,label"`
	Source     string            `hcl:"source"`              // as in the pipeline file
	Version    string            `hcl:"version,optional"`    // the chosen version
	Constraint string            `hcl:"constraint,optional"` // that chose the version, as in the pipeline file
	Protocol   int               `hcl:"protocol"`            // version of the protocol that its programs speak
	Digest     string            `hcl:"digest,optional"`     // of the OCI index; empty: the plugin came as an archive
	Signer     string            `hcl:"signer,optional"`     // identity of the signer; empty: unsigned
	Programs   map[string]string `hcl:"programs"`            // hashes by "os/arch"
	Range      hcl.Range         `hcl:",def_range"`          // of the block's header
}

// LockBeside returns the path of the lock of a pipeline file.
func LockBeside(file string) string { return filepath.Join(filepath.Dir(file), LockName) }

// Plugin returns the locked plugin of a name; nil: there is none.
func (f *Lock) Plugin(name string) *LockedPlugin {
	for i := range f.Plugins {
		if f.Plugins[i].Name == name {
			return &f.Plugins[i]
		}
	}
	return nil
}

// Program returns the hash of the program for this platform; empty: none is locked.
func (p *LockedPlugin) Program() string {
	if hash := p.Programs[runtime.GOOS+"/"+runtime.GOARCH]; hash != "" {
		return hash
	}
	return p.Programs[AnyPlatform]
}

// ReadLock reads a lock. A missing file is an empty lock. The result is never nil.
func ReadLock(path string) (*Lock, hcl.Diagnostics) {
	f := &Lock{}
	src, err := bounded.ReadRegular(path, bounded.MaxSource)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, bounded.ErrorAt(bounded.Top(path).Range(), "Cannot read the lock", "%v.", err)
	}
	parsed, diags := bounded.Parse(src, path)
	if diags.HasErrors() {
		return f, diags
	}
	diags = gohcl.DecodeBody(parsed.Body, nil, f) // the lock has no variables or function calls
	for _, p := range f.Plugins {
		if first := f.Plugin(p.Name); first.Range != p.Range {
			diags = append(diags, bounded.ErrorAt(p.Range, "Duplicate plugin", "The plugin %q is locked on line %d already. Remove one of them, and run racflow plugin init.", p.Name, first.Range.Start.Line)...)
		}
	}
	return f, diags
}

const head = "# Written by racflow plugin init. Commit it together with the pipeline file.\n"

// Bytes returns the content of the lock's file.
func (f *Lock) Bytes() []byte {
	out := hclwrite.NewEmptyFile()
	out.Body().AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte(head)}})
	plugins := slices.SortedFunc(slices.Values(f.Plugins), func(a, b LockedPlugin) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range plugins {
		out.Body().AppendNewline()
		b := out.Body().AppendNewBlock("plugin", []string{p.Name}).Body()
		text := func(name, value string) { b.SetAttributeValue(name, cty.StringVal(value)) }
		text("source", p.Source)
		text("version", p.Version)
		text("constraint", p.Constraint)
		b.SetAttributeValue("protocol", cty.NumberIntVal(int64(p.Protocol)))
		text("digest", p.Digest)
		text("signer", p.Signer)
		programs := map[string]cty.Value{} // cty sorts it by name
		for platform, hash := range p.Programs {
			programs[platform] = cty.StringVal(hash)
		}
		b.SetAttributeValue("programs", cty.ObjectVal(programs))
	}
	return hclwrite.Format(out.Bytes())
}

// Write atomically replaces the lock at a path, unless it has the same content.
func (f *Lock) Write(path string) error {
	content := f.Bytes()
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
		return nil
	}
	out, err := disk.OpenOutput(path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // a second Close after Commit does nothing
	if _, err := out.Write(content); err != nil {
		return err
	}
	return out.Commit()
}
