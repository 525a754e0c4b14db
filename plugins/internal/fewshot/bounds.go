package fewshot

import (
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	text "text/template"
	"text/template/parse"
	"time"
)

// Bounds of a template. Neither templates nor the texts that they show are trusted. Without bounds, a loop over
// numbers, a template that calls itself, or texts joined with themselves could take unlimited time and memory.
const (
	maxTemplate = 256 << 10 // bytes of its source
	maxBytes    = 16 << 20  // of a prompt, and of all texts made for it
	maxTicks    = 1 << 18   // rounds of loops and calls of templates in a prompt
	maxTime     = 10 * time.Second
	maxNested   = 30 // nested loops, and nested calls of templates: unwinding many after an error takes text/template long
)

// Functions that guard adds to a template. A template cannot call them itself: they are not defined while it is
// parsed.
const tickName, enterName, leaveName = "__tick", "__enter", "__leave"

// budget is what one prompt may still use.
type budget struct {
	bytes, ticks int
	calls        int // depth of nested template calls
	deadline     time.Time
}

func newBudget() *budget {
	return &budget{bytes: maxBytes, ticks: maxTicks, deadline: time.Now().Add(maxTime)}
}

// boundError says which bound of a template was exceeded.
type boundError struct{ text string }

func (e *boundError) Error() string { return e.text }

// tick counts a round of a loop or a call of a template; at is its place.
func (b *budget) tick(at string) (string, error) {
	b.ticks--
	switch {
	case b.ticks < 0:
		return "", &boundError{fmt.Sprintf("%s: the loops of a template go round at most %d times for a prompt; range over less", at, maxTicks)}
	case time.Now().After(b.deadline):
		return "", &boundError{fmt.Sprintf("%s: writing a prompt takes longer than %v; let the template do less", at, maxTime)}
	}
	return "", nil
}

// enter begins the call of a template by another one.
func (b *budget) enter(at string) (string, error) {
	if b.calls++; b.calls > maxNested {
		return "", &boundError{fmt.Sprintf("%s: templates call each other more than %d deep; call fewer", at, maxNested)}
	}
	return b.tick(at)
}

// leave ends the call of a template by another one.
func (b *budget) leave() string {
	b.calls--
	return ""
}

// make returns the text of a template's function. most is an upper bound of its bytes. The budget must have that many
// bytes left; only the real length is spent.
func (b *budget) make(most int, text func() string) (string, error) {
	if most > b.bytes {
		return "", errLong
	}
	made := text()
	b.bytes -= len(made)
	return made, nil
}

var errLong = &boundError{fmt.Sprintf("a template makes at most %d MiB of text for a prompt; show less of the texts, or join them less often", maxBytes>>20)}

// functions returns the functions of templates: Go's own text functions, within the budget, and those of guard.
func (b *budget) functions() text.FuncMap {
	escaped := func(escape func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			return b.make(6*length(args), func() string { return escape(args...) })
		}
	}
	return text.FuncMap{
		"join": func(texts []string, by string) (string, error) {
			n := len(by) * len(texts)
			for _, t := range texts {
				n += len(t)
			}
			return b.make(n, func() string { return strings.Join(texts, by) })
		},
		"print": func(args ...any) (string, error) {
			return b.make(length(args), func() string { return fmt.Sprint(args...) })
		},
		"println": func(args ...any) (string, error) {
			return b.make(length(args), func() string { return fmt.Sprintln(args...) })
		},
		"printf": func(format string, args ...any) (string, error) {
			return b.make(formatted(format, args), func() string { return fmt.Sprintf(format, args...) })
		},
		"html": escaped(template.HTMLEscaper), "js": escaped(template.JSEscaper), "urlquery": escaped(template.URLQueryEscaper),
		tickName: b.tick, enterName: b.enter, leaveName: b.leave,
	}
}

// length returns an upper bound of the bytes of values as text, each with a separator.
func length(args []any) int {
	n := 0
	for _, a := range args {
		n += 1 + longest(a)
	}
	return n
}

func longest(a any) int {
	if t, ok := a.(string); ok {
		return len(t)
	}
	return len(fmt.Sprintf("%#v", a)) // a part of the item, whose size is bounded
}

var digits = regexp.MustCompile(`[0-9]+|\*`)

// formatted returns an upper bound of the bytes of a formatted text. It assumes that each verb shows the longest
// argument, quoted, at the largest width in the format.
func formatted(format string, args []any) int {
	each, wide := 0, 0
	for _, a := range args {
		each = max(each, 10*longest(a))
	}
	for _, d := range digits.FindAllString(format, -1) {
		n, err := strconv.Atoi(d)
		if err != nil {
			n = 1e6 // the largest width that fmt accepts; * may take it from an argument
		}
		wide = max(wide, n)
	}
	if len(args) == 0 {
		each = 30 // fmt's note about a missing argument
	}
	return len(format) + strings.Count(format, "%")*(each+min(wide, 1e6)+30)
}

// guard adds counting calls to the loops and definitions of a template.
func guard(t *text.Template) error {
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		if err := guardList(one.Tree, one.Root, 0); err != nil {
			return err
		}
		err := errors.Join(call(one.Tree, one.Root, enterName), call(one.Tree, one.Root, leaveName))
		if err != nil {
			return err
		}
	}
	return nil
}

// guardList adds a tick to the beginning of each loop's body in a list. depth is the number of loops around the list.
func guardList(tree *parse.Tree, list *parse.ListNode, depth int) error {
	if list == nil {
		return nil
	}
	if depth > maxNested {
		return &boundError{fmt.Sprintf("%s: more than %d loops stand in each other; nest fewer", place(tree, list), maxNested)}
	}
	for _, node := range list.Nodes {
		var branch *parse.BranchNode
		loops := false
		switch n := node.(type) {
		case *parse.RangeNode:
			branch, loops = &n.BranchNode, true
		case *parse.IfNode:
			branch = &n.BranchNode
		case *parse.WithNode:
			branch = &n.BranchNode
		default:
			continue
		}
		inner := depth
		if loops {
			inner++
		}
		if err := errors.Join(guardList(tree, branch.List, inner), guardList(tree, branch.ElseList, inner)); err != nil {
			return err
		}
		if loops {
			if err := call(tree, branch.List, tickName); err != nil {
				return err
			}
		}
	}
	return nil
}

// call adds a call of leave to the end of a list, or of tick or enter to its beginning.
func call(tree *parse.Tree, list *parse.ListNode, name string) error {
	source := fmt.Sprintf("{{%s %q}}", name, place(tree, list))
	if name == leaveName {
		source = "{{" + name + "}}"
	}
	made, err := text.New("").Funcs((&budget{}).functions()).Parse(source)
	if err != nil {
		return err
	}
	if name == leaveName {
		list.Nodes = append(list.Nodes, made.Root.Nodes[0])
	} else {
		list.Nodes = append([]parse.Node{made.Root.Nodes[0]}, list.Nodes...)
	}
	return nil
}

// place returns the position of a list. An empty text node represents the list, because ErrorContext would print the
// whole list.
func place(tree *parse.Tree, list *parse.ListNode) string {
	at, _ := tree.ErrorContext(&parse.TextNode{NodeType: parse.NodeText, Pos: list.Pos})
	return at
}

// bounded is a text of limited length.
type bounded struct{ strings.Builder }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxBytes {
		return 0, errLong
	}
	return b.Builder.Write(p)
}

// execute executes a guarded template within a budget.
func execute(t *text.Template, data any) (string, error) {
	within, err := t.Clone()
	if err != nil {
		return "", err
	}
	var out bounded
	err = within.Funcs(newBudget().functions()).Execute(&out, data)
	if exceeded := new(boundError); errors.As(err, &exceeded) {
		return "", exceeded
	}
	return out.String(), err
}
