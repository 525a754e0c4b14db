// Package lsp is a language server for pipeline files: diagnostics while somebody
// types, completion, hover, definitions and formatting, over the Language Server
// Protocol on a pair of streams.
//
// It gets all its knowledge elsewhere: diagnostics from pipeline.Load on the editor's
// text, blocks and their arguments from grammar.Blocks, arguments of stages from
// sdk.Argument, names in rules from package rule. A text that does not parse has only
// syntax diagnostics, but everything else still works: outline.go finds blocks and
// arguments by tokens. An unclosed text confuses it at most to the end of the line, a
// missing brace at most to the next top-level block; of a heredoc in such a text it knows
// nothing.
//
// The server starts no program. It knows the third-party stages that Catalog.Uses
// names: for required plugins the descriptions installed with them, for plugins in
// development what they answered earlier, to racflow validate for example. A stage of
// another plugin gets a diagnostic that says so.
//
// Positions are counted in UTF-16 code units, as in the protocol; everything inside
// is in bytes. The server checks a text when it is opened, changed or saved, which takes some
// milliseconds. It shows no secret: it shows values as the loader does, without known
// secrets.
//
// The transport is github.com/creachadair/jrpc2 (BSD-3-Clause, two modules,
// maintained), and server.go has the few messages needed. go.lsp.dev/protocol has all
// messages, but is from 2022 and brings a logger and a JSON library with it.
package lsp
