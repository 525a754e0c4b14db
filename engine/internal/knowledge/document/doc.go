// Package document reads documents from files: a folder, a glob or one file.
//
// A document's id is its path below the folder, with slashes: the same wherever the
// folder lies. List returns the documents with a hash of each file, without parsing
// them. Read makes the text of one: Markdown and text stay as they are, what other
// formats hold becomes Markdown. Texts are valid UTF-8 and not longer than the limit in bytes.
//
// Each format has its file here: HTML, PDF, office (docx, pptx, xlsx), notebooks and
// mail. PDF and office files, whose readers a hostile file can break, are read in a process
// of their own (apart.go). Formats that none of them reads are an error that says what
// to save the file as.
//
// A file that cannot be used (binary, too large, not permitted) has an error of its own,
// and the others are read. Hidden files and folders are skipped, and so are symbolic
// links that lead outside the folder; links to folders are not followed. Where the path
// names one file, hidden or not, nothing else of its folder is read.
//
// The package knows nothing of chunks or entries.
package document
