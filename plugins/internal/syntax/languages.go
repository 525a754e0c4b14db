package syntax

import (
	"path"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Language describes how to read a language.
type Language struct {
	names      string // its own first, then the suffixes of files
	indented   bool   // units by indentation, not by brackets
	semicolons bool   // statements end with one, or with a brace
	comments   string // what begins a comment up to the end of the line
	block      string // what begins one that ends with */
	nested     bool   // block comments contain others
	directives bool   // # begins a line for the preprocessor
	quotes     string // what delimits strings with escapes
	triple     bool   // three quotes delimit strings of many lines
	raw        string // which raw strings there are: r (Rust, C++), ` (Go), @ (C#)
	chars      bool   // ' delimits a character, or begins a lifetime
	template   bool   // ` delimits templates, / a regular expression
	closers    string // words that belong to the unit above
}

var all = []Language{
	{names: "go", comments: "//", block: "/*", quotes: `"`, raw: "`", chars: true},
	{names: "java", semicolons: true, comments: "//", block: "/*", quotes: `"`, triple: true, chars: true},
	{names: "c h", semicolons: true, comments: "//", block: "/*", directives: true, quotes: `"`, chars: true},
	{names: "cpp cc cxx c++ hpp hh hxx ipp inl cu cuh m mm ino", semicolons: true, comments: "//", block: "/*", directives: true, quotes: `"`, raw: "r", chars: true},
	{names: "csharp cs", semicolons: true, comments: "//", block: "/*", directives: true, quotes: `"`, triple: true, raw: "@", chars: true},
	{names: "javascript js jsx mjs cjs", comments: "//", block: "/*", quotes: `"'`, template: true},
	{names: "typescript ts tsx mts cts", comments: "//", block: "/*", quotes: `"'`, template: true},
	{names: "rust rs", semicolons: true, comments: "//", block: "/*", nested: true, quotes: `"`, raw: "r", chars: true},
	{names: "kotlin kt kts", comments: "//", block: "/*", nested: true, quotes: `"`, triple: true, chars: true},
	{names: "swift", comments: "//", block: "/*", nested: true, quotes: `"`, triple: true},
	{names: "scala sc", comments: "//", block: "/*", nested: true, quotes: `"`, triple: true, chars: true},
	{names: "groovy gradle", comments: "//", block: "/*", quotes: `"'`, triple: true},
	{names: "dart", semicolons: true, comments: "//", block: "/*", nested: true, quotes: `"'`, triple: true},
	{names: "php", semicolons: true, comments: "// #", block: "/*", quotes: `"'`},
	{names: "proto", semicolons: true, comments: "//", block: "/*", quotes: `"'`},
	{names: "css scss less", semicolons: true, comments: "//", block: "/*", quotes: `"'`},
	{names: "zig", semicolons: true, comments: "//", quotes: `"`, chars: true},
	{names: "hcl tf", comments: "# //", block: "/*", quotes: `"`},
	{names: "python py pyi pyw", indented: true, comments: "#", quotes: `"'`, triple: true, closers: "elif else except finally"},
	{names: "yaml yml", indented: true, comments: "#"},
	{names: "ruby rb", indented: true, comments: "#", closers: "else elsif when rescue ensure end }"},
	{names: "lua", indented: true, comments: "--", closers: "else elseif end } until"},
	{names: "elixir ex exs", indented: true, comments: "#", closers: "else rescue after end }"},
	{names: "julia jl", indented: true, comments: "#", closers: "else elseif catch finally end"},
	{names: "shell sh bash zsh", indented: true, comments: "#", closers: "else elif fi done esac }"},
}

// Named returns a language by its name, or by the suffix of a file without the dot; nil:
// it is unknown.
func Named(name string) *Language {
	for i := range all {
		if slices.Contains(strings.Fields(all[i].names), strings.ToLower(name)) {
			return &all[i]
		}
	}
	return nil
}

// Of returns the language of a document by the suffix of its path, or of its id where it
// has no path; nil: it is unknown.
func Of(d *sdk.Document) *Language {
	name, _ := d.Meta["path"].(string)
	if name == "" {
		name = d.ID
	}
	if end := path.Ext(name); end != "" {
		return Named(end[1:])
	}
	return nil
}

// Names are those of all languages.
func Names() []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name()
	}
	return names
}

func (l *Language) has(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
