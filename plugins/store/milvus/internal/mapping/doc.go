// Package mapping says which field of a collection that somebody else makes holds
// which part of an entry, makes entries of rows, and translates filters of
// entries into expressions over those fields.
//
// # Where the parts of an entry come from
//
// The id is the primary key; a whole number is written in decimal. The vector is the
// only field of float vectors. Text, label and context are fields, or members of
// JSON fields and of the dynamic field, with usual names; the first rows show which
// members there are. All else that is a string, a number or a bool is metadata: scalar
// fields by their names, members of JSON fields and of the dynamic field by theirs. Where two have
// one name, a scalar field comes first, then JSON fields in the order of the
// schema, then the dynamic field. Members whose names begin with an underscore, which
// frameworks keep their own books in, are left out unless they are named.
//
// In the file, a place is written as the name of a field, as a key of the dynamic
// field, or as a member: metadata["lang"]. NULL is no text, no label, or metadata
// that is missing.
//
// # Filters
//
// A filter is translated where engines agree on its meaning, else to something
// weaker, and what comes back is checked. A search then reads more rows, up to 16,384.
package mapping
