package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// method runs a file of pipelines/ against a server of the test and returns the results.
func method(t *testing.T, server *modelserver.Server, file string, args ...string) []map[string]any {
	t.Helper()
	args = append([]string{"run", "-var", "model=test-model", "-var", "base_url=" + server.URL}, args...)
	out, _ := good(t, racflow(t, t.TempDir(), append(args, absolute(t, "../../pipelines/"+file))...))
	return jsonLines[map[string]any](t, out)
}

// RAC allows and accepts only the labels of the neighbours. For any other label it asks again, three
// times in all, with the reason for the rejection.
func TestRAC(t *testing.T) {
	const question = 11 // the message with the item, after the instructions and five neighbours
	server := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if strings.Contains(a.Messages[question].Content, "robot") { // never acceptable
			return `{"reasoning": "hm", "label": "of my own"}`
		}
		return fmt.Sprintf(`{"reasoning": "the third", "label": %q}`, a.Labels[2])
	}})
	results := method(t, server, "rac.hcl", "-var", "embedder=hashing", "-var", "reasoning=true", "--limit", "4")
	asked := map[string][]modelserver.Ask{}
	for _, a := range server.Asks() {
		item := a.Messages[question].Content
		asked[item] = append(asked[item], a)
	}
	if len(results) != 4 || len(asked) != 4 {
		t.Fatalf("%d results, %d questions", len(results), len(asked))
	}
	for _, r := range results {
		asks := asked[r["text"].(string)]
		first := asks[0]
		if len(first.Messages) != 12 || !slices.Equal(first.Fields, []string{"reasoning", "label"}) || len(first.Labels) < 5 || len(first.Labels) > 30 {
			t.Errorf("asked %d messages for %v among %v", len(first.Messages), first.Fields, first.Labels)
		}
		nearest := first.Messages[len(first.Messages)-2].Content
		if !strings.HasSuffix(nearest, fmt.Sprintf(`"label": %q}`, first.Labels[0])) {
			t.Errorf("the last turn %s is not the nearest, which is of %s", nearest, first.Labels[0])
		}
		if strings.Contains(r["text"].(string), "robot") {
			if r["answer"] != nil || r["flagged"] != true || len(asks) != 3 || len(r["votes"].([]any)) != 3 {
				t.Errorf("asked %d times: %v", len(asks), r)
			}
			for _, again := range asks[1:] {
				last, note := again.Messages[question+1:], "This answer cannot be used: \"of my own\" is not one of the answers that are accepted."
				if !slices.Equal(again.Messages[:question+1], first.Messages) || len(last) != 2 || last[0].Role != "assistant" || !strings.Contains(last[0].Content, "of my own") ||
					last[1].Role != "user" || !strings.HasPrefix(last[1].Content, note) || !strings.Contains(last[1].Content, first.Labels[2]) {
					t.Errorf("asked again with %+v", last)
				}
			}
			continue
		}
		if r["answer"] != first.Labels[2] || r["flagged"] != false || len(asks) != 1 {
			t.Errorf("asked %d times: %v, want %s", len(asks), r, first.Labels[2])
		}
	}
}

// With answer = "list", the first allowed label of a ranked list is the answer. An empty list means
// that no label fits, and is not asked for again.
func TestRACRanked(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if strings.Contains(a.Text(), "robot") {
			return `{"reasoning": "hm", "labels": []}`
		}
		return fmt.Sprintf(`{"reasoning": "the third", "labels": ["of my own", %q, %q]}`, a.Labels[2], a.Labels[0])
	}})
	results := method(t, server, "rac.hcl", "-var", "embedder=hashing", "-var", "answer=list", "-var", "reasoning=true", "-var", "shots=3", "-var", "neighbours=20", "--limit", "4")
	third := map[string]string{}
	for _, a := range server.Asks() {
		if len(a.Messages) != 8 || !slices.Equal(a.Fields, []string{"reasoning", "labels"}) || len(a.Labels) > 20 {
			t.Errorf("asked %d messages for %v among %v", len(a.Messages), a.Fields, a.Labels)
		}
		if nearest := a.Messages[6].Content; !strings.HasSuffix(nearest, fmt.Sprintf(`"labels": [%q]}`, a.Labels[0])) {
			t.Errorf("the last turn %s is not the nearest, which is of %s", nearest, a.Labels[0])
		}
		third[a.Text()] = a.Labels[2]
	}
	none := 0
	for _, r := range results {
		var want any = third[r["text"].(string)]
		if strings.Contains(r["text"].(string), "robot") {
			want = nil
			none++
		}
		reason, _ := r["reason"].(string)
		if r["answer"] != want || r["flagged"] != (want == nil) || (want == nil) != strings.Contains(reason, "none of the labels") {
			t.Errorf("%v, want %v", r, want)
		}
	}
	if len(results) != 4 || none == 0 || server.Calls() != 4 {
		t.Errorf("%d results, %d of them without a label, %d calls", len(results), none, server.Calls())
	}
}

// No retrieved text reaches the zero-shot prompt, which begins alike for all items.
func TestZeroShot(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if strings.Contains(a.Text(), "robot") {
			return `{"label": "none"}`
		}
		return `{"label": "card_lost"}`
	}})
	results := method(t, server, "zero-shot.hcl", "-set", "question.none=none", "--limit", "4")
	for i, a := range server.Asks() {
		if len(a.Messages) != 2 || a.Messages[0] != server.Asks()[0].Messages[0] || len(a.Labels) != 41 || !slices.Equal(a.Fields, []string{"label"}) {
			t.Errorf("request %d: %d messages, %v among %d", i, len(a.Messages), a.Fields, len(a.Labels))
		}
		if labels := strings.Count(a.Messages[0].Content, "\n- "); labels != 41 { // and "label"
			t.Errorf("request %d lists %d labels and properties", i, labels)
		}
	}
	for _, r := range results {
		var want any = "card_lost"
		reason, _ := r["reason"].(string)
		if strings.Contains(r["text"].(string), "robot") {
			want = nil
		}
		if r["answer"] != want || (want == nil) != strings.Contains(reason, "none of the labels") {
			t.Errorf("%v", r)
		}
	}
	if len(results) != 4 || server.Calls() != 4 {
		t.Errorf("%d results of %d calls", len(results), server.Calls())
	}
}

// shot is an example in a prompt of rage.hcl.
type shot struct{ utterance, intent string }

// readShots reads a prompt of rage.hcl line by line: its examples, and the item.
func readShots(prompt string) (shots []shot, item string, err error) {
	lines := strings.Split(prompt, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		utterance, isUtterance := strings.CutPrefix(lines[i], "Utterance : ")
		intent, isIntent := strings.CutPrefix(lines[i+1], "Intent :")
		last := i+2 == len(lines)
		if !isUtterance || !isIntent || last != (intent == "") || !last && !strings.HasPrefix(intent, " ") {
			return nil, "", fmt.Errorf("lines %d and %d are %q and %q in\n%s", i+1, i+2, lines[i], lines[i+1], prompt)
		}
		if last {
			return shots, utterance, nil
		}
		shots = append(shots, shot{utterance, strings.TrimPrefix(intent, " ")})
	}
	return nil, "", fmt.Errorf("the prompt has %d lines:\n%s", len(lines), prompt)
}

// plurality returns the intent of most shots; of several, the intent of the nearest shot, which comes
// last.
func plurality(shots []shot) (winner string) {
	count := map[string]int{}
	for _, s := range shots {
		count[s.intent]++
	}
	for _, s := range slices.Backward(shots) {
		if count[s.intent] > count[winner] {
			winner = s.intent
		}
	}
	return winner
}

// The paper's Algorithm 1: 60 neighbours, the nearest last, after 10 random examples that are drawn
// anew for each model and sample. Each acceptable answer has one vote, and each of the 15 nearest
// neighbours. The neighbours win a tie.
func TestRAGEAsPublished(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{} // answers by item and model
	items := []string{}       // in the order of their first question
	const answered = "gift_card_balance"
	server := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		mu.Lock()
		defer mu.Unlock()
		_, item, err := readShots(a.Prompt)
		if err != nil {
			t.Error(err)
		}
		if !slices.Contains(items, item) {
			items = append(items, item)
		}
		asked[item+a.Model]++
		switch at := slices.Index(items, item); {
		case at == 0: // the answer of all models wins
			return " " + answered + "\nUtterance : more\nIntent : card_lost"
		case at == 1 && a.Model == "second" && asked[item+a.Model] == 3: // one model's answer: a tie
			return answered
		}
		return []string{"Gift_Card_Balance", "gift card balance", "the " + answered, "a text of its own", ""}[asked[item+a.Model]%5]
	}})
	args := []string{"-var", "embedder=hashing", "-var", "model_2=second", "-var", "model_3=third", "--limit", "3"}
	results := method(t, server, "rage.hcl", args...)
	neighbours := map[string][]shot{}
	random := map[string]bool{}
	models := map[string]int{}
	for _, a := range server.Asks() {
		shots, item, err := readShots(a.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		sent := jsonLines[struct {
			Temperature float64
			Stop        []string
			MaxTokens   int `json:"max_tokens"`
		}](t, string(a.Body))[0]
		if got, want := fmt.Sprintf("%s, n %d, labels %#v, %+v", a.Path, a.N, a.Labels, sent), "/v1/completions, n 1, labels []string(nil), {Temperature:0.5 Stop:[\n] MaxTokens:10}"; got != want {
			t.Errorf("asked at %q, want %q", got, want)
		}
		if len(shots) != 70 {
			t.Fatalf("%d shots in\n%s", len(shots), a.Prompt)
		}
		if neighbours[item] == nil {
			neighbours[item] = shots[10:]
		}
		drawn := fmt.Sprint(shots[:10])
		if random[drawn] || !slices.Equal(shots[10:], neighbours[item]) {
			t.Errorf("random examples that were drawn before: %t; neighbours %v, want %v", random[drawn], shots[10:], neighbours[item])
		}
		random[drawn] = true
		models[a.Model]++
	}
	if len(results) != 3 || models["test-model"] != 3*3 || models["second"] != 3*4 || models["third"] != 3*6 {
		t.Errorf("%d results, requests %v", len(results), models)
	}
	for _, r := range results {
		item := r["text"].(string)
		nearest := plurality(neighbours[item][45:])
		if nearest == answered {
			t.Fatalf("the neighbours of %q vote as the models do: the test tries nothing", item)
		}
		accepted := 0
		for _, v := range r["votes"].([]any) {
			if vote := v.(map[string]any); vote["voter"] != "knn" && vote["accepted"].(bool) {
				accepted++
			}
		}
		want, agreement, votes := nearest, 1., 0
		switch slices.Index(items, item) {
		case 0:
			want, agreement, votes = answered, 13./14, 13
		case 1:
			agreement, votes = .5, 1
		}
		if r["answer"] != want || math.Abs(r["agreement"].(float64)-agreement) > 1e-6 || accepted != votes || r["flagged"] != false {
			t.Errorf("%q: %v with %v, %d answers of models accepted; want %s with %v, %d", item, r["answer"], r["agreement"], accepted, want, agreement, votes)
		}
	}
	for k := 1; k <= 2; k++ { // the nearest neighbours come last
		server := modelserver.Serve(t, modelserver.Options{})
		method(t, server, "rage.hcl", "-var", "embedder=hashing", "-var", fmt.Sprint("k=", k), "-var", "l=0", "--limit", "3")
		for _, a := range server.Asks() {
			shots, item, err := readShots(a.Prompt)
			if want := neighbours[item][60-k:]; err != nil || !slices.Equal(shots, want) {
				t.Errorf("k = %d: shots %v, error %v, want %v", k, shots, err, want)
			}
		}
	}
}

// Files that need a model report that it is missing, and point at the place.
func TestMethodsNeedAModel(t *testing.T) {
	for _, file := range []string{"rac.hcl", "zero-shot.hcl"} {
		out, err := racflow(t, t.TempDir(), "run", "-var", "model=", "--limit", "1", absolute(t, "../../pipelines/"+file)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "var.model") || !strings.Contains(string(out), "This name is empty, so stages with model = model.llm are off") {
			t.Errorf("%s: error %v\n%s", file, err, out)
		}
	}
}
