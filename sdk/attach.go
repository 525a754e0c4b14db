package sdk

import "context"

// Attaches declares that a store can serve a collection that somebody else makes: where its
// string argument of that name is given, and not empty, what it opens is an Attacher. The
// knowledge of a pipeline file then needs no source; of any other store it is refused without one.
func Attaches(argument string) Option { return func(s *Stage) { s.Attaches = argument } }

// Attacher is a Store that serves a collection that somebody else makes, to be read: an
// attached collection. What Store promises of Search, Get and Scan holds for it, with these
// differences:
//
//   - An Entry has no Hash. Keys that are not strings are ids as text, such as "17".
//   - A row that can be no entry, since it has no id, is left out.
//   - Hits.Dense has the cosine, whatever the server measures by. Where the server's metric depends on
//     the lengths of vectors, it may choose other entries than those with the best cosines. The first rows
//     do not show the lengths of all: Search.Norm is from many more.
//   - Hits.Lexical has the server's own score, greater for better. Where Attached.Lexical is
//     false, it is nil in a hybrid search, and a lexical search is refused.
//   - Rows that the owner writes meanwhile show when the server shows them.
type Attacher interface {
	Store
	// Attach opens the collection that the config names and says what it found there. It writes
	// nothing, there or anywhere. Search, Get and Scan take Attached.Name from then on, and
	// refuse it before; Put, Delete, Commit and Drop refuse it with an error made by Invalid.
	// Attach may be called again, also while searches run, to look for changes: searches that
	// begin afterwards get what it found. Where it returns another Name, those that it returned
	// before are served on. An error says what the owner of the collection, or of
	// the file, can do about it; an ArgumentError points at the argument in the file.
	Attach(ctx context.Context) (Attached, error)
}

// Attached is what an Attacher found: a collection that somebody else makes.
type Attached struct {
	Name string // by which Search, Get and Scan know it
	// ID is that of what stands behind the name: another one after the swap of an alias, or where the
	// collection was made anew under its name. The rows may change under one ID.
	ID        string
	Entries   int  // as the server counts, deleted ones perhaps included
	Dimension int  // of the vectors
	Lexical   bool // it can be searched by words; else a hybrid search is dense, and a lexical one is refused
	Labels    bool // entries have labels
	Fields    []AttachedField
	Notes     []string // what it goes without and why, and how scores are read, for people: a sentence each
}

// AttachedField says where a part of the entries comes from, for people.
type AttachedField struct {
	Part  string // "id", "text", "label", "context", "vector", "meta", or "sparse", by which words are searched
	Field string // of the collection
	Why   string // "named in the file", "the only vector field"
}
