package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// template is a template while it becomes a user's file. err holds the first error.
type template struct {
	file *hclwrite.File
	name string
	err  error
}

// few is the fewest rows with which a label is learned well.
const few = 5

// Describe writes what was seen in the data, after its rows have been read.
func (d Data) Describe(w io.Writer) {
	for _, r := range d.Rows {
		r.describe(w)
	}
	if d.Documents != nil {
		d.Documents.describe(w)
	}
}

func (r *Rows) describe(w io.Writer) {
	how := []string{strings.ToUpper(string(r.Seen.Format))}
	if r.From != nil {
		how[0] = r.From.what + ", --format " + r.From.name
	}
	if d := r.Seen.Delimiter; d != "" && d != "," && d != "\t" {
		how = append(how, fmt.Sprintf("fields end with %q", d))
	}
	if r.Seen.Encoding != "" {
		how = append(how, r.Seen.Encoding)
	}
	if r.Seen.Compression != "" {
		how = append(how, r.Seen.Compression)
	}
	if r.Seen.Sheet != "" {
		how = append(how, fmt.Sprintf("sheet %q", r.Seen.Sheet))
	}
	line(w, "%s: %s (%s)", r.Path, terminal.Plural(r.Count, "row"), strings.Join(how, ", "))
	for _, note := range r.Seen.Notes {
		line(w, "  %s", note)
	}
	if r.respelt != "" {
		line(w, "  %s", r.respelt)
	}
	if r.Invalid > 0 {
		line(w, "  %s (a run reports all)", r.First.Unusable(r.Invalid, r.Invalid+r.Count))
	}
	table := terminal.NewTable(w)
	for _, c := range r.Seen.Columns {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", terminal.Shorten(c.Name, 30), r.role(c), values(c, r.Seen.Rows), example(c))
	}
	_ = table.Flush() // w is a terminal or a file whose own errors show elsewhere
	label := cmp.Or(clean(r.Mapping.Label), "no column")
	if r.Second != "" && r.Second != r.Mapping.Label {
		label += ", or else in " + clean(r.Second)
	}
	line(w, "  the text is in %s; the label in %s. Otherwise: --column text=NAME --column label=NAME (label= for none)", clean(r.Mapping.Text), label)
	r.seen(w)
}

// seen writes what was found in the texts and labels.
func (r *Rows) seen(w io.Writer) {
	if r.Count == 0 {
		return
	}
	line(w, "  texts: a median of %d characters, the longest %d%s", r.Median, r.Longest, spoken(r.Language))
	if len(r.Labels) > 0 {
		first, last := r.Labels[0], r.Labels[len(r.Labels)-1]
		line(w, "  labels: %d, from %q in %s to %q in %s", len(r.Labels), clean(first.Name), terminal.Plural(first.Rows, "row"), clean(last.Name), terminal.Plural(last.Rows, "row"))
		var rare []string
		for _, l := range slices.Backward(r.Labels) {
			if l.Rows < few {
				rare = append(rare, fmt.Sprintf("%q", clean(l.Name)))
			}
		}
		if n := len(rare); n > 0 {
			line(w, "  %s fewer than %d rows: %s", have(n, "label"), few, list(rare))
		}
		if spelt := r.spellings(); len(spelt) > 0 {
			line(w, "  labels in several spellings: %s; racflow doctor --fix writes one", list(spelt))
		}
		if r.Unlabelled > 0 {
			line(w, "  %s no label", have(r.Unlabelled, "row"))
		}
		switch {
		case len(r.Labels) == 1:
			line(w, "  column %q has only one label, %q in %s: add rows with other labels, or name another column with --column label=NAME", clean(r.Mapping.Label), clean(first.Name), terminal.Plural(first.Rows, "row"))
		case !r.labelled():
			line(w, "  column %q does not look like labels: they hardly come again (--column label=%s takes it all the same)", clean(r.Mapping.Label), clean(r.Mapping.Label))
		}
	}
}

// role describes how a column is used.
func (r *Rows) role(c source.Column) string {
	switch c.Name {
	case r.Mapping.Text:
		return "text"
	case r.Mapping.Label:
		return "label"
	case r.Mapping.ID:
		return "id"
	}
	return "-"
}

func values(c source.Column, rows int) string {
	what := terminal.Plural(c.Distinct, "value")
	if c.Numeric {
		what = terminal.Plural(c.Distinct, "number")
	}
	if c.Empty > 0 {
		what += fmt.Sprintf(", %d of %d empty", c.Empty, rows)
	}
	return what
}

func example(c source.Column) string {
	if len(c.Values) == 0 {
		return ""
	}
	return terminal.Shorten(c.Values[0], 40)
}

func (d *Documents) describe(w io.Writer) {
	var kinds []string
	for _, suffix := range slices.SortedFunc(maps.Keys(d.Suffixes), func(a, b string) int { return d.Suffixes[b] - d.Suffixes[a] }) {
		name := suffix
		if name == "" {
			name = "without a suffix"
		}
		kinds = append(kinds, fmt.Sprintf("%d %s", d.Suffixes[suffix], clean(name)))
	}
	line(w, "%s: %s (%s)", d.Path, terminal.Plural(d.Files, "document"), list(kinds))
	line(w, "  texts: a mean of %d characters%s", d.Characters/d.Read, spoken(d.Language))
	if len(d.Unread) > 0 {
		sample := ""
		if d.Read < d.Files {
			sample = fmt.Sprintf(" in the %d looked at", d.Read)
		}
		line(w, "  not read%s: %s (%s)", sample, d.Unread, list(d.UnreadIn))
	}
	for i, f := range d.Unusable {
		if i == 3 {
			line(w, "  ... and %d more that cannot be used", len(d.Unusable)-i)
			break
		}
		line(w, "  %s cannot be used: %v", f.ID, f.Err)
	}
}

// spoken returns a clause that names the language of texts.
func spoken(language string) string {
	if language == "" {
		return ""
	}
	return ", in " + named(language)
}

// list joins the first few of several names.
func list(all []string) string {
	const most = 6
	if more := len(all) - most; more > 0 {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(all, ", ")
}

func have(n int, name string) string {
	if n == 1 {
		return terminal.Plural(n, name) + " has"
	}
	return terminal.Plural(n, name) + " have"
}

// line writes a line without control characters, which a terminal would obey.
func line(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, terminal.Line(clean(fmt.Sprintf(format, args...))))
}

// Examples lists the pipeline files that come with racflow.
func Examples(pipelines fs.FS) []string {
	files, _ := fs.Glob(pipelines, "*.hcl") // the pattern is well formed
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, ".hcl"))
	}
	return names
}

// exampleData and templates find paths of examples and templates in a pipeline file.
var (
	exampleData = regexp.MustCompile(`"\.\./examples/([^"]+)"`)
	templates   = regexp.MustCompile(`"([^"/]+\.tmpl)"`)
)

// Example returns the files of an example by path, arranged as in a checkout: the pipeline, its templates and its data.
// If minilm is not installed, the pipeline's default embedder is hashing.
func Example(name string, o Options, examples fs.FS) (map[string][]byte, error) {
	all := Examples(o.Pipelines)
	if !slices.Contains(all, name) {
		return nil, fmt.Errorf("unknown example %q: use one of %s", name, strings.Join(all, ", "))
	}
	text, err := fs.ReadFile(o.Pipelines, name+".hcl")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, found := range templates.FindAllSubmatch(text, -1) {
		if files["pipelines/"+string(found[1])], err = fs.ReadFile(o.Pipelines, string(found[1])); err != nil {
			return nil, err
		}
	}
	for _, found := range exampleData.FindAllSubmatch(text, -1) {
		err := fs.WalkDir(examples, string(found[1]), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files[path.Join("examples", file)], err = fs.ReadFile(examples, file)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if !o.MiniLM {
		if text, err = withHashing(text, name); err != nil {
			return nil, err
		}
	}
	files["pipelines/"+name+".hcl"] = text
	return files, nil
}

// withHashing makes hashing the default embedder of a pipeline file, if it has an embedder.
func withHashing(text []byte, name string) ([]byte, error) {
	t, err := parse(text, name+".hcl")
	if err != nil {
		return nil, err
	}
	t.set("default", "hashing", "variable embedder")
	if t.err != nil {
		return text, nil //nolint:nilerr // it embeds nothing
	}
	return t.bytes()
}

// short holds the templates, by the names of the pipeline files that come with racflow.
//
//go:embed short
var short embed.FS

// openTemplate reads a template. It puts a comment before the text, and variables after the template's own.
func openTemplate(name, comment, variables string) *template {
	text, err := short.ReadFile("short/" + name)
	if err != nil {
		return &template{name: name, err: err}
	}
	if variables != "" {
		before, after, found := bytes.Cut(text, []byte("\nmodel "))
		if !found {
			return &template{name: name, err: fmt.Errorf("%s has no model block that the variables stand before", name)}
		}
		bare := bytes.TrimRight(before, "\n")
		text = slices.Concat(bare, []byte("\n"+variables), before[len(bare):], []byte("\nmodel "), after)
	}
	text = oneLine.ReplaceAll(text, []byte("$1$2 {\n$1  $3\n$1}"))
	var b bytes.Buffer
	for line := range strings.Lines(comment) {
		b.WriteString(strings.TrimRight("# "+clean(line), " ") + "\n")
	}
	b.Write(text)
	parsed, err := parse(b.Bytes(), name)
	if err != nil {
		return &template{name: name, err: err}
	}
	return parsed
}

// oneLine matches one-line blocks that may get more arguments; alone matches such blocks that got none.
var (
	oneLine = regexp.MustCompile(`(?m)^( *)(source|input|store|embed) \{ (.+) \}$`)
	alone   = regexp.MustCompile(`(?m)^( *)(source|input|store|embed) \{\n *([^#\n]+)\n *\}$`)
)

func parse(text []byte, name string) (*template, error) {
	file, diags := hclwrite.ParseConfig(text, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("make a pipeline file: %w", diags)
	}
	return &template{file: file, name: name}, nil
}

// clean makes a text one line, without control characters, which could end a comment or control a terminal.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 }), " ")
}

// block finds a block by a path of types and labels, from the outermost block inwards. "source 2" is the second block
// of its type without a label.
func (t *template) block(path ...string) *hclwrite.Block {
	if t.err != nil {
		return nil
	}
	body := t.file.Body()
	var found *hclwrite.Block
	for _, step := range path {
		kind, label, _ := strings.Cut(step, " ")
		found = nil
		second := kind == "source" && label == "2"
		for _, b := range body.Blocks() {
			if second && b.Type() == kind {
				second = false
			} else if b.Type() == kind && (label == "" || label == "2" || len(b.Labels()) > 0 && b.Labels()[0] == label) {
				found = b
				break
			}
		}
		if found == nil {
			t.err = fmt.Errorf("%s has no block %s", t.name, strings.Join(path, " > "))
			return nil
		}
		body = found.Body()
	}
	return found
}

// set sets an argument of a block to a text, a number or a truth value.
func (t *template) set(argument string, value any, path ...string) {
	b := t.block(path...)
	if b == nil {
		return
	}
	switch v := value.(type) {
	case string:
		b.Body().SetAttributeValue(argument, cty.StringVal(v))
	case bool:
		b.Body().SetAttributeValue(argument, cty.BoolVal(v))
	case int:
		b.Body().SetAttributeValue(argument, cty.NumberIntVal(int64(v)))
	case hclwrite.Tokens:
		b.Body().SetAttributeRaw(argument, v)
	}
}

// remove removes an argument of a block.
func (t *template) remove(argument string, path ...string) {
	if b := t.block(path...); b != nil {
		b.Body().RemoveAttribute(argument)
	}
}

// notInName matches characters that names in pipeline files cannot have.
var notInName = regexp.MustCompile(`[^\pL\pN_-]+`)

// rename names the block of a kind after the pipeline file. If that file has the usual name, rename uses the name of
// its data, so that several files can be served together.
func (t *template) rename(kind, output, data string) {
	name := stem(output)
	if name == "pipeline" {
		name = stem(data)
	}
	name = strings.Trim(notInName.ReplaceAllString(name, "-"), "-")
	if b := t.block(kind); b != nil && hclsyntax.ValidIdentifier(name) {
		b.SetLabels([]string{name})
	}
}

// drop removes a block, with its comment.
func (t *template) drop(path ...string) {
	inner := t.block(path...)
	if inner == nil {
		return
	}
	body := t.file.Body()
	if len(path) > 1 {
		body = t.block(path[:len(path)-1]...).Body()
	}
	body.RemoveBlock(inner)
}

// columns sets which columns hold what, even if they have the usual names. If a column named id holds no ids, it sets
// an empty id.
func (t *template) columns(r *Rows, m source.Mapping, path ...string) {
	t.set("text", m.Text, path...)
	if m.Label != "" {
		t.set("label", m.Label, path...)
	}
	if m.Label != "" && m.Labels.Many && path[len(path)-1] == "source" {
		t.set("labels", "many", path...)
	}
	if m.Label != "" && m.Labels.Levels != "" && path[len(path)-1] == "source" {
		t.set("levels", m.Labels.Levels, path...)
	}
	if m.Label != "" && m.Labels.Separator != "" {
		t.set("separator", m.Labels.Separator, path...)
	}
	if r.From == nil {
		t.form(r.Form, path...)
	}
	if m.ID != "id" && (m.ID != "" || slices.Contains(r.Columns(), "id")) {
		t.set("id", m.ID, path...)
	}
}

// form sets how rows are written, if a run cannot detect it.
func (t *template) form(f source.Form, path ...string) {
	for _, a := range []struct{ name, value string }{{"format", string(f.Format)}, {"delimiter", f.Delimiter}, {"sheet", f.Sheet}} {
		if a.value != "" {
			t.set(a.name, a.value, path...)
		}
	}
	if f.Header != nil && !*f.Header {
		t.set("header", false, path...)
	}
	if f.HeaderRow > 1 {
		t.set("header_row", f.HeaderRow, path...)
	}
}

// expression returns HCL to be written unchanged.
func expression(text string) hclwrite.Tokens {
	return hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(text)}}
}

// emptied matches the empty lines that a removed block leaves at the end of the block around it.
var emptied = regexp.MustCompile(`\n\n+\}`)

// bytes returns the file, formatted.
func (t *template) bytes() ([]byte, error) {
	if t.err != nil {
		return nil, fmt.Errorf("make a pipeline file: %w", t.err)
	}
	text := alone.ReplaceAll(hclwrite.Format(t.file.Bytes()), []byte("$1$2 { $3 }"))
	return hclwrite.Format(emptied.ReplaceAll(text, []byte("\n}"))), nil
}
