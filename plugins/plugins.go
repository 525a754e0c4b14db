// Package plugins lists the built-in stages: those that the racflow binary
// offers by running itself as a plugin. Each lives in a package of its own
// below its kind's folder and knows only the sdk.
package plugins

import (
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/plugins/internal/chunk"

	"github.com/racflow/racflow/plugins/internal/elect"

	"github.com/racflow/racflow/plugins/internal/embed"

	"github.com/racflow/racflow/plugins/internal/enrich"

	"github.com/racflow/racflow/plugins/internal/prompt"

	"github.com/racflow/racflow/plugins/internal/rerank"

	"github.com/racflow/racflow/plugins/internal/sample"

	"github.com/racflow/racflow/plugins/internal/store/local"
	"github.com/racflow/racflow/plugins/internal/store/milvus"
	"github.com/racflow/racflow/sdk"
)

// All returns the built-in stages, in the order in which a pipeline uses their
// kinds.
func All() []sdk.Stage {
	return []sdk.Stage{
		chunk.Recursive(),
		chunk.Markdown(),
		chunk.Code(),
		chunk.Sentences(),
		enrich.Path(),
		enrich.Context(),
		enrich.Keywords(),
		enrich.Questions(),
		embed.MiniLM(),
		embed.Encoder(),
		embed.Hashing(),
		embed.OpenAI(),
		local.Stage(),
		milvus.Stage(),
		rerank.Local(),
		rerank.CrossEncoder(),
		rerank.HTTP(),
		rerank.Decision(),
		prompt.Completion(),
		prompt.Chat(),
		prompt.Answer(),
		sample.Neighbours(),
		sample.Prototype(),
		sample.Linear(),
		sample.OpenAI(),
		sample.Decision(),
		sample.Recorded(),
		elect.Majority(),
		elect.Soft(),
		elect.Weighted(),
		elect.Learned(),
		elect.First(),
	}
}

// Commands are what built-in stages add to the command racflow.
func Commands() []*cobra.Command { return []*cobra.Command{local.Command()} }
