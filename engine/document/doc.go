// Package document reads documents from files: a folder, a glob or one file.
//
// A document is named by its path below the folder, with slashes, so that its
// name is the same wherever the folder lies and whenever it is read. List tells
// which documents there are, and a hash of each file, without looking into them;
// Read makes the text of one: Markdown and text stay as they are, HTML becomes
// its visible text with headings, lists, tables and code as Markdown. Texts are
// valid UTF-8 and not longer than the limit in bytes.
//
// A file that cannot be used (binary, too large, not permitted) is a fault of
// that file alone. Hidden files and folders are passed over, and so is what a
// symbolic link leads to outside the folder; links to folders are not followed.
// A path of one file is that file under the name that it has in its folder, hidden
// or not, and nothing else of the folder is looked at.
//
// A PDF's words and lines are put together from where its text operators place
// them; between pages stands a form feed. It is read in a process of its own, for
// at most 30 seconds and (on Linux) in at most 1 GB: a few bytes of a hostile one
// are enough to make the reader ask for all memory there is, or never end.
// Forms and rotated text may come out in an odd order, pictures of text do not.
// The package knows nothing of chunks or entries.
package document
