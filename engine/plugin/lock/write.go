package lock

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/output"
)

const head = "# Written by racflow plugin init. Commit it together with the pipeline file.\n"

// Bytes is the lock as it is written.
func (f *File) Bytes() []byte {
	out := hclwrite.NewEmptyFile()
	out.Body().AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte(head)}})
	plugins := slices.SortedFunc(slices.Values(f.Plugins), func(a, b Plugin) int { return strings.Compare(a.Name, b.Name) })
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
		programs := map[string]cty.Value{} // by cty in the order of their names
		for platform, hash := range p.Programs {
			programs[platform] = cty.StringVal(hash)
		}
		b.SetAttributeValue("programs", cty.ObjectVal(programs))
	}
	return hclwrite.Format(out.Bytes())
}

// Write replaces the lock at a path as a whole, unless it is the same already.
func (f *File) Write(path string) error {
	content := f.Bytes()
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
		return nil
	}
	out, err := output.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // which Commit has done, where nothing failed
	if _, err := out.Write(content); err != nil {
		return err
	}
	return out.Commit()
}
