package sample

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/decision"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file is a voter that asks a decision model (package decision). The model returns the probability of each
// option, and these probabilities are the vote.
//
// The options are the labels of the item's candidates, in the order of each label's nearest candidate, with their
// descriptions from the knowledge. Such models take 20 to 255 options, so the candidates limit them. The models have
// seen no examples, so the request contains the nearest candidates. If a service takes fewer options, it gets as many
// as it takes.
//
// The first option is chosen more often than it is right. With orders = 2 the same request asks a second question
// with the second half of the options first, and the two distributions are averaged.
//
// For labels with levels, the request has a question for each node; a label's probability is the product of the
// probabilities on its path. For label sets, each label is a question of its own: whether it applies.
//
// If all candidates have the same label, nothing is asked and that label gets the vote. The voter abstains if no
// candidate has a label; if the model refuses, the answer is not accepted.
//
// A forecast does not know the descriptions of labels. So where a table describes labels, it counts cached answers as
// if they had to be asked, and counts tokens without the table.

type decisionConfig struct {
	decision.Config
	Options int    `config:"options" default:"20" min:"2" max:"255" doc:"Most labels to choose from: those of the nearest candidates."`
	Shots   int    `config:"shots" default:"5" min:"0" max:"100" doc:"How many of the nearest candidates the model sees as labelled examples."`
	Orders  int    `config:"orders" default:"2" min:"1" max:"8" doc:"In how many orders it sees the options, in one request; their distributions are averaged."`
	None    string `config:"none" doc:"A further option, such as none of these: that no label fits. By default there is none."`
}

// Decision describes the voter.
func Decision() sdk.Stage {
	return sdk.SampleStage("decision", "Asks a decision model, which gives the probabilities of the labels of the nearest candidates.",
		openDecision, sdk.Revision("1"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnLabels),
		sdk.Network(), sdk.Addresses(decisionConfig.Addresses), sdk.PreferBatch(1), sdk.Validates(decisionConfig.Check))
}

func openDecision(_ context.Context, setup sdk.Setup, c decisionConfig) (sdk.Sampler, error) {
	v := &decisionVoter{Model: decision.New(c.Config, setup), config: c, form: setup.Labels}
	v.most.Store(int64(c.Options))
	return v, nil
}

type decisionVoter struct {
	*decision.Model
	config decisionConfig
	form   sdk.LabelForm
	most   atomic.Int64 // number of options that the service accepts
}

// Sample implements sdk.Sampler.
func (v *decisionVoter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	meanings := fewshot.Meanings(b.Described)
	return api.Rows(ctx, b.Items, func(ctx context.Context, item sdk.Item) ([]sdk.Sample, error) {
		for {
			most := v.most.Load()
			d := v.requestFor(item, meanings, int(most))
			samples, err := v.vote(ctx, d)
			fewer := fewerOptions(err, d.longest())
			if fewer == 0 {
				return samples, err
			}
			if v.most.CompareAndSwap(most, int64(fewer)) {
				v.WarnOnce("options", "the service takes fewer options: only the nearest labels are asked about", "options", fewer)
			}
		}
	})
}

// Forecast implements sdk.Forecaster.
func (v *decisionVoter) Forecast(item sdk.Item) (sdk.Forecast, error) {
	d := v.requestFor(item, nil, int(v.most.Load()))
	if len(d.questions) == 0 {
		return sdk.Forecast{}, nil
	}
	return v.Model.Forecast(d.state, d.questions, v.config.Orders)
}

// decisionAsk is the request about one item.
type decisionAsk struct {
	labels    []string
	state     decision.State
	questions []decision.Question // of label sets one for each label, else one for each of nodes
	nodes     []string            // whose children are the options; the first is the root, ""
}

// longest is the greatest number of options of a question.
func (d decisionAsk) longest() (n int) {
	for _, q := range d.questions {
		n = max(n, len(q.Options))
	}
	return n
}

// clipped is how many characters of an example the model sees.
const clipped = 500

// requestFor returns the request about an item, with at most that many options.
func (v *decisionVoter) requestFor(item sdk.Item, meanings map[string]string, most int) (d decisionAsk) {
	if item.Drawn > 0 { // it was asked before; asking again would give the same answer
		return d
	}
	if v.config.None != "" {
		most--
	}
	for i := range item.Candidates {
		for _, label := range v.form.Split(item.Candidates[i].Label) {
			if len(d.labels) < most && label != "" && label != v.config.None && !slices.Contains(d.labels, label) {
				d.labels = append(d.labels, label)
			}
		}
	}
	if len(d.labels) == 0 || len(d.labels) == 1 && !v.form.Many && v.config.None == "" {
		return d
	}
	d.state = decision.State{Text: item.Text, Examples: fewshot.First(item.Candidates, v.config.Shots)}
	slices.Reverse(d.state.Examples) // the nearest example comes last, beside the text
	for i := range d.state.Examples {
		d.state.Examples[i].Text = fewshot.Clip(d.state.Examples[i].Text, clipped)
	}
	if v.form.Many {
		for _, label := range d.labels {
			d.questions = append(d.questions, decision.Question{About: described("Does this label apply to the text?", meanings[label]), Label: label})
		}
		return d
	}
	d.ways(v.form, meanings, v.config.None)
	return d
}

// described returns a question with the description of its label.
func described(question, meaning string) string {
	if meaning == "" {
		return question
	}
	return question + " It stands for: " + meaning
}

// ways adds a question for each node with several children on the paths to the labels. If a label is also a node with
// labels below it, the label itself is one of the options there.
func (d *decisionAsk) ways(form sdk.LabelForm, meanings map[string]string, none string) {
	children := map[string][]string{}
	var nodes []string
	for _, label := range d.labels {
		above := ""
		for _, node := range append(form.Path(label), label) {
			if children[above] == nil {
				nodes = append(nodes, above)
			}
			if !slices.Contains(children[above], node) {
				children[above] = append(children[above], node)
			}
			above = node
		}
	}
	for _, node := range nodes {
		q := decision.Question{About: "Which label fits the text best?"}
		for _, child := range children[node] {
			q.Options = append(q.Options, decision.Option{Name: child, Text: meanings[child]})
		}
		if node == "" && none != "" {
			q.Options = append(q.Options, decision.Option{Name: none})
		}
		if len(q.Options) > 1 {
			d.nodes, d.questions = append(d.nodes, node), append(d.questions, q)
		}
	}
}

// vote asks the model about an item and returns its sample.
func (v *decisionVoter) vote(ctx context.Context, d decisionAsk) ([]sdk.Sample, error) {
	if len(d.labels) == 0 {
		return nil, nil
	}
	if len(d.questions) == 0 {
		return []sdk.Sample{{Answers: []sdk.Answer{{Label: d.labels[0], Weight: 1}}}}, nil
	}
	reply, key, err := v.Ask(ctx, d.state, d.questions, v.config.Orders)
	if err != nil {
		return nil, err
	}
	s := sdk.Sample{Usage: reply.Usage, Key: key, Answers: v.answers(d, reply.Answers)}
	if len(s.Answers) == 0 {
		s.Answers = []sdk.Answer{{Reason: "the model refused"}}
	}
	return []sdk.Sample{s}, nil
}

// answers returns the labels with their probabilities, the likeliest first. nil: the model refused.
func (v *decisionVoter) answers(d decisionAsk, given []decision.Answer) (all []sdk.Answer) {
	of := map[string]float64{} // by node above and node: the node's probability there
	for i, q := range d.questions {
		switch {
		case given[i].Refused && v.form.Many: // only this label stays unknown
		case given[i].Refused:
			return nil
		case v.form.Many:
			all = append(all, sdk.Answer{Label: q.Label, Weight: given[i].P[0]})
		default:
			for j, o := range q.Options {
				of[d.nodes[i]+"\n"+o.Name] = given[i].P[j]
			}
		}
	}
	if !v.form.Many {
		for _, label := range d.labels {
			all = append(all, sdk.Answer{Label: label, Weight: v.product(of, label)})
		}
		if p, ok := of["\n"+v.config.None]; ok && v.config.None != "" {
			all = append(all, sdk.Answer{Weight: p})
		}
	}
	slices.SortStableFunc(all, func(a, b sdk.Answer) int { return cmp.Compare(b.Weight, a.Weight) })
	return all
}

// product returns the probability of a label: the product of the probabilities of all steps that were asked about.
func (v *decisionVoter) product(of map[string]float64, label string) float64 {
	p, above := 1.0, ""
	for _, node := range append(v.form.Path(label), label) {
		if step, asked := of[above+"\n"+node]; asked {
			p *= step
		}
		above = node
	}
	return p
}

// optionWords occur in refusals about the number of options; numbers finds the numbers there.
var optionWords, numbers = support.Pattern(`(?i)option|choice|criteria|labels`), support.Pattern(`\d+`)

// fewerOptions returns how many options to send after a refusal: the number in the error, or half. 0: the error is
// about something else.
func fewerOptions(err error, sent int) (fewer int) {
	if !api.BadRequest(err) || sdk.CodeOf(err) == sdk.CodeRefused || sent <= 2 || !optionWords().MatchString(err.Error()) {
		return 0
	}
	for _, text := range numbers().FindAllString(err.Error(), -1) {
		if n, err := strconv.Atoi(text); err == nil && n < sent && n >= 2 {
			fewer = max(fewer, n)
		}
	}
	return max(cmp.Or(fewer, sent/2), 2)
}
