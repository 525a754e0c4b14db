package confine

// This file is the keeper: the process between racflow and a third-party plugin. It starts the
// plugin (cage.go confines it) and reports how it ended. As their subreaper it ends all processes
// of the plugin, even those that have left its process group or session. It does the same when
// racflow has ended. It also forwards the plugin's connections to the engine's proxy.
//
// It enforces no limits itself, and imports little, so that its init function runs early.
