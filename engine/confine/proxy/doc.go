// Package proxy lets a confined plugin reach the hosts that its file allows, and no other. It is an
// HTTP proxy on a unix socket: CONNECT for TLS and whatever else, and plain HTTP. The process
// that confines the plugin passes connections to it, also those that the plugin makes to a host on
// this machine's loopback, for which clients ask no proxy.
//
// Names are resolved here, so that a plugin needs no other network. Whatever a name resolves to,
// addresses of this machine (loopback, link-local, those of its interfaces) are refused unless
// the file names them. Connections go through the proxies of the user's own environment.
// A host that is not allowed is reported once, with the line that would allow it.
//
// The package does not look into what is sent: a plugin can send anything that it knows to a host
// that it may reach, and a large service behind one name may serve others, too.
package proxy
