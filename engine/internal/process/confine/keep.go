package confine

// This file is the process that stands between racflow and a third party's plugin. It
// starts the plugin (cage.go confines it), says how it ended, and ends with it whatever
// the plugin has started, also what has left its process group or its session: it is the
// subreaper of all of them. It does the same when racflow is gone. It passes the plugin's connections to
// the engine's proxy.
//
// It limits nothing itself, and imports little, so that its part of the program is initialised early.
