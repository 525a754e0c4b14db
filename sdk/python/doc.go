// Package python holds the Python package racflow-plugin, by which a plugin in Python
// is a class and a call. It is embedded, so that a project can be set up without a network for
// racflow's own part.
//
// The folder racflow beside it is another package, by which Python programs run pipelines. It is
// released as wheels with the command, and nothing of it is embedded here.
//
// Nothing here runs Python. stage.binpb beside the modules is the compiled stage.proto; the
// modules read it when they are imported, so that there is no generated code that demands one
// version of protobuf.
package python

//go:generate sh -c "cd ../proto && go tool -modfile=tools.mod buf build --exclude-source-info --as-file-descriptor-set -o ../python/racflow_plugin/stage.binpb"
