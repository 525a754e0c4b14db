// Package engine opens pipelines and sends items through them. The command racflow uses this
// package like any other Go program, so every program can do what the command does.
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
// Every stage runs in a process of its own. A built-in stage runs in a new process of the running
// program: Serve, as the first statement of main, turns such a process into the stage and never
// returns there. Only Serve returns a value for Options.Builtin, and Open fails without one, so a
// program that forgets Serve gets an error instead of copies of itself. The program passes the
// stages to Serve; they are not linked here, so that a program may omit some or add its own.
//
// Open checks a file and starts nothing. Start, or the first use, builds the knowledge and starts
// the stages. A Pipeline is safe for concurrent use, and lives until Close or the end of Open's
// context.
//
// A Workspace holds what files are opened with: the state folder, the plugins, the processes, and
// what calls of services share. Tools that read files without running them, such as editors, use
// its Read and its Catalog.
//
// The package neither writes to standard output or standard error nor reads standard input: it
// reports to Options.Log and Options.Events, and mistakes in a file are a DiagnosticsError.
// Messages call options Options.NAME. Flags, tables and exit codes belong to the command.
package engine
