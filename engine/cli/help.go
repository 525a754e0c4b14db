package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/racflow/racflow/engine/internal/terminal"
)

// --help of a verb fits on a screen: a sentence, the usage, examples and the flags. racflow help VERB
// adds how the verb works (cobra's Long), and racflow help --markdown writes both as the pages below
// cmd.

// reference is the address of the pages that racflow help --markdown writes.
const reference = "https://github.com/racflow/racflow/blob/main/cmd/"

// Groups of verbs, in the order in which people need them.
const (
	startGroup   = "start"
	improveGroup = "improve"
	operateGroup = "operate"
	extendGroup  = "extend"
)

func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: startGroup, Title: "Start"},
		{ID: improveGroup, Title: "Improve the answers"},
		{ID: operateGroup, Title: "Operate"},
		{ID: extendGroup, Title: "Extend and look inside"},
	}
}

// Commands are shown in the order of newRoot.
func init() { cobra.EnableCommandSorting = false }

// inGroup adds verbs to the root, in a group of its help.
func inGroup(root *cobra.Command, group string, verbs ...*cobra.Command) {
	for _, verb := range verbs {
		verb.GroupID = group
	}
	root.AddCommand(verbs...)
}

// ownFlags is the section of all flags that no call of section has moved.
const ownFlags = "Flags"

// allCommands is the section of flags that all commands have.
const allCommands = "All commands"

// sectionKey is the annotation that names the section of a flag.
const sectionKey = "racflow_section"

// section calls add, and shows the flags that it registers under a title of their own.
func section(c *cobra.Command, title string, add func(*cobra.Command)) {
	before := map[string]bool{}
	c.Flags().VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	add(c)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if before[f.Name] || f.Annotations[sectionKey] != nil {
			return
		}
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[sectionKey] = []string{title}
	})
}

// sections returns the flags of a verb by section, in the order of registration. The verb's own
// section comes first, and the flags of all commands last.
func sections(c *cobra.Command) (titles []string, flags map[string]*pflag.FlagSet) {
	flags = map[string]*pflag.FlagSet{}
	add := func(title string, f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if flags[title] == nil {
			flags[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			flags[title].SortFlags = false
			titles = append(titles, title)
		}
		flags[title].AddFlag(f)
	}
	c.InitDefaultHelpFlag()
	all := c.Root().PersistentFlags()
	c.Flags().SortFlags = false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch at := f.Annotations[sectionKey]; {
		case at != nil:
			add(at[0], f)
		case f.Name != "help" && all.Lookup(f.Name) == nil:
			add(ownFlags, f)
		}
	})
	if i := slices.Index(titles, ownFlags); i > 0 {
		titles = slices.Insert(slices.Delete(titles, i, i+1), 0, ownFlags)
	}
	all.VisitAll(func(f *pflag.Flag) { add(allCommands, f) })
	add(allCommands, c.Flags().Lookup("help"))
	return titles, flags
}

// writeHelp writes the help of a verb; long adds how it works.
func writeHelp(w io.Writer, c *cobra.Command, long bool) error {
	var b strings.Builder
	width := int(terminalWidth(w))
	fmt.Fprintf(&b, "%s.\n", c.Short)
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", usageOf(c))
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	writeCommands(&b, c)
	titles, flags := sections(c)
	for _, title := range titles {
		fmt.Fprintf(&b, "\n%s:\n%s", title, flags[title].FlagUsagesWrapped(width))
	}
	if c == c.Root() || long && c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Trim(c.Long, "\n"))
	}
	if c == c.Root() {
		fmt.Fprintf(&b, "\nracflow COMMAND --help shows the flags of a command, racflow help COMMAND how it works.\nManual: %sREADME.md\n", reference)
	} else {
		more := ""
		if c.Long != "" && !long {
			more = "How it works: racflow help " + strings.TrimPrefix(c.CommandPath(), "racflow ") + "\n"
		}
		fmt.Fprintf(&b, "\n%sManual: %s%s\n", more, reference, pageOf(c))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func usageOf(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND"
	}
	return c.UseLine()
}

// writeCommands lists the subcommands of a command, by group if there are groups.
func writeCommands(w io.Writer, c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	width := 0
	for _, sub := range c.Commands() {
		width = max(width, len(sub.Name()))
	}
	list := func(title, group string) {
		fmt.Fprintf(w, "\n%s:\n", title)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group {
				fmt.Fprintf(w, "  %-*s  %s\n", width, sub.Name(), sub.Short)
			}
		}
	}
	for _, g := range c.Groups() {
		list(g.Title, g.ID)
	}
	if len(c.Groups()) == 0 {
		list("Commands", "")
	}
}

// pageOf returns the name of the page about a command, below reference.
func pageOf(c *cobra.Command) string {
	top := c
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	page := "reference/" + top.Name() + ".md"
	if c != top {
		page += "#" + strings.ReplaceAll(c.CommandPath(), " ", "-")
	}
	return page
}

const helpLong = `Show what a command is for and how it works. racflow COMMAND --help shows its examples and flags alone.

--markdown writes the pages of the manual about the commands into a folder: README.md, and a page for each command in reference.`

func newHelp() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show how a command works",
		Long:  helpLong,
		Example: `  racflow help run
  racflow help runs resume
  racflow help --markdown cmd`,
		Args: func(c *cobra.Command, words []string) error {
			found, rest, err := c.Root().Find(words)
			if err == nil && found.HasSubCommands() {
				err = commandWord(found, rest)
			}
			return err
		},
		ValidArgsFunction: func(c *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			var all []string
			found, _, err := c.Root().Find(words)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() {
					all = append(all, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, words []string) error {
			if folder != "" {
				return writeManual(folder, c.Root())
			}
			found, _, err := c.Root().Find(words)
			if err != nil {
				return err
			}
			return writeHelp(c.OutOrStdout(), found, true)
		},
	}
	c.Flags().StringVar(&folder, "markdown", "", "write the pages of the manual about the commands into `DIR`")
	return c
}

// writeManual writes the pages about the commands into a folder.
func writeManual(folder string, root *cobra.Command) error {
	var index bytes.Buffer
	fmt.Fprint(&index, "# The command line\n\nThis page and those that it links are written by `make generate` from the commands themselves.\n"+
		"`racflow COMMAND --help` shows the short form of each, and `racflow help COMMAND` the text of its page.\n")
	if err := os.MkdirAll(filepath.Join(folder, "reference"), 0o755); err != nil {
		return err
	}
	for _, g := range root.Groups() {
		fmt.Fprintf(&index, "\n## %s\n\n| command | what it does |\n|---|---|\n", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID != g.ID {
				continue
			}
			fmt.Fprintf(&index, "| [%s](%s) | %s |\n", c.Name(), pageOf(c), c.Short)
			for _, sub := range c.Commands() {
				fmt.Fprintf(&index, "| [%s %s](%s) | %s |\n", c.Name(), sub.Name(), pageOf(sub), sub.Short)
			}
			var page bytes.Buffer
			writePage(&page, c)
			if err := os.WriteFile(filepath.Join(folder, "reference", c.Name()+".md"), page.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(&index, "\n## For all commands\n\n%s\n\n", markdown(rootLong))
	_, flags := sections(root)
	writeFlags(&index, flags[allCommands])
	return os.WriteFile(filepath.Join(folder, "README.md"), index.Bytes(), 0o644)
}

// writePage writes the help of a command and of its subcommands, in Markdown.
func writePage(w io.Writer, c *cobra.Command) {
	level := "#"
	if c.Parent().HasParent() {
		level = "##"
	}
	fmt.Fprintf(w, "%s %s\n\n%s.\n\n    %s\n", level, c.CommandPath(), c.Short, usageOf(c))
	if c.Example != "" {
		fmt.Fprintf(w, "\nFor example:\n\n%s\n", markdown(c.Example))
	}
	titles, flags := sections(c)
	for _, title := range titles {
		if title == allCommands {
			continue
		}
		fmt.Fprintf(w, "\n**%s**\n\n", title)
		writeFlags(w, flags[title])
	}
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", markdown(c.Long))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintln(w)
			writePage(w, sub)
		}
	}
}

func writeFlags(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprint(w, "| flag | what it does |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && !slices.Contains([]string{"false", "0", "[]", "0s"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", name, strings.ReplaceAll(terminal.Line(usage), "|", `\|`))
	})
}

// markdown converts a text of the help to Markdown. In Markdown, four spaces before a line mean
// preformatted text; the help uses two or more.
func markdown(text string) string {
	var b strings.Builder
	before := ""   // added to every line of the block
	block := false // the previous line is in a block
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented && !block {
			if before = "  "; strings.HasPrefix(line, "    ") {
				before = ""
			}
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n\n") {
				b.WriteString("\n")
			}
		}
		if block = indented; indented {
			b.WriteString(before)
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n")
}
