// Package plugins lists the built-in stages. The racflow binary offers them by running itself as a plugin. Each stage
// lives in the package of its kind and knows only the sdk.
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

// Commands returns the commands that built-in stages add to racflow.
func Commands() []*cobra.Command { return []*cobra.Command{local.Command()} }
