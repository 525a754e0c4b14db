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

// Passage is a chunk with its document. A document that is not cut is one passage.
type Passage struct {
	Document *Document // the same for all of its passages
	Chunk
}

// Text is the passage's own text.
func (p Passage) Text() string { return p.Document.Text[p.Start:p.End] }

// Addition is what an enricher adds to a passage. Either part may be empty.
type Addition struct {
	// Context places the passage in its document. The engine makes one line of it.
	Context string
	// Terms are keywords or questions by which people may search for the passage. The
	// engine makes one line of each.
	Terms []string
}
