// Package page writes self-contained HTML pages: the frame that the report of a run and the
// review of its answers share.
//
// A page is one file that asks nobody for anything. Its Content-Security-Policy allows the
// style and the scripts that stand in it, by their hashes, and nothing else: no image, no
// font, no frame, no connection. Only a page that is Live may call the server that it came
// from. Data stands in the page as JSON, which is never markup: a large block is compressed,
// and unpacked when a module asks for it.
//
// The modules in assets are written by hand, for today's browsers, without a framework. They
// show a text by textContent alone, which Trusted Types enforce: an item may hold markup,
// escape sequences or characters that turn the direction of writing, and shows as what it is.
//
//	base.js    elements, texts made visible, data, theme, what a screen reader hears
//	table.js   tables that sort, search and turn pages, and whose rows open
//	chart.js   charts, each with its figures as a table
//	item.js    an item with what made its answer: package explain's Item as JSON
//
// Colours, spaces and components are in page.css, for light and dark, wide and narrow. The
// same Page has the same bytes.
//
// report.go fills one with a run, or the comparison of two; review.go serves one on which people decide;
// docs.go shows an OpenAPI description by a library, the one page whose policy allows styles that scripts make.
package page
