package document

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/document/apart"
	"github.com/racflow/racflow/engine/document/html"
	"github.com/racflow/racflow/engine/document/pdf"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/section"
)

// The formats, as metadata names them.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatHTML     = "html"
	formatCode     = "code"
	formatPDF      = "pdf"
)

var formats = map[string]string{
	".md": formatMarkdown, ".markdown": formatMarkdown, ".mdx": formatMarkdown,
	".html": formatHTML, ".htm": formatHTML, ".xhtml": formatHTML,
	".pdf": formatPDF,
}

func init() {
	for _, suffix := range strings.Fields(`.bash .bat .c .cc .clj .cljs .cmake .cpp .cs .css .cu .cxx .dart .el .erl .ex .exs .f90 .fs
		.go .gradle .graphql .groovy .h .hcl .hh .hpp .hs .hxx .java .jl .js .jsx .kt .kts .lisp .lua .m .ml .mli .mm .nim .nix
		.php .pl .pm .proto .ps1 .py .pyi .r .rb .rs .sass .scala .scm .scss .sh .sol .sql .svelte .swift .tcl .tf .ts .tsx .v .vb .vue .zig .zsh`) {
		formats[suffix] = formatCode
	}
}

// kindPDF names the reader of PDFs.
const kindPDF = "PDF"

// Hostile files can break some readers.
func init() { apart.Serve(map[string]apart.Reader{kindPDF: pdf.Text}) }

func formatOf(name string) string {
	if f, ok := formats[strings.ToLower(path.Ext(filepath.ToSlash(name)))]; ok {
		return f
	}
	return formatText
}

// Read makes the document of a file, and returns the hash of the content that it
// was made from: the file may have changed since it was listed. A file that holds
// no text gives a document without any.
func (f *Folder) Read(ctx context.Context, id string) (d sdk.Document, hash []byte, err error) {
	in, err := f.open(id)
	if err != nil {
		return d, nil, plain(err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(in, f.set.Max+1))
	if err != nil {
		return d, nil, plain(err)
	}
	if int64(len(raw)) > f.set.Max {
		return d, nil, f.tooLarge()
	}
	sum := sha256.Sum256(raw)
	format, text, title := formatOf(id), "", ""
	if format != formatPDF {
		if text, err = decode(raw); err != nil {
			return d, nil, err
		}
	}
	switch format {
	case formatPDF:
		if text, title, err = apart.Read(ctx, kindPDF, raw, f.set.Max, apart.Time); err != nil {
			return d, nil, err
		}
	case formatHTML:
		if text, title, err = html.Markdown(text); err != nil {
			return d, nil, err
		}
	}
	if title == "" && (format == formatMarkdown || format == formatHTML) {
		title = headingOf(text)
	}
	if int64(len(text)) > f.set.Max {
		return d, nil, fmt.Errorf("its text is longer than %d bytes; raise max_bytes or leave it out with exclude", f.set.Max)
	}
	if title == "" {
		title = path.Base(id)
	}
	title = strings.ToValidUTF8(title[:min(len(title), longestTitle)], "")
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	return sdk.Document{ID: id, Text: text, Meta: sdk.Meta{"path": id, "title": title, "format": format}}, sum[:hashBytes], nil
}

// longestTitle is in bytes: each chunk carries the title of its document.
const longestTitle = 300

var errBinary = errors.New("it is a binary file, not text; leave it out with exclude")

// decode makes valid UTF-8 of a file's bytes, without a byte order mark. A mark tells
// UTF-16; binary files are refused.
func decode(raw []byte) (string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte{0xFF, 0xFE}) && len(raw)%2 == 0:
		return decode16(raw[2:], binary.LittleEndian)
	case bytes.HasPrefix(raw, []byte{0xFE, 0xFF}) && len(raw)%2 == 0:
		return decode16(raw[2:], binary.BigEndian)
	}
	raw = bytes.TrimPrefix(raw, []byte{0xEF, 0xBB, 0xBF})
	if bytes.IndexByte(raw, 0) >= 0 || bytes.HasPrefix(raw, []byte("%PDF-")) {
		return "", errBinary
	}
	if utf8.Valid(raw) {
		return string(raw), nil
	}
	invalid := 0
	for rest := raw; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			invalid++
		}
		rest = rest[n:]
	}
	if invalid > 16 && invalid > len(raw)/10 { // a text in Latin-1 has a few per cent
		return "", errBinary
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD"), nil
}

func decode16(raw []byte, order binary.ByteOrder) (string, error) {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		if units[i] = order.Uint16(raw[2*i:]); units[i] == 0 {
			return "", errBinary
		}
	}
	return string(utf16.Decode(units)), nil
}

// headingOf returns the first heading of a Markdown text that has a title; empty: there
// is none.
func headingOf(text string) string {
	for _, s := range section.Read(text) {
		if s.Title != "" {
			return s.Title
		}
	}
	return ""
}
