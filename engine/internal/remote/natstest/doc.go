// Package natstest starts NATS servers inside of tests, one or a cluster of three, stops them and starts them again. Only tests import
// it: racflow itself has no server.
//
// It does not simulate: what tests see of lost servers is what the real ones do.
package natstest
