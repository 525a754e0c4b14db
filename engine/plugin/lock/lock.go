package lock

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/plugin/internal/literal"
)

// FileName is the name of the lock beside a pipeline file.
const FileName = ".racflow.lock.hcl"

// AnyPlatform is what a program runs on that is the same everywhere.
const AnyPlatform = "any/any"

// File is a lock.
type File struct{ Plugins []Plugin }

// Plugin is what is locked of a plugin.
type Plugin struct {
	Name       string
	Source     string            // as the pipeline file has it
	Version    string            // that was chosen
	Constraint string            // by which it was chosen, as the pipeline file has it
	Protocol   int               // that its programs speak
	Digest     string            // of the OCI index; empty: it came as an archive
	Signer     string            // who signed it; empty: nobody
	Programs   map[string]string // hashes by "os/arch"
	Range      hcl.Range         // of the block's header
}

// Beside is the path of the lock of a pipeline file.
func Beside(file string) string { return filepath.Join(filepath.Dir(file), FileName) }

// Plugin returns what is locked under a name; nil: nothing.
func (f *File) Plugin(name string) *Plugin {
	for i := range f.Plugins {
		if f.Plugins[i].Name == name {
			return &f.Plugins[i]
		}
	}
	return nil
}

// Program is the hash of the program for this platform; empty: none is locked.
func (p *Plugin) Program() string {
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

// Read reads a lock. One that is not there is empty. The file is never nil.
func Read(path string) (*File, hcl.Diagnostics) {
	f := &File{}
	src, err := bounded.ReadRegular(path, bounded.MaxSource)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, literal.Error(bounded.Top(path).Range(), "Cannot read the lock", "%v.", err)
	}
	parsed, diags := bounded.Parse(src, path)
	if diags.HasErrors() {
		return f, diags
	}
	content, diags := parsed.Body.Content(fileSchema)
	for _, b := range content.Blocks {
		if earlier := f.Plugin(b.Labels[0]); earlier != nil {
			diags = append(diags, literal.Error(b.DefRange, "Duplicate plugin", "The plugin %q is locked on line %d already. Remove one of them, and run racflow plugin init.", b.Labels[0], earlier.Range.Start.Line)...)
			continue
		}
		p, bad := entry(b)
		diags = append(diags, bad...)
		f.Plugins = append(f.Plugins, p)
	}
	return f, diags
}

func entry(b *hcl.Block) (Plugin, hcl.Diagnostics) {
	p := Plugin{Name: b.Labels[0], Range: b.DefRange}
	content, diags := b.Body.Content(entrySchema)
	for name, to := range map[string]*string{
		"source": &p.Source, "version": &p.Version, "constraint": &p.Constraint, "digest": &p.Digest, "signer": &p.Signer,
	} {
		if attr := content.Attributes[name]; attr != nil {
			text, bad := literal.Text(attr.Expr)
			*to, diags = text, append(diags, bad...)
		}
	}
	if attr := content.Attributes["protocol"]; attr != nil {
		n, bad := literal.Number(attr.Expr)
		p.Protocol, diags = n, append(diags, bad...)
	}
	if attr := content.Attributes["programs"]; attr != nil {
		programs, bad := literal.Texts(attr.Expr)
		p.Programs, diags = programs, append(diags, bad...)
	}
	return p, diags
}
