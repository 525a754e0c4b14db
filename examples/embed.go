// Package examples holds the data that the pipeline files read, so that a binary without a
// checkout can write it: racflow init --example. The other examples are programs and
// settings, which are of use in a checkout only.
package examples

import "embed"

// Files are the examples' data.
//
//go:embed intent/*.tsv tags/*.tsv docs/questions.tsv docs/quern
var Files embed.FS

// Pipelines are the examples' pipeline files.
//
//go:embed ci/*.hcl milvus/*.hcl own/*.hcl plugin-python/*.hcl recorded/*.hcl
var Pipelines embed.FS
