// Package engine opens pipelines and takes items through them. The command racflow and
// other Go programs go through it: what one of them can do, all can.
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
// Every stage is a process of its own. For the built-in ones that is the running
// program, executed again: Serve, as the first statement of main, turns such a process
// into the stage and never returns there. Options.Builtin takes nothing but what Serve
// returns, and Open refuses to work without it, so a program that forgets it gets an
// error instead of copies of itself. The stages are given to Serve rather than linked
// here, so that a program may leave some out or add its own.
//
// Open checks a file and starts nothing. The knowledge is built and the stages are
// started when they are first needed, or by Start. A Pipeline can be used by several
// goroutines at once, and lives until Close or the end of Open's context.
//
// A Workspace is what files are opened with: the state folder, the plugins, the
// processes, and what calls of services share. Tools that work on files without
// running them, such as editors, use its Read and its Catalog.
//
// Nothing here writes to standard output or standard error, or reads standard input:
// what happens meanwhile goes to Options.Log and Options.Events, mistakes in a file are
// a DiagnosticsError. Texts name options as Options.NAME. Flags, tables and exit codes are the command's.
package engine
