// Package document reads documents from files: a folder, a glob or one file.
//
// A document's id is its path below the folder, with slashes: the same wherever the folder lies.
// List returns the documents with a hash of each file, without parsing them. Read returns the text
// of one document: Markdown and plain text stay as they are, other formats become Markdown. Texts
// are valid UTF-8 and not longer than the limit in bytes. What a document holds and its reader does
// not read, such as attachments, is counted (unread.go).
//
// Each format has its file here: HTML, PDF, office (docx, pptx, xlsx), e-books, notebooks and mail.
// Hostile PDF, office files and e-books can break their readers, which therefore run in a process of
// their own (apart.go). PDF are read by PDFium (pdfium.go). Tables of contents are left out (contents.go). The error of an unsupported format says what to save the file as.
//
// An unusable file (binary, too large, not permitted) fails alone. Hidden files and folders are
// skipped, and so are symbolic links that lead outside the folder; links to folders are not
// followed. Where the path names one file, hidden or not, nothing else of its folder is read.
//
// The package knows nothing of chunks or entries.
package document
