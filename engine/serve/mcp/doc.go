// Package mcp offers pipelines to language models and agents, as tools of the Model Context
// Protocol: over streamable HTTP behind a server's guard, or on standard input and output.
//
// Each pipeline is a tool that takes a text and returns the result, once as text for a model to
// read and once as data (structuredContent). Its description says what it answers with. An item
// that fails is a result that says so (isError), so that a model can go on; what stages do is
// told as progress to clients that ask for it.
//
// Sessions are not kept: each request stands for itself, so any number of clients costs nothing
// while it asks nothing.
package mcp
