package grammar

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/sdk"
)

// Block describes a block of the format: what it holds, and what that means. The
// loader accepts what the descriptions name, and nothing else.
type Block struct {
	Type, Doc string
	Labelled  bool     // it has a name
	Kind      sdk.Kind // of the stage that it uses; it may then have config blocks
	Arguments []Argument
	Entries   Entry   // what its arguments hold, where they have any name and are objects
	Blocks    []Block // that may stand in it, config blocks left out
}

// Entry describes the objects that a block's arguments are, whatever their names.
type Entry []Argument

// Names returns the names of the values in an object.
func (e Entry) Names() []string { return Block{Arguments: e}.Names() }

// Argument is an argument of a block.
type Argument struct {
	sdk.Argument
	Rule     rule.Kind // its value is a rule of this kind; 0: it is none
	Block    string    // its value names a block of this type, as in knowledge.x; empty: it does not
	Keywords []string  // its value is one of these, without quotes; nil: it is an expression
}

// Blocks describes the blocks at the top of a file.
func Blocks() []Block { return format }

// Inner returns the description of a block that may stand in this one.
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

// Described returns the block that a path of types leads to. It must exist.
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

// Schema returns the block as HCL reads it.
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
