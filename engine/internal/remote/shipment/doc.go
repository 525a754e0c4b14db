// Package shipment sends a run to other machines: the pipeline file with all files that it reads
// (bundle.go), and the files of its knowledge, by their digests (ship.go).
package shipment
