// Package engine opens pipelines and sends items through them, for Go programs.
//
//	func main() {
//		stages := Serve(plugins.All()) // first of all
//		ctx := context.Background()
//		p, err := Open(ctx, "pipelines/intent.hcl", Options{
//			Builtin: stages,
//			Vars:    map[string]string{"embedder": "hashing"},
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer p.Close()
//		r, err := p.Answer(ctx, Item{Text: "where is my parcel?"})
//		...
//	}
//
// Every stage runs in a process of its own. For a built-in stage, the running program executes itself
// again: Serve, as the first statement of main, turns such a process into the stage and never returns
// there. Options.Builtin takes only the value that Serve returns, and Open fails without it. So a
// program that forgets Serve gets an error instead of starting copies of itself. Programs pass the
// stages to Serve; this package links none. So a program may leave some out or add its own.
//
// Open checks a file and starts nothing. The first use, or Start, builds the knowledge and starts the
// stages. Several goroutines can use a Pipeline at once. A Pipeline lives until Close or the end of
// Open's context.
//
// A program that opens files of strangers sets Options.Trust. Trust decides whether a file may have
// what it wants beyond its folder: hosts, secrets, files, programs. Without Trust, a file gets all of
// that.
//
// The package does not write to standard output or standard error, and does not read standard input.
// Options.Log and Options.Events get reports. Mistakes in a file are a DiagnosticsError. Messages
// name options as Options.NAME.
//
// All types that this package exports are its own, so that the packages behind it may change. Package
// workspace does the work, for this package, the command and the server.
package engine
