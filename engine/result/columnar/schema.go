package columnar

import "github.com/parquet-go/parquet-go"

// message is the root of a schema. A parquet.Group alone sorts its fields by name.
type message struct {
	parquet.Group
	fields []parquet.Field
}

func (m message) Fields() []parquet.Field { return m.fields }

func newMessage(columns []Column) message {
	m := message{Group: parquet.Group{}}
	for _, c := range columns {
		m.Group[c.Name] = c.node()
	}
	named := map[string]parquet.Field{}
	for _, f := range m.Group.Fields() {
		named[f.Name()] = f
	}
	for _, c := range columns {
		m.fields = append(m.fields, named[c.Name])
	}
	return m
}

func (c Column) node() parquet.Node {
	node := parquet.String()
	switch c.Kind {
	case Truth:
		node = parquet.Leaf(parquet.BooleanType)
	case Whole:
		node = parquet.Leaf(parquet.Int64Type)
	case Number:
		node = parquet.Leaf(parquet.DoubleType)
	}
	if c.Optional {
		node = parquet.Optional(node)
	}
	return node
}
