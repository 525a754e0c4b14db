package sample

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// This file asks for a label level by level (sdk.Prompt.Levels). The prompt's chat lists the nodes of the first
// level. Each further question lists the nodes below the answer, by the last part of their names. It continues the
// same chat, so that the service has the beginning in its cache. If the answer is that no node fits, the node above
// is the answer. If there is only one node below, and the node above is no label, nothing is asked. An answer that is
// not in the list ends the descent with a reason, which no rule accepts.
//
// The chat contains the model's answer alone, without its reasons and in one form. So samples that agree on a node
// share the next request. Each answer is cached by itself. The sample has the usage of all levels, the product of
// their weights and the key of the last answer.

// tree holds the labels of a prompt, by level.
type tree struct {
	levels string
	below  map[string][]string // by node: the last parts of the names of the nodes below it, in the order of the prompt
	labels map[string]bool
}

// newTree returns the tree of a prompt's labels; nil: the prompt has none.
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

// part returns the part of a node's name behind the name of the node above.
func (t *tree) part(node, above string) string {
	if above == "" {
		return node
	}
	return strings.TrimPrefix(node, above+t.levels)
}

// child returns the name of the node below another, from its last part.
func (t *tree) child(above, part string) string {
	if above == "" {
		return part
	}
	return above + t.levels + part
}

// down descends from a node to the next choice between nodes, and reports whether there is one.
func (t *tree) down(node string) (string, bool) {
	for len(t.below[node]) == 1 && !t.labels[node] {
		node = t.child(node, t.below[node][0])
	}
	return node, len(t.below[node]) > 0
}

// descend replaces the label of an answer by the full name of its node. The label may be the last part of the name or
// the whole name. descend reports whether to ask for a node below.
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

// next reads the replies in the slots. It returns the slots that need a further question, about the nodes below the
// answer.
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

// says returns the text of an answer with the given label.
func (q *question) says(label string) string {
	if label == "" || q.prompt.Fields == nil {
		return label
	}
	return "{" + fewshot.JSON(sdk.LabelProperty) + ": " + fewshot.JSON(label) + "}"
}

// stays is the answer "no node fits" if the prompt has no text for it.
const stays = "none of these"

// below returns the question about the nodes below a node, which was the answer to q.
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

// way estimates the tokens and requests for n answers to a question and to the questions below it. The likely usage
// follows the first label of each list, which is the likeliest. The upper bound follows the most expensive path.
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

// walk estimates the tokens and requests for n answers to a question, and to the questions below each node in turn.
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

// widest returns an imagined tree and the nodes of a path in it, which costs at least as many tokens as any real path
// below a node. Each step has the longest name and the longest list of all nodes at that depth.
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
