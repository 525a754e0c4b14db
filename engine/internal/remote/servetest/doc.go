// Package servetest has a pipeline without stages for tests of servers.
package servetest
