package sdk

// Document is a text as a source has it, before it is cut into chunks.
type Document struct {
	ID   string
	Text string // valid UTF-8
	Meta Meta   // what the source knows: "path", "title", "format", ...
}

// Chunk is a part of a document: the bytes from Start up to End of its text.
type Chunk struct {
	Start, End int
	Meta       Meta // what the chunker knows: "headings", "declaration", ...
}

// Passage is a chunk where it stands in its document. A document that is not cut
// is one passage.
type Passage struct {
	Document *Document // the same for all of its passages
	Chunk
}

// Text is the passage's own text.
func (p Passage) Text() string { return p.Document.Text[p.Start:p.End] }

// Addition is what an enricher has found for a passage. Either part may be empty.
type Addition struct {
	// Context says where the passage stands and what it is about. The engine makes
	// one line of it.
	Context string
	// Terms are what people may search for who want this passage: keywords,
	// questions. The engine makes one line of each.
	Terms []string
}
