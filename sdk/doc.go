// Package sdk is what the author of a racflow stage imports.
//
// A stage is one step of a pipeline: it cuts documents into chunks, adds to
// them what people may search for, embeds texts, stores and searches entries,
// reranks candidates, writes prompts, votes, or elects. Its author implements
// the small interface of its kind over slices of the record types of this
// package, describes its arguments with a tagged struct, and hands the stage
// to serve.Plugin of sdk/serve:
//
//	type config struct {
//		Temperature float64 `config:"temperature" default:"1" above:"0" doc:"Sharpness of the vote."`
//	}
//
//	func main() {
//		serve.Plugin(Plugin{Name: "acme", Version: "0.1.0", Stages: []Stage{
//			SampleStage("coin", "Votes for the first candidate's label.",
//				func(ctx context.Context, s Setup, c config) (Sampler, error) {
//					return coin{c}, nil
//				}, Reads(ColumnCandidates)),
//		}})
//	}
//
// Everything else (processes, gRPC, batches, deadlines, retries, secrets) is
// the engine's and the SDK's work: no type of those appears here.
//
// The package does not know the engine. What travels between the two is
// defined in sdk/proto and converted in sdk/wire, which is the engine's end of it, too; a plugin's is
// sdk/serve. sdk/ballot holds the formulas of elections, which engine and plugins share;
// sdk/conformance is the suite that every plugin must pass, and sdk/sdktest
// runs it in a Go test.
package sdk
