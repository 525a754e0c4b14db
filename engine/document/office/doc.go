// Package office reads the text of office files as Markdown: Word documents (docx), slides
// (pptx) and workbooks (xlsx).
//
// Of a Word document come headings, lists with their numbers, tables, footnotes and endnotes at
// the end; of tracked changes what was inserted, not what was deleted. Headers, footers,
// comments and the table of contents are left out. Each slide has a heading with its number and
// title, then its text, tables and speaker notes. Each sheet has its name as a heading, and
// its rows as a table whose header is the first row with more than one cell; cells show what
// their number format shows. Hidden text, slides and sheets are left out, and so are pictures.
//
// docx and pptx are zip files of XML and are read in one pass, part by part, with bounds on
// what is unpacked, on elements and on their depth; custom entities are an error. xlsx is read
// by the excelize library. Call the readers through package apart.
package office
