// Package server talks to a Milvus server: it connects with user, token and TLS,
// gives every call a deadline, makes it again while the server is away or
// overloaded, and makes errors of what the SDK passes over in silence. It does not
// know what is kept on the server.
package server
