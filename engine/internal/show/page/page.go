package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // of the assets
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// legible is the maximum size in bytes of a block that is written as readable JSON.
const legible = 16 << 10

// encode writes blocks as script elements of a data type, which browsers do not run.
func encode(blocks []Block) (template.HTML, error) {
	var b bytes.Buffer
	for _, block := range blocks {
		id := template.HTMLEscapeString(block.ID)
		packed, ok := block.Data.(Packed)
		if !ok {
			text, err := json.Marshal(block.Data) // < > and & are escaped, so that no text ends the element
			if err != nil {
				return "", fmt.Errorf("data %q of the page: %w", block.ID, err)
			}
			if len(text) <= legible {
				fmt.Fprintf(&b, "<script type=\"application/json\" id=%q>%s</script>\n", id, text)
				continue
			}
			packed = pack(text)
		}
		fmt.Fprintf(&b, "<script type=\"application/octet-stream\" id=%q>%s</script>\n", id, packed)
	}
	return template.HTML(b.String()), nil //nolint:gosec // JSON with escaped markup, or base64
}

// Packed is the compressed form of data in a page: JSON, gzip, base64. Its length is the size in
// the page.
type Packed string

// Pack packs data for a Block, so that its size is known before the page is written.
func Pack(data any) (Packed, error) {
	text, err := json.Marshal(data)
	return pack(text), err
}

func pack(text []byte) Packed {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // a buffer never fails
	_ = z.Close()
	return Packed(base64.StdEncoding.EncodeToString(b.Bytes()))
}

// Page is an HTML page.
type Page struct {
	Title string        // of the page and its header
	Brand string        // the text in the header before the title, such as "racflow report"
	Body  template.HTML // the content of main before the modules fill it
	// Data is the JSON block "data", which base.js loads by load("data"). nil: there is none.
	Data any
	// Blocks are further blocks, which a page loads when it needs them.
	Blocks []Block
	// Modules holds JavaScript that runs in order, after base.js, in one module: later modules see
	// the declarations of earlier ones. Write drops lines that begin with "import ", and "export "
	// at the beginning of a line: they are for editors and tests.
	Modules []string
	Styles  []string // CSS after page.css
	Charts  bool     // the modules draw charts
	Live    bool     // the modules call the server that the page came from

	explorer bool // the page shows an OpenAPI description with a library
}

// Block is data of a page. Its ID is unique in the page.
type Block struct {
	ID   string
	Data any
}

// Modules and styles that pages share.
var (
	//go:embed assets/base.js
	base string
	//go:embed assets/page.css
	style string
	//go:embed assets/vendor/chartist-1.5.0.umd.js
	chartist string

	//go:embed assets/table.js
	Table string // table.js
	//go:embed assets/chart.js
	Chart string // chart.js; needs Page.Charts for its library
	//go:embed assets/item.js
	Item string // item.js

	//go:embed assets/page.html
	frameText string
	frame     = template.Must(template.New("page").Parse(frameText))
)

// Write writes the page. An error names data that cannot be JSON, or comes from w.
func (p Page) Write(w io.Writer) error {
	css := style + strings.Join(p.Styles, "\n")
	var scripts []string
	if p.Charts {
		scripts = append(scripts, chartist)
	}
	if p.explorer {
		scripts = append(scripts, explorer())
	}
	code := join(append([]string{base}, p.Modules...))
	blocks := p.Blocks
	if p.Data != nil {
		blocks = append([]Block{{"data", p.Data}}, blocks...)
	}
	data, err := encode(blocks)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = frame.Execute(&b, map[string]any{
		"Title": p.Title, "Brand": p.Brand, "Body": p.Body, "Policy": p.policy(css, append(scripts, code)),
		"Style": element("style", "", css), "Data": data, "Scripts": libraries(scripts), "Modules": element("script", ` type="module"`, code),
	})
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// element returns an element with a text that is not markup, such as code. The text is part of this
// program. It must not end the element, because the hash would then differ.
func element(name, attributes, text string) template.HTML {
	if strings.Contains(strings.ToLower(text), "</"+name) {
		panic("an asset ends its own element: </" + name)
	}
	return template.HTML(fmt.Sprintf("<%s%s>%s</%s>", name, attributes, text, name)) //nolint:gosec // assets of this program
}

func libraries(scripts []string) (all template.HTML) {
	for _, text := range scripts {
		all += element("script", "", text) + "\n"
	}
	return all
}

// join combines modules to one module.
func join(modules []string) string {
	var b strings.Builder
	for _, text := range modules {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "import ") {
				b.WriteString(strings.TrimPrefix(line, "export "))
			}
		}
	}
	return b.String()
}

// policy returns the Content-Security-Policy of the page with this style and these scripts.
func (p Page) policy(style string, scripts []string) string {
	directives := []string{"default-src 'none'", "script-src" + hashes(scripts...), "base-uri 'none'", "form-action 'none'"}
	if p.explorer { // the library makes markup and styles while it runs
		directives = append(directives, "style-src 'unsafe-inline'", "img-src data:")
	} else {
		directives = append(directives, "style-src"+hashes(style), "require-trusted-types-for 'script'", "trusted-types 'none'")
	}
	if p.Live {
		directives = append(directives, "connect-src 'self'")
	}
	return strings.Join(directives, "; ")
}

func hashes(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		b.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	return b.String()
}
