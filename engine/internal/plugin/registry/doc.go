// Package registry reads the releases of plugins from where they are published, and publishes releases.
//
// A release is an OCI index, tagged with its version. For each platform the index names a manifest ("any/any"
// if the program is the same everywhere). The manifest's config is the plugin's description. Its one layer is
// the program, or a tar.gz of the program's folder. The layer's annotation org.racflow.hash is the program's
// hash. So reading the description neither downloads nor executes the program, and the index alone says what
// to lock for all platforms. Signatures are referrers of the index, or cosign's tags.
//
// Releases come from any registry that follows the OCI distribution specification, with the credentials of
// docker login, or from a folder with an OCI layout. RACFLOW_PLUGIN_MIRROR names a folder with layouts that
// replace registries. Programs may also come in plain archives, without a description.
//
// The package compares descriptions and indexes with their digests, and programs with their hashes; it limits
// sizes before reading.
// install.go chooses releases and decides whose signature counts. Nothing is executed here, except the
// credential helpers in docker's configuration.
package registry
