// Command size counts what the project is made of, without tests: make size.
//
// It counts the Go files that git knows in the current folder, except those of other modules and what is generated.
// Exported names are those of importable packages: functions, types, constants, variables, and methods of exported types.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	listed, err := exec.Command("git", "ls-files", "*.go", "*go.mod").Output()
	if err != nil {
		log.Fatal(err)
	}
	var others []string // folders of other modules
	for _, name := range strings.Fields(string(listed)) {
		if dir, ok := strings.CutSuffix(name, "/go.mod"); ok {
			others = append(others, dir+"/")
		}
	}
	packages, importable := map[string]bool{}, map[string]bool{}
	rooms := map[string]int{} // lines
	var files, lines, tests, tokens, exported, long int
	for _, name := range strings.Fields(string(listed)) {
		source, err := os.ReadFile(name)
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, ".") || inside(name, others) || bytes.Contains(source, []byte("// Code generated")) {
			continue
		}
		n := bytes.Count(source, []byte("\n"))
		if strings.HasSuffix(name, "_test.go") {
			tests += n
			continue
		}
		dir := path.Dir(name)
		files, lines, tokens, packages[dir] = files+1, lines+n, tokens+countTokens(source), true
		rooms[room(dir)] += n
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && set.Position(fn.End()).Line-set.Position(fn.Pos()).Line >= 60 {
				long++
			}
		}
		if f.Name.Name != "main" && !strings.Contains("/"+dir+"/", "/internal/") {
			importable[dir] = true
			exported += countExported(f)
		}
	}
	for _, row := range []struct {
		n    int
		what string
	}{
		{len(packages), "packages"}, {files, "files"}, {lines, "lines"}, {tests, "lines of tests"}, {tokens, "tokens without comments"},
		{len(importable), "importable packages"}, {exported, "exported names of these"}, {long, "functions above 60 lines"},
	} {
		fmt.Printf("%8d  %s\n", row.n, row.what)
	}
	fmt.Println("\nlines by room:")
	for _, r := range slices.SortedFunc(maps.Keys(rooms), func(a, b string) int { return cmp.Or(rooms[b]-rooms[a], strings.Compare(a, b)) }) {
		fmt.Printf("%8d  %s\n", rooms[r], r)
	}
}

// room returns the folder that a package belongs to: one below internal, or else one below the top.
func room(dir string) string {
	depth := 2
	if strings.Contains(dir, "/internal/") {
		depth = 3
	}
	parts := strings.Split(dir, "/")
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

func inside(name string, dirs []string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

func countTokens(source []byte) (n int) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile("", set.Base(), len(source)), source, nil, 0)
	for {
		_, t, text := s.Scan()
		if t == token.EOF {
			return n
		}
		if t != token.SEMICOLON || text == ";" { // else a line's end
			n++
		}
	}
}

func countExported(f *ast.File) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					count(s.Names...)
				case *ast.TypeSpec:
					count(s.Name)
				}
			}
		}
	}
	return n
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
