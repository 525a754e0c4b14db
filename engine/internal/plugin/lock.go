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
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/process/disk"
)

// This file reads and writes the lock, which fixes the program of each plugin that a pipeline file
// requires: its version, its signer, and its hash on every platform. It lies beside the pipeline
// file and is made to be committed, so that everybody who has the file runs the same programs.
//
// Only the verb that installs writes it. Its bytes are sorted and depend only on its content, so
// that writing the same content again changes no byte. Other packages find and store the programs.

// LockName is the name of the lock beside a pipeline file.
const LockName = ".racflow.lock.hcl"

// AnyPlatform is the platform of a program that is the same everywhere.
const AnyPlatform = "any/any"

// Lock lists the locked plugins of a pipeline file.
type Lock struct{ Plugins []LockedPlugin }

// LockedPlugin fixes the version and the programs of a plugin.
type LockedPlugin struct {
	Name       string
	Source     string            // as in the pipeline file
	Version    string            // the chosen version
	Constraint string            // by which the version was chosen, as in the pipeline file
	Protocol   int               // version of the protocol that its programs speak
	Digest     string            // of the OCI index; empty: it came as an archive
	Signer     string            // identity of the signer; empty: unsigned
	Programs   map[string]string // hashes by "os/arch"
	Range      hcl.Range         // of the block's header
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

var (
	fileSchema  = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "plugin", LabelNames: []string{"name"}}}}
	entrySchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "source", Required: true}, {Name: "version"}, {Name: "constraint"}, {Name: "protocol", Required: true},
		{Name: "digest"}, {Name: "signer"}, {Name: "programs", Required: true},
	}}
)

// ReadLock reads a lock. A missing file is an empty lock. The result is never nil.
func ReadLock(path string) (*Lock, hcl.Diagnostics) {
	f := &Lock{}
	src, err := bounded.ReadRegular(path, bounded.MaxSource)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, literalError(bounded.Top(path).Range(), "Cannot read the lock", "%v.", err)
	}
	parsed, diags := bounded.Parse(src, path)
	if diags.HasErrors() {
		return f, diags
	}
	content, diags := parsed.Body.Content(fileSchema)
	for _, b := range content.Blocks {
		if earlier := f.Plugin(b.Labels[0]); earlier != nil {
			diags = append(diags, literalError(b.DefRange, "Duplicate plugin", "The plugin %q is locked on line %d already. Remove one of them, and run racflow plugin init.", b.Labels[0], earlier.Range.Start.Line)...)
			continue
		}
		p, bad := entry(b)
		diags = append(diags, bad...)
		f.Plugins = append(f.Plugins, p)
	}
	return f, diags
}

func entry(b *hcl.Block) (LockedPlugin, hcl.Diagnostics) {
	p := LockedPlugin{Name: b.Labels[0], Range: b.DefRange}
	content, diags := b.Body.Content(entrySchema)
	for name, to := range map[string]*string{
		"source": &p.Source, "version": &p.Version, "constraint": &p.Constraint, "digest": &p.Digest, "signer": &p.Signer,
	} {
		if attr := content.Attributes[name]; attr != nil {
			text, bad := literalText(attr.Expr)
			*to, diags = text, append(diags, bad...)
		}
	}
	if attr := content.Attributes["protocol"]; attr != nil {
		n, bad := literalNumber(attr.Expr)
		p.Protocol, diags = n, append(diags, bad...)
	}
	if attr := content.Attributes["programs"]; attr != nil {
		programs, bad := literalTexts(attr.Expr)
		p.Programs, diags = programs, append(diags, bad...)
	}
	return p, diags
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
