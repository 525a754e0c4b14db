// Package lsp is a language server for pipeline files: diagnostics during typing, completion,
// hover, definitions and formatting, over the Language Server Protocol on a pair of streams.
//
// The package gets all facts from other packages: diagnostics from pipeline.Load on the editor's
// text, blocks and their arguments from grammar.Blocks, arguments of stages from sdk.Argument,
// names in rules from package rule. A text that does not parse has only syntax diagnostics, but
// everything else still works: outline.go finds blocks and arguments by tokens. An unclosed text
// affects at most the rest of the line, and a missing brace at most the lines up to the next
// top-level block. A heredoc in such a file is not recognised.
//
// The server starts no program. It knows the third-party stages that Catalog.Uses names.
// Descriptions of required plugins are installed with them; plugins in development described
// themselves earlier, for example to racflow validate. A stage of another plugin gets a diagnostic
// that says so.
//
// The protocol counts positions in UTF-16 code units; the package uses bytes internally. The server
// checks a text when it is opened, changed or saved, which takes some milliseconds. It shows values
// as the loader does, without known secrets.
//
// The transport is github.com/creachadair/jrpc2 (BSD-3-Clause, two modules,
// maintained), and server.go has the few messages needed. go.lsp.dev/protocol has all
// messages, but is from 2022 and brings a logger and a JSON library with it.
package lsp
