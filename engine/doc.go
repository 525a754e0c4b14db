// Package engine opens pipelines and takes items through them. The command racflow and other Go programs
// use it alike: what one of them can do, all can.
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
// Every stage is a process of its own. For a built-in stage it is the running program, executed again:
// Serve, as the first statement of main, turns such a process into the stage and never returns there.
// Options.Builtin takes only values that Serve returns, and Open refuses to work without one, so a
// program that forgets Serve gets an error instead of copies of itself. The program passes the stages to
// Serve, since it may leave some out or add its own.
//
// Open checks a file and starts nothing. The first use, or Start, builds the knowledge and starts the
// stages. Several goroutines may use a Pipeline at once. It lives until Close or the end of Open's
// context.
//
// A Workspace holds what files need when they are opened: the state folder, the plugins, the processes,
// and the state that calls of services share. Tools that work on files without running them, such as
// editors, use its Read and its Catalog.
//
// The package writes nothing to standard output or standard error, and does not read standard input: it
// reports to Options.Log and Options.Events, and mistakes in a file are a DiagnosticsError. Texts name
// options as Options.NAME. Flags, tables and exit codes belong to the command.
package engine
