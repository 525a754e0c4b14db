package require

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/memory"
	"github.com/racflow/racflow/engine/internal/process/program"
)

// Block is the type of the top-level block that holds requirements.
const Block = "required_plugins"

// Plugin is a plugin that a file requires.
type Plugin struct {
	Name string
	// Source is where the plugin comes from: registry/repository, a folder that is an OCI layout ("./folder" or
	// "oci:./folder", relative to the file), or the https address of an archive. Empty: the plugin is under
	// development, and the entry only lists what it may access.
	Source  string
	Version string            // the constraint, such as "~> 1.2"; empty: any
	SHA256  map[string]string // of an archive, by os/arch
	Allow   program.Allow

	Range        hcl.Range // of the name
	SourceRange  hcl.Range // of the value, otherwise of the name
	VersionRange hcl.Range
}

// All reads only the requirements of a pipeline file. It reports errors in the block, and
// in the syntax of the file.
func All(path string, src []byte) ([]Plugin, hcl.Diagnostics) {
	f, diags := bounded.Parse(src, path)
	if diags.HasErrors() {
		return nil, diags
	}
	content, _, _ := f.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: Block}}})
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, bounded.ErrorAt(bounded.Top(path).Range(), "Cannot find the file's folder", "%v.", err)
	}
	return Read(content.Blocks, dir)
}

// Read reads the requirements from the blocks of a file in folder dir. It allows at most one such block.
func Read(blocks hcl.Blocks, dir string) (all []Plugin, diags hcl.Diagnostics) {
	for i, b := range blocks {
		if i > 0 {
			diags = append(diags, bounded.ErrorAt(b.DefRange, "Duplicate block", "A file has one %s block; there is one on line %d already.", Block, blocks[0].DefRange.Start.Line)...)
			continue
		}
		attrs, bad := b.Body.JustAttributes()
		diags = append(diags, bad...)
		for _, attr := range attrs {
			r, bad := read(attr, dir)
			diags = append(diags, bad...)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Plugin) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return all, diags
}

// read reads one entry.
func read(attr *hcl.Attribute, dir string) (Plugin, hcl.Diagnostics) {
	r := Plugin{Name: attr.Name, Range: attr.NameRange, SourceRange: attr.NameRange, VersionRange: attr.NameRange}
	items, diags := entries(attr.Expr)
	if !hclsyntax.ValidIdentifier(attr.Name) || strings.HasSuffix(attr.Name, ".json") {
		diags = append(diags, bounded.ErrorAt(attr.NameRange, "Invalid name", "A plugin's name has letters, digits, - and _.")...)
	}
	known := grammar.Described(Block).Entries
	for _, item := range items {
		var bad hcl.Diagnostics
		switch value := item.value; item.name {
		case "source":
			bad = literal(value, &r.Source)
			r.SourceRange = value.Range()
			if len(bad) == 0 && strings.TrimSpace(r.Source) == "" {
				bad = bounded.ErrorAt(r.SourceRange, "Value out of range", "The source is empty. Name a repository, such as \"ghcr.io/acme/racflow-plugin-mine\", or leave it out while the plugin is being developed.")
			}
		case "version":
			bad = literal(value, &r.Version)
			r.VersionRange = value.Range()
		case "sha256":
			bad = literal(value, &r.SHA256)
		case "network":
			r.Allow.Hosts, bad = hosts(value)
		case "read":
			r.Allow.Read, bad = paths(value, dir)
		case "write":
			r.Allow.Write, bad = paths(value, dir)
		case "disk":
			r.Allow.Disk, bad = size(value)
		case "confined":
			var confined bool
			bad = literal(value, &confined)
			r.Allow.Unconfined = len(bad) == 0 && !confined
		default:
			bad = bounded.ErrorAt(item.at, "Unsupported argument", "An entry of %s has no argument %q.%s", Block, item.name, rule.DidYouMean(item.name, known.Names()))
		}
		diags = append(diags, bad...)
	}
	if r.Source == "" && !diags.HasErrors() && (r.Version != "" || r.SHA256 != nil) {
		diags = append(diags, bounded.ErrorAt(r.Range, "Missing argument", "Say where the plugin %q comes from: source = \"ghcr.io/acme/racflow-plugin-%s\". Without a source, an entry says only what a plugin that is being developed may reach.", r.Name, r.Name)...)
	}
	return r, diags
}

// argument is an argument of an entry.
type argument struct {
	name  string
	at    hcl.Range // of the name
	value hcl.Expression
}

// entries reads the arguments of an entry, in the file's order. It refuses duplicate names.
func entries(e hcl.Expression) (all []argument, diags hcl.Diagnostics) {
	pairs, diags := hcl.ExprMap(e)
	for _, pair := range pairs {
		a := argument{at: pair.Key.Range(), value: pair.Value}
		bad := literal(pair.Key, &a.name)
		if slices.ContainsFunc(all, func(before argument) bool { return before.name == a.name }) {
			bad = append(bad, bounded.ErrorAt(a.at, "Duplicate name", "%s stands here twice. Remove one of them.", a.name)...)
		}
		if diags = append(diags, bad...); !bad.HasErrors() {
			all = append(all, a)
		}
	}
	return all, diags
}

// literal reads a value without variables and function calls: requirements are read before anything else in the file.
func literal(e hcl.Expression, to any) hcl.Diagnostics {
	diags := gohcl.DecodeExpression(e, nil, to)
	return diags[:min(len(diags), 1)] // the others follow from the first
}

// texts reads a list of texts, each with its place.
func texts(e hcl.Expression) (all []string, places []hcl.Range, diags hcl.Diagnostics) {
	parts, diags := hcl.ExprList(e)
	for _, part := range parts {
		var text string
		diags = append(diags, literal(part, &text)...)
		all, places = append(all, text), append(places, part.Range())
	}
	return all, places, diags
}

// hosts reads hosts with their ports.
func hosts(e hcl.Expression) ([]string, hcl.Diagnostics) {
	all, places, diags := texts(e)
	for i, text := range all {
		if _, err := confine.ParseHost(text); err != nil && !diags.HasErrors() {
			diags = append(diags, bounded.ErrorAt(places[i], "Value out of range", "%q is no host with a port. Write it as in \"api.example.com:443\".", text)...)
		}
	}
	return all, diags
}

// size reads an amount of bytes.
func size(e hcl.Expression) (int64, hcl.Diagnostics) {
	var text string
	diags := literal(e, &text)
	n, err := memory.ParseSize(text)
	if err != nil && !diags.HasErrors() {
		diags = bounded.ErrorAt(e.Range(), "Value out of range", "%v.", err)
	}
	return n, diags
}

// paths reads files and folders, and resolves them relative to dir.
func paths(e hcl.Expression, dir string) ([]string, hcl.Diagnostics) {
	all, places, diags := texts(e)
	for i, text := range all {
		switch {
		case strings.TrimSpace(text) == "" && !diags.HasErrors():
			diags = append(diags, bounded.ErrorAt(places[i], "Value out of range", "The path is empty. Name a file or folder, relative to this file.")...)
		case !filepath.IsAbs(text):
			all[i] = filepath.Join(dir, text)
		}
	}
	return all, diags
}
