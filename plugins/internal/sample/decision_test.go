package sample_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/sample"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// decide opens the voter with a config and asks it about texts whose candidates have labels.
func decide(t *testing.T, o modelserver.Options, form sdk.LabelForm, config string, items ...sdk.Item) (*modelserver.Server, *apitest.Host, sdk.Sampler, [][]sdk.Sample, error) {
	t.Helper()
	server, host := modelserver.Serve(t, o), &apitest.Host{}
	raw := fmt.Sprintf(`{"model": "m", "base_url": %q`, server.URL)
	if config != "" {
		raw += ", " + config
	}
	voter, err := sample.Decision().Open(t.Context(), sdk.Setup{Host: host, Labels: form}, []byte(raw+"}"))
	must.Do(t, err)
	samples, err := voter.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: items, Described: map[string]sdk.Described{"bill": {Text: "a question about an invoice"}}})
	return server, host, voter.(sdk.Sampler), samples, err
}

func neighboursOf(labels ...string) sdk.Item {
	item := sdk.Item{Text: "where is it"}
	for i, label := range labels {
		item.Candidates = append(item.Candidates, sdk.Candidate{ID: fmt.Sprint(i), Text: fmt.Sprintf("known text %d", i), Label: label})
	}
	return item
}

// votes returns the labels of samples with their weights to two decimals.
func votes(s []sdk.Sample) (all []string) {
	for _, one := range s {
		for _, a := range one.Answers {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %.2f %s", a.Label, a.Weight, a.Reason)))
		}
	}
	return all
}

func says(label string) func(modelserver.Ask, int) string {
	return func(modelserver.Ask, int) string { return label }
}

func TestDecision(t *testing.T) {
	flat, set, tree := sdk.LabelForm{}, sdk.LabelForm{Many: true}, sdk.LabelForm{Levels: "/"}
	for name, test := range map[string]struct {
		options modelserver.Options
		form    sdk.LabelForm
		config  string
		item    sdk.Item
		want    []string
		asked   [][]string // the options of each question
	}{
		"a distribution over the neighbours' labels, in two orders": {
			options: modelserver.Options{Answer: says("card")}, item: neighboursOf("bill", "card", "bill", "pin"),
			want: []string{"card 0.90", "bill 0.05", "pin 0.05"}, asked: [][]string{{"bill", "card", "pin"}, {"card", "pin", "bill"}},
		},
		"decisions": {
			options: modelserver.Options{Answer: says("card")}, config: `"api": "decisions"`, item: neighboursOf("bill", "card"),
			want: []string{"card 0.90", "bill 0.10"}, asked: [][]string{{"bill", "card"}, {"card", "bill"}},
		},
		"no label fits": {
			options: modelserver.Options{Answer: says("nothing")}, config: `"none": "nothing", "orders": 1`, item: neighboursOf("card"),
			want: []string{"0.90", "card 0.10"}, asked: [][]string{{"card", "nothing"}},
		},
		"at most so many options": {
			options: modelserver.Options{Answer: says("bill")}, config: `"options": 2, "orders": 1`, item: neighboursOf("bill", "card", "pin"),
			want: []string{"bill 0.90", "card 0.10"}, asked: [][]string{{"bill", "card"}},
		},
		"one label": {item: neighboursOf("card", "card"), want: []string{"card 1.00"}},
		"no label":  {item: neighboursOf("")},
		"each label of a set": {
			options: modelserver.Options{Answer: says("card")}, form: set, item: neighboursOf(sdk.JoinLabels([]string{"card", "bill"}), "bill"),
			want: []string{"card 0.90", "bill 0.10"}, asked: [][]string{nil, nil},
		},
		"a tree in one request": {
			options: modelserver.Options{Answer: says("a/y")}, form: tree, config: `"orders": 1`, item: neighboursOf("a/x", "b/z", "a/y"),
			want: []string{"a/y 0.81", "b/z 0.10", "a/x 0.09"}, asked: [][]string{{"a", "b"}, {"a/x", "a/y"}},
		},
		"a label above another": {
			options: modelserver.Options{Answer: says("a")}, form: tree, config: `"orders": 1`, item: neighboursOf("a/x", "a", "b"),
			want: []string{"a 0.81", "b 0.10", "a/x 0.09"}, asked: [][]string{{"a", "b"}, {"a/x", "a"}},
		},
		"one order refused": {
			options: modelserver.Options{Answer: says("b"), Decides: modelserver.Decides{Refuses: true}}, config: `"api": "decisions"`, item: neighboursOf("a", "b"),
			want: []string{"b 0.90", "a 0.10"}, asked: [][]string{{"a", "b"}, {"b", "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, _, _, samples, err := decide(t, test.options, test.form, test.config, test.item)
			must.Do(t, err)
			must.Equal(t, "votes", test.want, votes(samples[0]))
			var asked [][]string
			for _, a := range server.Asks() {
				for _, q := range a.Questions {
					asked = append(asked, q.Options)
				}
			}
			must.Equal(t, "questions", test.asked, asked)
			if len(test.asked) > 0 && server.Calls() != 1 {
				t.Errorf("%d requests", server.Calls())
			}
		})
	}
	if _, _, _, samples, err := decide(t, modelserver.Options{Decides: modelserver.Decides{Refuses: true}}, flat, `"api": "decisions", "orders": 1`, neighboursOf("a", "b")); err != nil || len(samples[0]) != 1 {
		t.Errorf("%v, %v", samples, err)
	}
}

// Content of a request: the examples from the farthest to the nearest, descriptions, and no field that a server may
// not know.
func TestDecisionRequest(t *testing.T) {
	for api, want := range map[string]string{
		"systemone": `{"model":"m","questions":{"q0":{"criteria":{"bill":"a question about an invoice","card":null},"instructions":"Which label fits the text best?","type":"choice"}},` +
			`"state":{"labelled_examples":[{"text":"known text 1","label":"card"},{"text":"known text 0","label":"bill"}],"text":"where is it"}}`,
		"decisions": `{"input":[{"content":[{"data":{"labelled_examples":[{"text":"known text 1","label":"card"},{"text":"known text 0","label":"bill"}],"text":"where is it"},"type":"input_json"}],"role":"user"}],` +
			`"model":"m","questions":[{"choices":[{"description":"a question about an invoice","value":"bill"},{"value":"card"}],"instructions":"Which label fits the text best?","type":"choice"}]}`,
	} {
		server, _, _, _, err := decide(t, modelserver.Options{}, sdk.LabelForm{}, fmt.Sprintf(`"api": %q, "orders": 1`, api), neighboursOf("bill", "card"))
		must.Do(t, err)
		if got := string(server.Asks()[0].Body); got != want {
			t.Errorf("%s:\n%s", got, want)
		}
		server, _, _, _, err = decide(t, modelserver.Options{}, sdk.LabelForm{}, fmt.Sprintf(`"api": %q, "shots": 0`, api), neighboursOf("bill", "card"))
		must.Do(t, err)
		if got := string(server.Asks()[0].Body); strings.Contains(got, "known text") || !strings.Contains(got, `"where is it"`) {
			t.Errorf("without examples: %s", got)
		}
	}
}

// An answer is cached with its usage. A forecast takes this into account, and its upper bound covers the requests.
func TestDecisionCache(t *testing.T) {
	item := neighboursOf("a", "b", "c")
	server, host, voter, first, err := decide(t, modelserver.Options{}, sdk.LabelForm{}, "", item)
	must.Do(t, err)
	again, err := voter.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
	must.Do(t, err)
	must.Equal(t, "samples, calls", []any{first, 1}, []any{again, server.Calls()})
	if first[0][0].Usage.InputTokens == 0 || host.Cached()[first[0][0].Key] == nil {
		t.Errorf("%+v", first)
	}
	forecast := func(i sdk.Item) sdk.Forecast {
		f, err := voter.(sdk.Forecaster).Forecast(i)
		must.Do(t, err)
		return f
	}
	if f := forecast(item); f.Cached != 1 || f.Requests != 0 {
		t.Errorf("cached: %+v", f)
	}
	other := item
	other.Text = "another"
	if f := forecast(other); f.Requests != 1 || f.Most.InputTokens < first[0][0].Usage.InputTokens || f.Likely.InputTokens == 0 {
		t.Errorf("%+v", f)
	}
	item.Drawn = 1 // the item was asked before, and would get the same answer
	if f := forecast(item); f != (sdk.Forecast{}) {
		t.Errorf("%+v", f)
	}
	if more, err := voter.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}}); err != nil || len(more[0]) != 0 {
		t.Errorf("%v, %v", more, err)
	}
}

// What servers do differently: the votes stay the same, and the log says what a person should know.
func TestDecisionServers(t *testing.T) {
	for name, test := range map[string]struct {
		decides modelserver.Decides
		path    string
		says    string
	}{
		"an envelope":   {decides: modelserver.Decides{Envelope: true}, path: `, "path": "/@cf/some/model"`},
		"a cut state":   {decides: modelserver.Decides{Truncates: true}, says: "has cut what it was asked about"},
		"another model": {decides: modelserver.Decides{Names: []string{"one", "two"}}, says: "answers come from two models"},
	} {
		t.Run(name, func(t *testing.T) {
			server := modelserver.Serve(t, modelserver.Options{Answer: says("card"), Decides: test.decides})
			var log bytes.Buffer
			voter, err := sample.Decision().Open(t.Context(), sdk.Setup{Log: slog.New(slog.NewTextHandler(&log, nil))}, fmt.Appendf(nil, `{"model": "m", "base_url": %q%s}`, server.URL, test.path))
			must.Do(t, err)
			for i := range 3 {
				item := neighboursOf("bill", "card")
				item.Text = fmt.Sprint("text ", i)
				samples, err := voter.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
				must.Do(t, err)
				must.Equal(t, "votes", []string{"card 0.90", "bill 0.10"}, votes(samples[0]))
			}
			if !strings.Contains(log.String(), test.says) || strings.Count(log.String(), "level=WARN") != len(test.says[:min(1, len(test.says))]) {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
	_, _, _, _, err := decide(t, modelserver.Options{Decides: modelserver.Decides{Unable: true}}, sdk.LabelForm{}, "", neighboursOf("a", "b"))
	if err == nil || sdk.CodeOf(err) == sdk.CodeTransient || !strings.Contains(err.Error(), "this model does not decide") {
		t.Errorf("501: %v", err)
	}
}

// An option that a service rounded to 0 is unlikely, not impossible.
func TestDecisionRounded(t *testing.T) {
	labels := strings.Fields(strings.Repeat("x ", 24))
	for i := range labels {
		labels[i] = fmt.Sprintf("label-%02d", i)
	}
	_, _, _, samples, err := decide(t, modelserver.Options{Decides: modelserver.Decides{Decimals: 2}}, sdk.LabelForm{}, `"options": 24`, neighboursOf(labels...))
	must.Do(t, err)
	if all := samples[0][0].Answers; len(all) != 24 || all[23].Weight < 0.004 || all[23].Weight > 0.005 {
		t.Errorf("%v", votes(samples[0]))
	}
}

// A service that accepts few options is asked again about the nearest labels. Later requests then respect its limit.
func TestDecisionFewerOptions(t *testing.T) {
	labels := make([]string, 30)
	for i := range labels {
		labels[i] = fmt.Sprintf("label-%02d", i)
	}
	o := modelserver.Options{Decides: modelserver.Decides{MaxOptions: 7}}
	server, _, voter, samples, err := decide(t, o, sdk.LabelForm{}, "", neighboursOf(labels...))
	must.Do(t, err)
	other := neighboursOf(labels...)
	other.Text = "another"
	_, err = voter.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{other}})
	must.Do(t, err)
	if len(samples[0][0].Answers) != 7 || server.Calls() != 3 {
		t.Errorf("%d answers, %d calls", len(samples[0][0].Answers), server.Calls())
	}
}

// Replies without a valid distribution are errors of their item.
func TestDecisionReplies(t *testing.T) {
	for name, reply := range map[string]string{
		"none":          `{"model": "m", "usage": {}}`,
		"an option":     `{"answers": {"q0": {"probabilities": {"a": 1}}}}`,
		"no number":     `{"answers": {"q0": {"probabilities": {"a": "1", "b": 0}}}}`,
		"null":          `{"answers": {"q0": {"probabilities": {"a": null, "b": 1}}}}`,
		"more than one": `{"answers": {"q0": {"probabilities": {"a": 0.9, "b": 0.9}}}}`,
		"negative":      `{"answers": {"q0": {"probabilities": {"a": 1.2, "b": -0.2}}}}`,
	} {
		host := &apitest.Host{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, reply) }))
		voter, err := sample.Decision().Open(t.Context(), sdk.Setup{Host: host}, fmt.Appendf(nil, `{"model": "m", "base_url": %q, "orders": 1}`, server.URL))
		t.Cleanup(server.Close)
		must.Do(t, err)
		_, err = voter.(sdk.Sampler).Sample(context.Background(), sdk.Batch{Items: []sdk.Item{neighboursOf("a", "b")}})
		if err == nil || !strings.Contains(err.Error(), "another form") || len(host.Cached()) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
