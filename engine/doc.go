// Package engine opens pipelines and takes items through them, for Go programs.
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
// Every stage is a process of its own. For a built-in stage, that is the running
// program, executed again: Serve, as the first statement of main, turns such a process
// into the stage and never returns there. Options.Builtin takes only what Serve
// returns, and Open fails without it, so a program that forgets Serve gets an error
// instead of starting copies of itself. Programs pass the stages to Serve, instead of
// linking them here, so that a program may leave some out or add its own.
//
// Open checks a file and starts nothing. The first use, or Start, builds the knowledge
// and starts the stages. Several goroutines can use a Pipeline at once. It lives until
// Close or the end of Open's context.
//
// A file is used as the program opens it. A program that opens files of strangers sets Options.Trust, which decides
// about what a file wants beyond its folder: hosts, secrets, files, programs.
//
// The package does not write to standard output or standard error, or read standard input:
// Options.Log and Options.Events get reports, and mistakes in a file are a
// DiagnosticsError. Texts name options as Options.NAME.
//
// What this package shows are types of its own, so that the rooms behind it may change. Package workspace does
// its work, for the command and the server as well.
package engine
