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
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// The formats, as in metadata.
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
	formatEPUB     = "epub"
)

var formats = map[string]string{
	".md": formatMarkdown, ".markdown": formatMarkdown, ".mdx": formatMarkdown,
	".html": formatHTML, ".htm": formatHTML, ".xhtml": formatHTML,
	".pdf":  formatPDF,
	".docx": formatDOCX, ".docm": formatDOCX, ".dotx": formatDOCX,
	".pptx": formatPPTX, ".pptm": formatPPTX, ".ppsx": formatPPTX,
	".xlsx": formatXLSX, ".xlsm": formatXLSX,
	".ipynb": formatNotebook, ".eml": formatMail, ".epub": formatEPUB,
}

// headed lists the formats whose first heading is the title if there is no other title.
var headed = map[string]bool{formatMarkdown: true, formatHTML: true, formatDOCX: true, formatNotebook: true, formatEPUB: true}

// refused gives advice about unsupported files, by suffix.
var refused = map[string]string{
	".doc": older("docx"), ".dot": older("docx"), ".rtf": older("docx"), ".odt": older("docx"), ".pages": older("docx"),
	".ppt": older("pptx"), ".odp": older("pptx"), ".key": older("pptx"),
	".xls": older("xlsx"), ".ods": older("xlsx"), ".xlsb": older("xlsx"), ".numbers": older("xlsx"),
	".msg": older("eml"),
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

// Read returns the document of a file, and the hash of the content that it read, since the file may have changed since
// the listing. An empty file yields a document without text. If the content of a file has no text, Read returns an
// error.
func (f *Folder) Read(ctx context.Context, id string) (d Document, hash []byte, err error) {
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
	format := formatOf(id)
	unread := Unread{}
	text, title, err := f.parse(ctx, id, format, raw, unread)
	if err != nil {
		return d, nil, err
	}
	if format == formatPDF {
		if rest, found := withoutContents(text); found {
			text = rest
			unread["table of contents"]++
		}
	}
	if title == "" && format == formatMarkdown {
		title = matterTitle(text)
	}
	if title == "" && headed[format] {
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
		if text = ""; len(bytes.TrimSpace(raw)) > 0 && !verbatim[format] {
			return d, nil, errWithout(format, unread)
		}
	}
	d.Document = sdk.Document{ID: id, Text: text, Meta: sdk.Meta{"path": id, "title": title, "format": format}}
	d.Unread = unread
	return d, sum[:hashBytes], nil
}

// verbatim lists the formats whose text is the file's.
var verbatim = map[string]bool{formatText: true, formatMarkdown: true, formatCode: true}

func errWithout(format string, unread Unread) error {
	what := ""
	if len(unread) > 0 {
		what = " (not read: " + unread.String() + ")"
	}
	return fmt.Errorf("its %s holds no text%s; leave it out with exclude", strings.ToUpper(format), what)
}

// parse returns the text of a file's content, and its title if it has one. It counts what it does not read.
func (f *Folder) parse(ctx context.Context, id, format string, raw []byte, unread Unread) (text, title string, err error) {
	if kind := strings.ToUpper(format); apartReaders[kind] != nil {
		officeUnread(raw, unread)
		r, err := readApart(ctx, kind, raw, f.set.Max, maxTime)
		unread.Add(r.Unread)
		return r.Text, r.Title, err
	}
	if format == formatMail {
		return Mail(raw, unread)
	}
	if advice := refused[strings.ToLower(path.Ext(id))]; advice != "" {
		return "", "", errors.New(advice)
	}
	if text, err = decode(raw, format == formatHTML); err != nil {
		return "", "", err
	}
	switch format {
	case formatHTML:
		return HTML(text, f.set.HTML == "all", unread)
	case formatNotebook:
		text, err = notebook(text)
	}
	return text, "", err
}

// longestMatter is the most bytes of front matter that are examined.
const longestMatter = 1 << 16

// longestTitle is in bytes. It is short, since each chunk carries the title of its document.
const longestTitle = 300

var errBinary = errors.New("it is a binary file, not text; leave it out with exclude")

// decode converts a file's bytes to valid UTF-8 without a byte order mark. The mark determines the encoding. Without a
// mark, the declaration in a page or in XML determines it; otherwise the likely encoding is used. decode refuses binary
// files.
func decode(raw []byte, markup bool) (string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte{0xFF, 0xFE}) && len(raw)%2 == 0:
		return decode16(raw[2:], binary.LittleEndian)
	case bytes.HasPrefix(raw, []byte{0xFE, 0xFF}) && len(raw)%2 == 0:
		return decode16(raw[2:], binary.BigEndian)
	}
	raw, marked := bytes.CutPrefix(raw, []byte{0xEF, 0xBB, 0xBF})
	if bytes.IndexByte(raw, 0) >= 0 || bytes.HasPrefix(raw, []byte("%PDF-")) {
		return "", errBinary
	}
	var e encoding.Encoding
	if markup && !marked {
		e = declared(raw)
	}
	if e == nil && !utf8.Valid(raw) {
		var sure bool
		if e, sure = rows.Guess(raw); !sure && damaged(raw) {
			return "", errBinary
		}
	}
	if e == nil {
		return strings.ToValidUTF8(string(raw), "\uFFFD"), nil
	}
	text, err := e.NewDecoder().Bytes(raw)
	return strings.ToValidUTF8(string(text), "\uFFFD"), err
}

// declaration matches the encoding in an XML declaration, which HTML does not have.
var declaration = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)`)

// declared returns the encoding that a page names; nil: none, or UTF-8.
func declared(raw []byte) encoding.Encoding {
	head := raw[:min(len(raw), 1024)]
	e, name, sure := charset.DetermineEncoding(head, "")
	if m := declaration.FindSubmatch(head); m != nil && !sure {
		e, name = charset.Lookup(string(m[1]))
	}
	if name == "utf-8" || name == "windows-1252" && !sure {
		return nil
	}
	return e
}

// damaged reports whether more than a few per cent of a text's bytes are not UTF-8.
func damaged(raw []byte) bool {
	invalid := 0
	for rest := raw; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			invalid++
		}
		rest = rest[n:]
	}
	return invalid > 16 && invalid > len(raw)/10
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

// matterTitle returns the title in front matter, YAML between --- or TOML between +++; empty: there is none.
func matterTitle(text string) string {
	matter := text[:support.FrontMatter(text)]
	if len(matter) > longestMatter {
		return ""
	}
	if strings.HasPrefix(matter, "+++") {
		matter = tomlTitle.FindString(matter) // YAML reads the value of one line, too
		matter = strings.Replace(matter, "=", ":", 1)
	} else {
		matter = strings.Trim(strings.TrimSpace(matter), "-.")
	}
	var front struct{ Title string }
	_ = yaml.Unmarshal([]byte(matter), &front) // invalid YAML has no title
	return OneLine(front.Title)
}

var tomlTitle = regexp.MustCompile(`(?m)^title\s*=.*$`)

// headingOf returns the title of the first heading with a title in a Markdown text; empty: there is
// none.
func headingOf(text string) string {
	for _, s := range support.ReadSections(text) {
		if s.Title != "" {
			return s.Title
		}
	}
	return ""
}
