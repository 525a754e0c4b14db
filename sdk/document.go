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
