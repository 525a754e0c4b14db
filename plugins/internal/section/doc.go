// Package section finds the headings of Markdown, and the blocks between them.
//
// A section is a heading with what follows, up to the next heading of any level.
// What stands before the first heading, front matter included, goes with the first
// section. Tables, fenced and indented code, lists, quotes and paragraphs are
// blocks.
//
// Headings are ATX (# Title) and setext (underlined with === or ---). What looks
// like one in fenced code, comments, <pre>, <script>, <style> or front matter (YAML
// between ---, TOML between +++) is none. This reads the structure of CommonMark,
// line by line, not its inline marks; links and images are text. Headings inside
// lists and quotes do not count. It is linear in the length of the text.
package section
