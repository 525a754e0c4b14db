// Package document reads documents from files: a folder, a glob or one file.
//
// A document's id is its path below the folder, with slashes: the same wherever the
// folder lies. List returns the documents with a hash of each file, without parsing
// them. Read makes the text of one: Markdown and text stay as they are, HTML becomes
// its visible text with headings, lists, tables and code as Markdown. Texts are
// valid UTF-8 and not longer than the limit in bytes.
//
// A file that cannot be used (binary, too large, not permitted) has an error of its own,
// and the others are read. Hidden files and folders are skipped, and so are symbolic
// links that lead outside the folder; links to folders are not followed. Where the path
// names one file, hidden or not, nothing else of its folder is read.
//
// A PDF's words and lines are derived from the positions that its text operators give
// them; a form feed separates pages. It is read in a process of its own, for at most 30
// seconds and (on Linux) in at most 1 GB, since a few hostile bytes can make the reader
// ask for all memory or never end. Forms and rotated text may come out in an odd order;
// text in pictures does not come out.
//
// The package knows nothing of chunks or entries.
package document
