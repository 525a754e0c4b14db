// Package sdk is the package that the author of a racflow stage imports.
//
// A stage is one step of a pipeline. It cuts documents into chunks, adds search terms to passages,
// embeds texts, stores and searches entries, reranks candidates, writes prompts, votes, or elects.
// Its author implements the small interface of its kind, over slices of the record types of this
// package. A tagged struct describes its arguments. serve.Plugin of sdk/serve then runs the stage:
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
// The engine and the SDK do everything else (processes, gRPC, batches, deadlines, retries, secrets).
// None of their types appears here.
//
// This package does not know the engine. Package sdk/proto defines the messages between the two, and
// sdk/wire converts them. The engine talks through sdk/wire, a plugin through sdk/serve. Package
// sdk/ballot holds the formulas of elections, which engine and plugins share. Every plugin must pass
// the suite of sdk/conformance; sdk/sdktest runs that suite in a Go test.
package sdk
