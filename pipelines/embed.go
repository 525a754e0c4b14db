// Package pipelines holds the pipeline files, so that a binary without a checkout can write
// them: racflow init. It knows nothing of what is in them.
package pipelines

import "embed"

// Files are the pipeline files and the templates that they name.
//
//go:embed *.hcl *.tmpl
var Files embed.FS
