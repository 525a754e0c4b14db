// Package units reads what the sources of a knowledge are made of, and compares it with what a
// store holds of them.
//
// Rows may come from several files, in none of which an id stands that another has. What people
// have decided (package reviewed) comes last: rows of its own, and changes of rows of the other
// files, which keep their ids. Metadata say who decided, and when.
//
// A unit is a row, or a document of a folder. It is redone as a whole, and is one
// entry unless the block has a chunker. Chunks are named after their document and
// their number in it; their hash is that of the document's content with the number of
// its chunks. A document is unchanged if the store has that many of them, all with its
// hash, so that it is recognised without being cut or even looked into, and redone
// where a kill or a refusal left out a part. The text of an entry is the header of its
// chunk, where it has one, and the chunk; its lines, pages and bytes are those of the chunk.
//
// Texts of documents are read when they are wanted, and so are rows that are cut:
// their file is read a second time. Rows that are not cut, and standard input, are
// held.
//
// It makes no entries of its own accord and writes nothing.
package units
