// Package document reads documents from files: a folder, a glob or one file.
//
// A document's id is its path below the folder, with slashes, so it does not depend on where the folder is. List
// returns the documents with a hash of each file, without parsing them. Read returns the text of one document: Markdown
// and plain text stay as they are, other formats become Markdown. Texts are valid UTF-8 and not longer than the limit
// in bytes. Content that a reader does not read, such as attachments, is counted (unread.go).
//
// Each format has its file here: HTML, PDF, office (docx, pptx, xlsx), e-books, notebooks and mail. Hostile PDF, office
// files and e-books can break their readers, so these run in a separate process (apart.go). PDFium reads PDF
// (pdfium.go). Tables of contents are removed (contents.go). The error of an unsupported format says in which format to
// save the file.
//
// An unusable file (binary, too large, not permitted) fails without affecting the others. Hidden files and folders are
// skipped, and so are symbolic links that lead outside the folder; links to folders are not followed. If the path names
// one file, hidden or not, nothing else in its folder is read.
//
// The package does not know chunks or entries.
package document
