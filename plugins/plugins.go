// Package plugins lists the built-in stages: those that the racflow binary
// offers by running itself as a plugin. Each lives in a package of its own
// below its kind's folder and knows only the sdk.
package plugins

import (
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/plugins/chunk/code"
	"github.com/racflow/racflow/plugins/chunk/markdown"
	"github.com/racflow/racflow/plugins/chunk/recursive"
	"github.com/racflow/racflow/plugins/chunk/sentences"
	"github.com/racflow/racflow/plugins/elect/first"
	"github.com/racflow/racflow/plugins/elect/learned"
	"github.com/racflow/racflow/plugins/elect/majority"
	"github.com/racflow/racflow/plugins/elect/soft"
	"github.com/racflow/racflow/plugins/elect/weighted"
	"github.com/racflow/racflow/plugins/embed/encoder"
	"github.com/racflow/racflow/plugins/embed/hashing"
	embedopenai "github.com/racflow/racflow/plugins/embed/openai"
	enrichcontext "github.com/racflow/racflow/plugins/enrich/context"
	"github.com/racflow/racflow/plugins/enrich/keywords"
	"github.com/racflow/racflow/plugins/enrich/path"
	"github.com/racflow/racflow/plugins/enrich/questions"
	"github.com/racflow/racflow/plugins/prompt/answer"
	"github.com/racflow/racflow/plugins/prompt/chat"
	"github.com/racflow/racflow/plugins/prompt/completion"
	"github.com/racflow/racflow/plugins/rerank/crossencoder"
	rerankhttp "github.com/racflow/racflow/plugins/rerank/http"
	reranklocal "github.com/racflow/racflow/plugins/rerank/local"
	"github.com/racflow/racflow/plugins/sample/linear"
	"github.com/racflow/racflow/plugins/sample/neighbours"
	"github.com/racflow/racflow/plugins/sample/openai"
	"github.com/racflow/racflow/plugins/sample/prototype"
	"github.com/racflow/racflow/plugins/sample/recorded"
	"github.com/racflow/racflow/plugins/store/local"
	"github.com/racflow/racflow/plugins/store/milvus"
	"github.com/racflow/racflow/sdk"
)

// All returns the built-in stages, in the order in which a pipeline uses their
// kinds.
func All() []sdk.Stage {
	return []sdk.Stage{
		recursive.Stage(),
		markdown.Stage(),
		code.Stage(),
		sentences.Stage(),
		path.Stage(),
		enrichcontext.Stage(),
		keywords.Stage(),
		questions.Stage(),
		encoder.MiniLM(),
		encoder.Stage(),
		hashing.Stage(),
		embedopenai.Stage(),
		local.Stage(),
		milvus.Stage(),
		reranklocal.Stage(),
		crossencoder.Stage(),
		rerankhttp.Stage(),
		completion.Stage(),
		chat.Stage(),
		answer.Stage(),
		neighbours.Stage(),
		prototype.Stage(),
		linear.Stage(),
		openai.Stage(),
		recorded.Stage(),
		majority.Stage(),
		soft.Stage(),
		weighted.Stage(),
		learned.Stage(),
		first.Stage(),
	}
}

// Commands are what built-in stages add to the command racflow.
func Commands() []*cobra.Command { return []*cobra.Command{local.Command()} }
