package rule

import (
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// Mentions reports whether the rule compares something with the text, such as a
// vote's voter with a name: by ==, in, startsWith, endsWith, contains or matches.
// The values of variables count; names of fields do not.
func (r *Rule) Mentions(text string) bool {
	if r == nil {
		return false
	}
	for _, holds := range r.mentions {
		if holds(text) {
			return true
		}
	}
	return false
}

// mentionsOf returns the comparisons with texts in a checked rule.
func (c *compiling) mentionsOf(tree *parser.Tree) (all []func(string) bool) {
	seen := map[ast.Node]bool{} // other than as a whole text
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		switch n := (*n).(type) {
		case *ast.MemberNode:
			of := n.Node.Nature().Deref(&c.config.NtCache)
			seen[n.Property] = of.IsStruct()
		case *ast.BinaryNode:
			part, ok := n.Right.(*ast.StringNode)
			if !ok {
				return
			}
			seen[part] = true
			switch n.Operator {
			case "startsWith":
				all = append(all, func(text string) bool { return strings.HasPrefix(text, part.Value) })
			case "endsWith":
				all = append(all, func(text string) bool { return strings.HasSuffix(text, part.Value) })
			case "contains":
				all = append(all, func(text string) bool { return strings.Contains(text, part.Value) })
			case "matches":
				all = append(all, regexp.MustCompile(part.Value).MatchString) // checkPatterns has compiled it
			default:
				seen[part] = false
			}
		}
	}))
	ast.Walk(&tree.Node, visit(func(n *ast.Node) {
		if whole, ok := (*n).(*ast.StringNode); ok && !seen[whole] {
			all = append(all, func(text string) bool { return text == whole.Value })
		}
	}))
	return all
}
