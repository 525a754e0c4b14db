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

// What a template may take. Anybody's template runs over texts of anybody: without bounds
// a loop over numbers, a template that calls itself, or texts that are joined with themselves
// would take all time and memory.
const (
	maxTemplate = 256 << 10 // bytes of its source
	maxBytes    = 16 << 20  // of a prompt, and of all texts that are made for it
	maxParts    = 2 << 20   // parts of the template that are executed for a prompt
	perTick     = 8         // parts that a loop or a call counts as in addition
	maxCalls    = 100       // templates that have called each other
	maxTime     = 10 * time.Second
)

// The functions that guard puts into a template. No template can name them: they are not
// known yet when it is parsed.
const (
	tickName  = "__tick"
	leaveName = "__leave"
)

// budget is what is left for one prompt.
type budget struct {
	bytes, parts, calls int
	deadline            time.Time
}

func newBudget() *budget {
	return &budget{bytes: maxBytes, parts: maxParts, calls: maxCalls, deadline: time.Now().Add(maxTime)}
}

// boundError says which bound of a template was exceeded.
type boundError struct{ text string }

func (e *boundError) Error() string { return e.text }

// tick takes the parts of a loop's body, or of a template that is called, at a place.
func (b *budget) tick(parts, calls int, at string) (string, error) {
	b.parts -= parts + perTick
	b.calls -= calls
	switch {
	case b.parts < 0:
		return "", &boundError{fmt.Sprintf("%s: the loops of a template execute at most %d of its parts for a prompt; range over less", at, maxParts)}
	case b.calls < 0:
		return "", &boundError{fmt.Sprintf("%s: more than %d templates call each other; let none call itself without an end", at, maxCalls)}
	case time.Now().After(b.deadline):
		return "", &boundError{fmt.Sprintf("%s: writing a prompt takes longer than %v; let the template do less", at, maxTime)}
	}
	return "", nil
}

// make returns a text that a function of the template makes, of at most so many bytes.
func (b *budget) make(most int, text func() string) (string, error) {
	if most > b.bytes {
		return "", errLong
	}
	made := text()
	b.bytes -= len(made)
	return made, nil
}

var errLong = &boundError{fmt.Sprintf("a template makes at most %d MiB of text for a prompt; show less of the texts, or join them less often", maxBytes>>20)}

// functions are those of templates. The ones that make texts are Go's own, within the budget.
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
		tickName:  b.tick,
		leaveName: func() string { b.calls++; return "" },
	}
}

// length is how long values are as text, at most.
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
	return len(fmt.Sprintf("%#v", a)) // of the item: bounded
}

var digits = regexp.MustCompile(`[0-9]+|\*`)

// formatted is how long a formatted text is, at most: each verb may show any argument,
// quoted, and as wide as any number says.
func formatted(format string, args []any) int {
	each, wide := 0, 0
	for _, a := range args {
		each = max(each, 10*longest(a))
	}
	for _, d := range digits.FindAllString(format, -1) {
		n, err := strconv.Atoi(d)
		if err != nil {
			n = 1e6 // the widest that fmt obeys, and what an argument may say
		}
		wide = max(wide, n)
	}
	if len(args) == 0 {
		each = 30 // of what is missing
	}
	return len(format) + strings.Count(format, "%")*(each+min(wide, 1e6)+30)
}

// guard makes the loops and the definitions of a template count what they do.
func guard(t *text.Template) error {
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		if err := guardList(one.Tree, one.Root, 1); err != nil {
			return err
		}
		leave, err := call("%s", leaveName)
		if err != nil {
			return err
		}
		one.Root.Nodes = append(one.Root.Nodes, leave)
	}
	return nil
}

// guardList puts a tick before a list and before the body of each loop in it.
func guardList(tree *parse.Tree, list *parse.ListNode, calls int) error {
	if list == nil {
		return nil
	}
	parts := count(list)
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
		inside := -1 // no tick: the list around it has counted it
		if loops {
			inside = 0
		}
		if err := errors.Join(guardList(tree, branch.List, inside), guardList(tree, branch.ElseList, -1)); err != nil {
			return err
		}
	}
	if calls < 0 {
		return nil
	}
	at, _ := tree.ErrorContext(list)
	tick, err := call("%s %d %d %q", tickName, parts, calls, at)
	list.Nodes = append([]parse.Node{tick}, list.Nodes...)
	return err
}

// call is the part of a template that calls a function.
func call(format string, args ...any) (parse.Node, error) {
	stubs := text.FuncMap{tickName: (&budget{}).tick, leaveName: func() string { return "" }}
	t, err := text.New("").Funcs(stubs).Parse("{{" + fmt.Sprintf(format, args...) + "}}")
	if err != nil {
		return nil, err
	}
	return t.Root.Nodes[0], nil
}

// count is how many parts a template has.
func count(node parse.Node) int {
	branch := func(b *parse.BranchNode) int {
		n := 1 + count(b.Pipe) + count(b.List)
		if b.ElseList != nil {
			n += count(b.ElseList)
		}
		return n
	}
	n := 1
	switch node := node.(type) {
	case *parse.ListNode:
		for _, one := range node.Nodes {
			n += count(one)
		}
	case *parse.ActionNode:
		n += count(node.Pipe)
	case *parse.PipeNode:
		for _, c := range node.Cmds {
			for _, arg := range c.Args {
				n += count(arg)
			}
		}
	case *parse.RangeNode:
		n = branch(&node.BranchNode)
	case *parse.IfNode:
		n = branch(&node.BranchNode)
	case *parse.WithNode:
		n = branch(&node.BranchNode)
	}
	return n
}

// bounded is a text that may become only so long.
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
