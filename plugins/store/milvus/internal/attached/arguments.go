package attached

// Arguments are the arguments that name a collection which somebody else makes.
type Arguments struct {
	Collection string   `config:"collection" example:"docs" doc:"A collection that somebody else makes, or an alias of one: it is read and never written. The knowledge then has no source."`
	Partitions []string `config:"partitions" requires:"collection" doc:"Partitions of that collection to read; all if not given."`
	Fields     Fields   `config:"fields" requires:"collection" doc:"Where the parts of its entries are. What is not given is found by type and usual names; plan shows what was found."`
	Load       bool     `config:"load" requires:"collection" affects_output:"false" doc:"Have the server load that collection into its memory if it is not there; else that is left to its owner."`
}

// Fields are the places of an entry's parts: the name of a field, a key of the
// dynamic field, or a member such as metadata["lang"].
type Fields struct {
	ID      string   `config:"id" doc:"What tells entries apart: the primary key if not given."`
	Text    string   `config:"text" doc:"The text."`
	Vector  string   `config:"vector" doc:"The vector, of floats."`
	Label   string   `config:"label" doc:"The label."`
	Context string   `config:"context" doc:"What stands before the text, such as a title."`
	Sparse  string   `config:"sparse" doc:"What the server's BM25 function makes of the text; searches by words use it."`
	Meta    []string `config:"meta" doc:"The metadata that filters and rules see; of a JSON field all its members. All scalar fields and members if not given."`
}
