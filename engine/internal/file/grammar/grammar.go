package grammar

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/sdk"
)

// Block describes a block of the format: what it may contain and what that means. The loader
// accepts only what the descriptions name.
type Block struct {
	Type, Doc string
	Labelled  bool     // it has a name
	Kind      sdk.Kind // kind of the stage that the block uses; the block may then have config blocks
	Arguments []Argument
	Entries   Entry   // of arguments with any name, whose values are objects
	Blocks    []Block // nested blocks, without config blocks
}

// Entry describes the objects that are the values of a block's arguments.
type Entry []Argument

// Names returns the names of an object's values.
func (e Entry) Names() []string { return Block{Arguments: e}.Names() }

// Argument is an argument of a block.
type Argument struct {
	sdk.Argument
	Rule     rule.Kind // the value is a rule of this kind; 0: it is not a rule
	Block    string    // the value names a block of this type, as in knowledge.x; empty: it names none
	Keywords []string  // the value is one of these words, without quotes; nil: it is an expression
}

// Blocks describes the top-level blocks of a file.
func Blocks() []Block { return format }

// Inner returns the description of a nested block.
func (b Block) Inner(typ string) (Block, bool) {
	return find(b.Blocks, typ)
}

func find(all []Block, typ string) (Block, bool) {
	i := slices.IndexFunc(all, func(b Block) bool { return b.Type == typ })
	if i < 0 {
		return Block{}, false
	}
	return all[i], true
}

// Described returns the block at a path of types. It must exist.
func Described(path ...string) Block {
	b := Block{Blocks: format}
	for _, typ := range path {
		b, _ = b.Inner(typ)
	}
	return b
}

// Names returns the names of the arguments.
func (b Block) Names() []string {
	var all []string
	for _, a := range b.Arguments {
		all = append(all, a.Name)
	}
	return all
}

// Schema returns the HCL schema of the block.
func (b Block) Schema() *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, name := range b.Names() {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name})
	}
	for _, inner := range b.Blocks {
		header := hcl.BlockHeaderSchema{Type: inner.Type}
		if inner.Labelled {
			header.LabelNames = []string{"name"}
		}
		s.Blocks = append(s.Blocks, header)
	}
	return s
}

// with returns the block with further arguments.
func (b Block) with(further ...Argument) Block {
	b.Arguments = slices.Concat(b.Arguments, further)
	return b
}
