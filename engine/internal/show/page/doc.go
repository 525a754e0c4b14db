// Package page writes self-contained HTML pages: the frame that the report of a run and the
// review of its answers share.
//
// A page is one file that loads nothing from elsewhere. Its Content-Security-Policy allows only the
// style and the scripts inside it, by their hashes: no image, no font, no frame, no connection.
// Only a Live page may call the server that it came from. The page's data is JSON, which is never
// interpreted as markup. A large block is compressed, and unpacked when a module asks for it.
//
// The modules in assets are written by hand, for today's browsers, without a framework. They show
// texts only by textContent, which Trusted Types enforce. So an item with markup, escape sequences
// or characters that change the direction of writing is shown unchanged.
//
//	base.js    elements, invisible characters, data, theme, messages for screen readers
//	table.js   tables that sort, search and turn pages, and whose rows open
//	chart.js   charts, each with its figures as a table
//	item.js    an item with the details of its answer: package explain's Item as JSON
//
// Colours, spaces and components are in page.css, for light and dark, wide and narrow. The
// same Page always gives the same bytes.
//
// report.go makes the page of a run; review.go serves the page for people's decisions; docs.go
// shows an OpenAPI description with a library; only this page's policy allows styles from scripts.
package page
