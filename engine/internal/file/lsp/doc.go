// Package lsp is a language server for pipeline files: diagnostics while somebody
// types, completion, hover, definitions and formatting, over the Language Server
// Protocol on a pair of streams.
//
// Everything it knows is known elsewhere: diagnostics are those of pipeline.Load over
// the editor's text, blocks and their arguments come from grammar.Blocks, arguments
// of stages from sdk.Argument, the names in rules from package rule. A text that does
// not parse has no diagnostics beyond that, but the rest still works: blocks and
// arguments are found by tokens (outline.go), which unclosed texts and missing braces
// do not confuse for longer than to the end of the line or the next block at the top.
//
// The server starts no program. Of third parties' plugins it knows what Catalog.Uses
// names: of those that the file requires what came with them when they were installed, of
// those that are being developed what they have said when they were asked, by racflow
// validate for example. A stage of another plugin is a diagnostic that says so.
//
// Positions are counted in UTF-16 code units, as the protocol has it; everything
// inside is in bytes. A changed text is checked when nothing was typed for 100 ms, an
// opened and a saved one at once; a newer text ends the check of an older one. No
// secret is shown: values are those that the loader shows, without what it knows to
// be secret.
//
// The protocol's transport is github.com/creachadair/jrpc2 (BSD-3-Clause, two modules,
// kept up), and server.go has the few messages. go.lsp.dev/protocol, which has all of
// them, is of 2022 and brings a logger and a JSON library with it.
package lsp
