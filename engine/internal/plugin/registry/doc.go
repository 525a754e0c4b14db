// Package registry reads the releases of plugins from where they are published, and publishes them.
//
// A release is an OCI index, tagged with its version. For each platform the index names a manifest
// ("any/any" where the program is the same everywhere): its config is the plugin's description, its one layer
// the program, or a tar.gz of the folder that belongs to it. The layer's annotation org.racflow.hash is the
// program's hash. So a description takes neither a download nor an execution of the program, and the index
// alone says what to lock for all platforms. Signatures are referrers of the index, or cosign's tags.
//
// Releases come from any registry that follows the OCI distribution specification, with the
// credentials of docker login, from a folder with an OCI layout, and, for registries, from layouts below the folder
// that RACFLOW_PLUGIN_MIRROR names. Programs also come in plain archives, which bring nothing but themselves.
//
// Whatever arrives is compared with its digest and size; sizes are bounded before anything is read. Which
// release is wanted, and whose signature counts, install.go decides. Nothing is executed here, except the credential helpers
// that docker's configuration names.
package registry
