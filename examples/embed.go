// Package examples holds the data that the pipeline files read, so that a binary without a checkout
// can write them: racflow init --example. The other examples are programs and settings, which are
// useful only in a checkout.
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
