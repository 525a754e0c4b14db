// Package section finds the headings of Markdown and the blocks between them, for
// chunkers, and for whatever says where in a document a passage stands.
//
// A section is a heading with the blocks that follow, up to the next heading of any
// level. What stands before the first heading, front matter included, belongs to the
// first section. Paragraphs, quotes, lists, tables, HTML, fenced and indented code are
// blocks.
//
// The goldmark library reads the blocks of CommonMark; the package adds tables with a |
// in the row below their head, and front matter (YAML between ---, TOML between +++),
// in which nothing is a heading. Headings inside lists and quotes do not count, and
// titles keep their inline marks: links, images and emphasis stay text. Reading takes
// time linear in the length of the text.
package section
