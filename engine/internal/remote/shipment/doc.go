// Package shipment brings a run to other machines: the file of the pipeline with all that it reads (bundle.go), and the
// files of its knowledge, by their digests (ship.go).
package shipment
