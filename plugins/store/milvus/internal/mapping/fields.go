package mapping

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
