// Package attached is the part of the conformance suite that checks stores which serve
// collections that somebody else makes (sdk.Attacher). The rows, and what searches ought to find
// among them, are computed here; the stage's own test makes the collections.
package attached
