package attached

import "github.com/racflow/racflow/plugins/store/milvus/internal/mapping"

// Arguments are the arguments that name a collection which somebody else makes.
type Arguments struct {
	Collection string         `config:"collection" example:"docs" doc:"A collection that somebody else makes, or an alias of one: it is read and never written. The knowledge then has no source."`
	Partitions []string       `config:"partitions" requires:"collection" doc:"Partitions of that collection to read; all if not given."`
	Fields     mapping.Fields `config:"fields" requires:"collection" doc:"Where the parts of its entries are. What is not given is found by type and usual names; plan shows what was found."`
	Load       bool           `config:"load" requires:"collection" affects_output:"false" doc:"Have the server load that collection into its memory if it is not there; else that is left to its owner."`
}
