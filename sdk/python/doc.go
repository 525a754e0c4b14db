// Package python holds the Python package racflow-plugin, which makes a plugin in Python a class and
// one call. The Go package embeds it, so that setting up a project needs no network for racflow's own
// part.
//
// The folder racflow beside it is another package, with which Python programs run pipelines. It is
// released as wheels with the command, and nothing of it is embedded here.
//
// Nothing here runs Python. stage.binpb beside the modules is the compiled stage.proto. The modules
// read it on import; generated code would demand one version of protobuf.
package python

//go:generate sh -c "cd ../proto && go tool -modfile=tools.mod buf build --exclude-source-info --as-file-descriptor-set -o ../python/racflow_plugin/stage.binpb"
