package sdk

// Document is a text as a source has it, before it is cut into chunks.
type Document struct {
	ID   string
	Text string // valid UTF-8
	Meta Meta   // what the source knows: "path", "title", "format", ...
}

// Span is the part of a text from byte Start up to End.
type Span struct{ Start, End int }

// Chunk is a part of a document: the bytes from Start up to End of its text.
type Chunk struct {
	Start, End int
	// Header is a part of the document before Start that the chunk repeats, since it
	// cannot be understood without it: the header rows of a table that was cut. Zero: none.
	Header Span `json:",omitzero"`
	Meta   Meta // what the chunker knows: "headings", "declaration", ...
}

// In is the text of a chunk in the text of its document: its header, then its own part.
func (c Chunk) In(document string) string {
	return document[c.Header.Start:c.Header.End] + document[c.Start:c.End]
}

// Passage is a chunk with its document. A document that is not cut is one passage.
type Passage struct {
	Document *Document // the same for all of its passages
	Chunk
}

// Text is the passage's text, with its header.
func (p Passage) Text() string { return p.In(p.Document.Text) }

// Addition is what an enricher adds to a passage. Either part may be empty.
type Addition struct {
	// Context places the passage in its document. The engine makes one line of it.
	Context string
	// Terms are keywords or questions by which people may search for the passage. The
	// engine makes one line of each.
	Terms []string
}
