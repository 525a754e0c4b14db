package document

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/document/apart"
	"github.com/racflow/racflow/engine/document/office"
	"github.com/racflow/racflow/engine/document/pdf"
)

// The formats, as metadata names them.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatHTML     = "html"
	formatCode     = "code"
	formatPDF      = "pdf"
	formatDOCX     = "docx"
	formatPPTX     = "pptx"
	formatXLSX     = "xlsx"
	formatNotebook = "notebook"
	formatMail     = "mail"
)

var formats = map[string]string{
	".md": formatMarkdown, ".markdown": formatMarkdown, ".mdx": formatMarkdown,
	".html": formatHTML, ".htm": formatHTML, ".xhtml": formatHTML,
	".pdf":  formatPDF,
	".docx": formatDOCX, ".docm": formatDOCX, ".dotx": formatDOCX,
	".pptx": formatPPTX, ".pptm": formatPPTX, ".ppsx": formatPPTX,
	".xlsx": formatXLSX, ".xlsm": formatXLSX,
	".ipynb": formatNotebook, ".eml": formatMail,
}

// headed are the formats whose first heading is the title where nothing else is.
var headed = map[string]bool{formatMarkdown: true, formatHTML: true, formatDOCX: true, formatNotebook: true}

// refused says what to do with files that no reader reads, by their suffix.
var refused = map[string]string{
	".doc": older("docx"), ".dot": older("docx"), ".rtf": older("docx"), ".odt": older("docx"), ".pages": older("docx"),
	".ppt": older("pptx"), ".odp": older("pptx"), ".key": older("pptx"),
	".xls": older("xlsx"), ".ods": older("xlsx"), ".xlsb": older("xlsx"), ".numbers": older("xlsx"),
	".msg": older("eml"), ".epub": older("html"),
}

func older(format string) string {
	return "its format is not read; save it as ." + format + ", or leave it out with exclude"
}

func init() {
	for _, suffix := range strings.Fields(`.bash .bat .c .cc .clj .cljs .cmake .cpp .cs .css .cu .cxx .dart .el .erl .ex .exs .f90 .fs
		.go .gradle .graphql .groovy .h .hcl .hh .hpp .hs .hxx .java .jl .js .jsx .kt .kts .lisp .lua .m .ml .mli .mm .nim .nix
		.php .pl .pm .proto .ps1 .py .pyi .r .rb .rs .sass .scala .scm .scss .sh .sol .sql .svelte .swift .tcl .tf .ts .tsx .v .vb .vue .zig .zsh`) {
		formats[suffix] = formatCode
	}
}

func formatOf(name string) string {
	if f, ok := formats[strings.ToLower(path.Ext(filepath.ToSlash(name)))]; ok {
		return f
	}
	return formatText
}

// apartKinds are the readers that a hostile file can break, by format.
var apartKinds = map[string]string{formatPDF: "PDF", formatDOCX: "DOCX", formatPPTX: "PPTX", formatXLSX: "XLSX"}

func init() {
	apart.Serve(map[string]apart.Reader{"PDF": pdf.Text, "DOCX": office.DOCX, "PPTX": office.PPTX, "XLSX": office.XLSX})
}
