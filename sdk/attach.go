package sdk

import "context"

// Attaches declares that a store can serve a collection that somebody else makes: where its
// string argument of that name is given, and not empty, what it opens is an Attacher. The
// knowledge of a pipeline file then needs no source; of any other store it is refused without one.
func Attaches(argument string) Option { return func(s *Stage) { s.Attaches = argument } }

// Attacher is a Store that serves a collection that somebody else makes, to be read: an
// attached collection.
//
// The rules of Store hold for it with these differences. Ids are unique and not empty, as
// they are elsewhere; whoever has keys of another type writes them as text, the same text for the same key
// each time. An Entry has no Hash. Hits.Dense has the cosine, whatever the server measures by, and
// an entry without a vector, or with one that is all zero, has the cosine 0 or is not
// found. Hits.Lexical has the server's own score, greater for better; where
// Attached.Lexical is false it is nil in a hybrid search, and a lexical search is refused. Rows that the owner writes
// meanwhile appear in searches when the server shows them; a Scan need not have them.
// A row that is no entry, for its text is null, say, is left out, and Notes say so.
type Attacher interface {
	Store
	// Attach opens the collection that the config names and says what it found there. It writes
	// nothing, there or anywhere. Search, Get and Scan take Attached.Name for it from then on;
	// Put, Delete, Commit and Drop refuse that name with an error made by Invalid. Without
	// a call they refuse it, too. It may be called again, to look for changes, while
	// searches run; these get what the latest call found. An error that the owner of the
	// collection or of the file can do something about says what.
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
