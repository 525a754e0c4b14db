package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/scaffold"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/examples"
	"github.com/racflow/racflow/pipelines"
)

// initFlags are the flags of racflow init.
type initFlags struct {
	output, example string
	columns         []string
	sheet, header   string
	delimiter       string
	format          string
	yes, overwrite  bool
}

const initLong = `DATA is a file of rows (TSV, CSV, JSONL and whatever else run reads; a glob of them in quotes), or a folder, a
glob or a file of documents.

  rows with labels   a classification like intent.hcl; a tenth of the rows, a fifth of fewer than 500, is
                     held out of the knowledge, so that run and eval work at once
  other rows         a search among them, like contextual.hcl; documents likewise
  two files of rows  the pipeline knows the first and answers the second; a file that is called test, dev or
                     the like is the second

Exports of other programs (label-studio, prodigy, spaCy, rasa, fasttext, chats, folders by label) are
converted into NAME.rows.jsonl beside the pipeline. --format, --sheet, --header and --delimiter say how DATA is
written where that is found out wrongly.

Names and values of columns decide which hold the text, the label and the id. A doubtful guess is an error that
says what to type: --column corrects the guess, label= says that there is no label, and --yes takes it. The
embedder is minilm for English texts and multilingual-e5-small for others, where the model is on this machine, else
hashing. A larger one, all-mpnet-base-v2, answers more items rightly, and takes longer (pipelines/figures.md).

--example NAME writes a shipped pipeline, which has variables for all that can be set, and its data into a folder.`

func newInit() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init DATA...",
		Short: "Write a pipeline file for your own data, or an example",
		Long:  initLong,
		Example: `  racflow init tickets.csv
  racflow init --column text=body --column label=queue --output queues.hcl tickets.jsonl
  racflow init handbook/
  racflow init --example intent`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.example != "" {
				return f.writeExample(c, args)
			}
			if len(args) == 0 {
				return errors.New("name a file of rows or a folder of documents, such as: racflow init tickets.csv; or an example: racflow init --example intent")
			}
			return f.write(c, args)
		},
	}
	c.Flags().StringVarP(&f.output, "output", "o", "pipeline.hcl", "write the pipeline to `FILE.hcl`")
	c.Flags().StringVar(&f.example, "example", "", "write the example `NAME` instead, into the folder DATA (default: one by its name): "+strings.Join(scaffold.Examples(pipelines.Files), ", "))
	c.Flags().StringArrayVar(&f.columns, "column", nil, "take the text, label or id of rows from a column, or of JSON from a path such as messages[1].content: `text=NAME` (may be repeated)")
	c.Flags().StringVar(&f.format, "format", "", "how DATA is written, where that is found out wrongly: "+strings.Join(slices.Concat(grammar.Formats(), scaffold.Forms()), ", "))
	c.Flags().StringVar(&f.sheet, "sheet", "", "read the `SHEET` of a workbook, or the array of that name in a JSON object")
	c.Flags().StringVar(&f.header, "header", "", "the columns are named in `ROW`, from 1 on; none: no row names them")
	c.Flags().StringVar(&f.delimiter, "delimiter", "", "the `CHARACTER` between the fields of a line")
	c.Flags().BoolVar(&f.yes, "yes", false, "take the guess, however doubtful")
	c.Flags().Bool("full", false, "")
	_ = c.Flags().MarkDeprecated("full", "racflow init --example intent, or contextual, writes a file with all that can be set") // the flag exists
	c.Flags().BoolVar(&f.overwrite, "overwrite", false, "replace files that are there")
	return c
}

// hasMiniLM reports whether the embedding model is on this machine.
func hasMiniLM() bool { return hasModel("minilm") }

func hasModel(name string) bool {
	status, err := model.StatusOf(name)
	return err == nil && status.Installed
}

func (f *initFlags) write(c *cobra.Command, paths []string) error {
	if err := f.free(f.output); err != nil { // before reading anything
		return err
	}
	columns, err := f.mapping()
	if err != nil {
		return err
	}
	how, err := f.how()
	if err != nil {
		return err
	}
	data, err := scaffold.Look(c.Context(), paths, how)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	for _, r := range data.Rows {
		for _, step := range []func() error{func() error { return r.Map(columns) }, r.Read} {
			if _, err := bounded.Interruptible(c.Context(), func() (struct{}, error) { return struct{}{}, step() }); err != nil {
				return err
			}
			if r.Unsure != "" && !f.yes {
				return errors.New(r.Unsure + "; --yes takes the first")
			}
		}
	}
	data.Describe(out)
	plan, err := scaffold.Make(data, scaffold.Options{Output: f.output, MiniLM: hasMiniLM(), Multilingual: hasModel("multilingual-e5-small")})
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(plan.Rows)) {
		if err := f.free(path); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(plan.Rows)) {
		if err := f.create(path, plan.Rows[path]); err != nil {
			return err
		}
	}
	if err := f.create(f.output, plan.File); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, said := range plan.Said {
		for _, line := range terminal.Wrap(said, int(terminalWidth(out))) {
			fmt.Fprintln(out, line)
		}
	}
	fmt.Fprintf(out, "\n%s is written. Next:\n\n", terminal.Line(f.output))
	table := terminal.NewTable(out)
	for _, s := range plan.Next {
		fmt.Fprintf(table, "  %s\t# %s\n", terminal.Line(s.Command), terminal.Line(s.What))
	}
	return table.Flush()
}

// how reads the flags that describe how rows are written.
func (f *initFlags) how() (how scaffold.How, err error) {
	how.Form.Sheet, how.Form.Delimiter = f.sheet, f.delimiter
	if f.delimiter == `\t` || f.delimiter == "tab" {
		how.Form.Delimiter = "\t"
	}
	row, err := strconv.Atoi(f.header)
	switch {
	case f.header == "none" || err == nil && row == 0:
		how.Form.Header = new(bool)
	case f.header != "" && (err != nil || row < 0):
		return how, fmt.Errorf("--header %s: write the number of the row that names the columns, from 1 on, or none", f.header)
	}
	how.Form.HeaderRow = row
	if all := slices.Concat(grammar.Formats(), scaffold.Forms()); f.format != "" && !slices.Contains(all, f.format) {
		return how, fmt.Errorf("--format %s: there are %s", f.format, strings.Join(all, ", "))
	}
	if slices.Contains(scaffold.Forms(), f.format) {
		how.As = f.format
	} else {
		how.Form.Format = source.Format(f.format)
	}
	return how, nil
}

// mapping reads --column. A label or an id may be empty: the file has none.
func (f *initFlags) mapping() (map[string]string, error) {
	columns := map[string]string{}
	for _, given := range f.columns {
		means, column, ok := strings.Cut(given, "=")
		if !ok || !slices.Contains([]string{"text", "label", "id"}, means) {
			return nil, fmt.Errorf("--column %s: write text=NAME, label=NAME or id=NAME", given)
		}
		columns[means] = column
	}
	return columns, nil
}

func (f *initFlags) writeExample(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return errors.New("name one folder that the example is written to")
	}
	folder := f.example
	if len(args) == 1 {
		folder = args[0]
	}
	files, err := scaffold.Example(f.example, scaffold.Options{MiniLM: hasMiniLM(), Pipelines: pipelines.Files}, examples.Files)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := f.free(filepath.Join(folder, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the example: %w", err)
		}
		if err := f.create(path, files[name]); err != nil {
			return err
		}
	}
	verb, question := "run", ""
	if slices.Contains([]string{"contextual", "keywords"}, f.example) {
		verb, question = "ask", ` "How long does the gateway wait when it is shut down?"`
	}
	weaker := ""
	if !hasMiniLM() {
		weaker = " Its embedder is hashing, since the model minilm is not on this machine: racflow model pull minilm brings it, and -var embedder=minilm uses it."
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "The example is in %s (%d files).%[6]s Next:\n\n  cd %[1]s\n  racflow %[3]s pipelines/%[4]s.hcl%[5]s\n", terminal.Line(folder), len(files), verb, f.example, question, weaker)
	return err
}

// free refuses to write a file that exists.
func (f *initFlags) free(path string) error {
	if _, err := os.Lstat(path); f.overwrite || errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("%s is there already: name another file with --output, or replace it with --overwrite", path)
}

// create writes a new file, or replaces one if that is allowed.
func (f *initFlags) create(path string, text []byte) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.overwrite {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	out, err := os.OpenFile(path, how, 0o644)
	if err != nil {
		return fmt.Errorf("write the pipeline: %w", err)
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write the pipeline: %w", err)
	}
	if grants, err := trust.OpenGrants(); err == nil && filepath.Ext(path) == ".hcl" {
		_ = grants.Written(path, text) // otherwise the first run asks
	}
	return nil
}
