// Package servetest has a pipeline that tests of servers ask, in place of one of stages.
package servetest
