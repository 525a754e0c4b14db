// Package proto holds the wire definition (stage.proto) and, in stagepb, the
// Go code generated from it. A plugin in another language needs stage.proto
// and README.md beside it; nothing else of this module.
package proto

//go:generate go tool -modfile=tools.mod buf generate
