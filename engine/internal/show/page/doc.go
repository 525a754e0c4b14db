// Package page writes self-contained HTML pages: the frame that the report of a run and the
// review of its answers share.
//
// A page is one file that loads nothing from elsewhere. Its Content-Security-Policy allows only
// the style and the scripts inside it, by their hashes: no image, no font, no frame, no
// connection. Only a page that is Live may call the server that it came from. Its data is JSON,
// which is never markup: a large block is compressed, and unpacked when a module asks for
// it.
//
// The modules in assets are written by hand, for today's browsers, without a framework. They
// show texts only by textContent, which Trusted Types enforce: an item may hold markup,
// escape sequences or characters that change the direction of writing, and is shown as it is.
//
//	base.js    elements, texts made visible, data, theme, what a screen reader hears
//	table.js   tables that sort, search and turn pages, and whose rows open
//	chart.js   charts, each with its figures as a table
//	item.js    an item with what made its answer: package explain's Item as JSON
//
// Colours, spaces and components are in page.css, for light and dark, wide and narrow. The
// same Page always gives the same bytes.
//
// report.go makes the page of a run; review.go serves the page for people's decisions; docs.go
// shows an OpenAPI description with a library: only its policy allows styles that scripts make.
package page
