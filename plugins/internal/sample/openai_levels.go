package sample

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// This file asks for a label level by level (sdk.Prompt.Levels). The prompt's chat shows the nodes of the
// first level; each further question lists those below the answer, by the last part of their names, in
// the same chat, so that a service has its beginning in its cache. With the answer that none of them fits,
// the node above is the answer. Where only one node lies below, and nothing can end above it, nobody is
// asked. An answer that is not in the list ends the way down with a reason, which no rule accepts.
//
// The turn of the model is its answer alone, without reasons and in one form: so samples that agree on a
// node go on with one request. Each answer is cached by itself. The sample has the usage of all levels, the
// product of their weights and the key of the last answer.

// tree are the labels of a prompt, by level.
type tree struct {
	levels string
	below  map[string][]string // last parts of the nodes below a node, in the order of the prompt
	labels map[string]bool
}

// newTree returns the tree of a prompt's labels; nil: there are none.
func newTree(p sdk.Prompt) *tree {
	if len(p.Labels) == 0 {
		return nil
	}
	t := &tree{levels: p.Levels, below: map[string][]string{}, labels: map[string]bool{}}
	seen := map[string]bool{}
	for _, label := range p.Labels {
		above := ""
		for _, node := range (sdk.LabelForm{Levels: p.Levels}).Path(label) {
			if !seen[node] {
				seen[node] = true
				t.below[above] = append(t.below[above], t.part(node, above))
			}
			above = node
		}
		t.labels[label] = true
	}
	return t
}

// part returns what of a node's name follows that of a node above.
func (t *tree) part(node, above string) string {
	if above == "" {
		return node
	}
	return strings.TrimPrefix(node, above+t.levels)
}

// child returns the node of a part below another.
func (t *tree) child(above, part string) string {
	if above == "" {
		return part
	}
	return above + t.levels + part
}

// down goes from a node on to where there is something to ask, and reports whether there is.
func (t *tree) down(node string) (string, bool) {
	for len(t.below[node]) == 1 && !t.labels[node] {
		node = t.child(node, t.below[node][0])
	}
	return node, len(t.below[node]) > 0
}

// descend replaces the label of an answer, which is the last part of a node's name or the whole name, by
// the node, and reports whether to ask for what lies below it.
func (q *question) descend(a *sdk.Answer) bool {
	t := q.tree
	if t == nil || a.Reason != "" {
		return false
	}
	if a.Label == "" {
		a.Label = q.node
		return false
	}
	part := t.part(a.Label, q.node)
	a.Label = t.child(q.node, part)
	if !slices.Contains(q.prompt.Labels, part) && !t.labels[a.Label] {
		a.Reason = "it is none of the labels that were listed"
		return false
	}
	node, more := t.down(a.Label)
	a.Label = node
	return more
}

// next reads what slots were filled with, and returns those that go on with a question about what lies
// below the answer.
func (v *openAIVoter) next(all []*slot) (further []*slot, err error) {
	type step struct {
		from *question
		node string
	}
	asked := map[step]*question{}
	for _, s := range all {
		above, q := s.sample, s.question
		s.sample = v.read(s)
		a := &s.sample.Answers[0]
		more := q.descend(a)
		if above.Answers != nil {
			s.sample.Usage.Add(above.Usage)
			s.sample.Text = q.says(a.Label)
			a.Weight *= above.Answers[0].Weight
			a.Explanation = strings.Trim(above.Answers[0].Explanation+"\n"+a.Explanation, "\n")
			a.Reading = cmp.Or(a.Reading, above.Answers[0].Reading)
		}
		if !more {
			continue
		}
		of := step{q, a.Label}
		if asked[of] == nil {
			if asked[of], err = v.below(q, a.Label); err != nil {
				return nil, err
			}
		}
		s.question, s.given, s.key = asked[of], false, asked[of].key(s.backend, s.number)
		further = append(further, s)
	}
	return further, nil
}

// says is an answer of a label.
func (q *question) says(label string) string {
	if label == "" || q.prompt.Fields == nil {
		return label
	}
	return "{" + fewshot.JSON(sdk.LabelProperty) + ": " + fewshot.JSON(label) + "}"
}

// stays is the answer that none of the nodes below another fits, where the prompt has no such answer.
const stays = "none of these"

// below returns the question about what lies below a node, which is the answer to another.
func (v *openAIVoter) below(q *question, node string) (*question, error) {
	b := *q
	b.node, b.prompt.None = node, cmp.Or(q.prompt.None, stays)
	b.prompt.Labels = fewshot.Allowed(q.tree.below[node], b.prompt.None)
	if err := v.structure(&b); err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Find the label below %s that fits the text best. The only ones there are:\n", fewshot.OneLine(node))
	for _, part := range b.prompt.Labels {
		fmt.Fprintf(&text, "- %s\n", fewshot.OneLine(part))
	}
	fmt.Fprintf(&text, "\nIf none of them fits, the label is: %s\nAnswer in the same form.", b.prompt.None)
	b.request.Messages = append(slices.Clip(q.request.Messages),
		sdk.Message{Role: sdk.MessageAssistant, Text: q.says(q.tree.part(node, q.node))},
		sdk.Message{Role: sdk.MessageUser, Text: text.String(), Shared: true})
	if q.node == "" {
		b.request.About += ", below"
	}
	b.bases = v.bases(&b)
	return &b, nil
}

// way is what n answers to a question take, with those to the questions below: likely as on the way to the
// first label of each list, which is the likeliest, and at most as on the one that takes most.
func (v *openAIVoter) way(q *question, from *Backend, n, number int) (sdk.Forecast, error) {
	if q.tree == nil {
		return v.answers(q, from, n, number)
	}
	var nodes []string
	for node := q.node; ; {
		next, more := q.tree.down(q.tree.child(node, q.tree.below[node][0]))
		if !more {
			break
		}
		node, nodes = next, append(nodes, next)
	}
	f, err := v.walk(q, from, n, number, nodes)
	if err != nil {
		return f, err
	}
	widest := *q
	widest.tree, nodes = q.tree.widest(q.node)
	most, err := v.walk(&widest, from, n, number, nodes)
	f.Most, f.MostRequests = most.Most, most.MostRequests
	return f, err
}

// walk is what n answers to a question take, and to those below the nodes one after the other.
func (v *openAIVoter) walk(q *question, from *Backend, n, number int, nodes []string) (f sdk.Forecast, err error) {
	for i := 0; ; i++ {
		one, err := v.answers(q, from, n, number)
		if f.Add(one); err != nil || i == len(nodes) {
			return f, err
		}
		if q, err = v.below(q, nodes[i]); err != nil {
			return f, err
		}
	}
}

// widest returns the nodes of a way down that takes at least as much as any below a node, and the tree in
// which it lies: at each step the longest name that a node has there, and the longest list.
func (t *tree) widest(from string) (*tree, []string) {
	size := func(list []string) int { return len(fewshot.JSON(list)) }
	var nodes []string
	var lists [][]string
	var visit func(node string, step int)
	visit = func(node string, step int) {
		for _, part := range t.below[node] {
			at, more := t.down(t.child(node, part))
			if !more {
				continue
			}
			if step == len(nodes) {
				nodes, lists = append(nodes, at), append(lists, nil)
			}
			if size([]string{at}) > size(nodes[step:step+1]) {
				nodes[step] = at
			}
			if size(t.below[at]) > size(lists[step]) {
				lists[step] = t.below[at]
			}
			visit(at, step+1)
		}
	}
	visit(from, 0)
	w := &tree{levels: t.levels, below: map[string][]string{}}
	for i, node := range nodes {
		w.below[node] = lists[i]
	}
	return w, nodes
}
