package browser

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/racflow/racflow/engine/internal/show/page"
	"github.com/racflow/racflow/engine/internal/show/review"
	"github.com/racflow/racflow/sdk"
)

// reviewed serves a review of these cases, and returns the queue and the address of its page.
func reviewed(t *testing.T, cases []review.Case, form sdk.LabelForm) (q *review.Queue, address string) {
	t.Helper()
	q = review.NewQueue(filepath.Join(t.TempDir(), "reviewed.jsonl"), "run-000001", cases, []string{"card_lost", "card_stolen", "order_status", "parcel_lost", longLabel}, form)
	s, err := page.NewReviewServer(q, page.ReviewOptions{
		Title: "run-000001", Reviewer: "Ada", Notes: []string{"the file does not read these decisions yet:\n\n  source {\n    reviewed = true\n  }"},
		Details: func(_ context.Context, c review.Case) (any, error) {
			if c.Row != "" {
				return nil, nil
			}
			return map[string]any{
				"id": c.Items[0], "text": c.Text, "answer": c.Answer, "confidence": c.Confidence, "flagged": true,
				"votes":   []any{map[string]any{"voter": "knn", "answer": "card_lost", "weight": 0.6, "accepted": true}, map[string]any{"voter": "linear", "answer": "card_stolen", "weight": 0.3, "accepted": true}, map[string]any{"voter": "idle", "answer": "order_status", "weight": 0.4, "accepted": true}},
				"weights": map[string]any{"knn": 1, "linear": 0.5, "idle": 0},
				"lists": []any{map[string]any{"stage": "retrieve.near", "candidates": []any{
					map[string]any{"id": "1", "text": "my card is gone", "label": "card_lost", "score": 0.9}, map[string]any{"id": "2", "text": hostile, "label": "parcel_lost", "score": 0.5},
				}}},
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return q, s.URL(l.Addr())
}

// longLabel is wider than a phone.
const longLabel = "refund_not_received_after_return_of_a_damaged_item_that_was_bought_as_a_gift"

func item(id, text string) review.Case {
	return review.Case{Text: text, Items: []string{id}, Why: []string{"it is flagged"}, Answer: "card_lost", Confidence: 0.3, Suggestions: []string{"card_lost", "card_stolen"}}
}

// decisions waits until so many cases are decided, and returns them as LABEL by REVIEWER, by text.
func decisions(t *testing.T, tab *Tab, q *review.Queue, n int) map[string]string {
	t.Helper()
	tab.Wait(fmt.Sprintf(`document.getElementById("progress").value === %d`, n))
	all := map[string]string{}
	now, errs := q.Decisions()
	for _, c := range q.Cases() {
		if d := now[c.ID]; d != nil {
			all[c.Text] = d.Label + " by " + d.Reviewer
		}
	}
	if len(errs) > 0 || len(all) != n {
		t.Errorf("%d decisions are in the file instead of %d, %v", len(all), n, errs)
	}
	return all
}

// shows waits until a text is what is to be decided, with what made its answer: before that, keys do nothing.
func shows(tab *Tab, text string) {
	tab.t.Helper()
	tab.Wait(fmt.Sprintf(`document.querySelector("#evidence:not([hidden]) table") && document.querySelector("#case .said")?.textContent === %q`, text))
}

// press presses a key as a keyboard does: what the page prevents for the key that goes down is then not
// typed either, which it is with Tab.Keys.
func press(tab *Tab, key input.DispatchKeyEventParams) {
	tab.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeChar, input.DispatchKeyEventTypeKeyUp} {
		p := key
		if p.Type = kind; kind != input.DispatchKeyEventTypeChar {
			p.Text = ""
		}
		call(tab, input.DispatchKeyEvent, p)
	}
}

var (
	slash = input.DispatchKeyEventParams{Key: "/", Code: "Slash", Text: "/", WindowsVirtualKeyCode: 191}
	enter = input.DispatchKeyEventParams{Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
)

// TestReview decides by keyboard alone: a suggestion, another label by what is typed, a new one
// that is confirmed; skips, undoes, and is told what another page decides.
func TestReview(t *testing.T) {
	q, address := reviewed(t, []review.Case{item("1", "one"), item("2", "two"), item("3", "three"), item("4", "four")}, sdk.LabelForm{})
	tab := Open(t, address)
	base, token, _ := strings.Cut(address, "#")
	shows(tab, "one")
	if got := Eval[string](tab, `location.href`); strings.Contains(got, token) {
		t.Errorf("the token stays in the address: %s", got)
	}
	tab.Screenshot("review")
	tab.Accessible()

	tab.Keys("2") // the second suggestion
	shows(tab, "two")
	if got := decisions(t, tab, q, 1); got["one"] != "card_stolen by Ada" {
		t.Errorf("2 decides %v", got)
	}
	press(tab, slash)
	tab.Keys("parl") // letters of parcel_lost, in order
	tab.Wait(`document.querySelector("[role=option][aria-selected=true]")?.textContent === "parcel_lost"`)
	press(tab, enter)
	shows(tab, "three")
	if got := decisions(t, tab, q, 2); got["two"] != "parcel_lost by Ada" {
		t.Errorf("a search decides %v", got)
	}
	tab.Keys("s")
	shows(tab, "four")
	tab.Keys("u")
	shows(tab, "three")
	tab.Keys("u") // the decision about two
	shows(tab, "two")
	decisions(t, tab, q, 1)

	press(tab, slash)
	tab.Keys("card_lots")
	tab.Wait(`document.querySelector("[role=option]:last-child")?.textContent === "New label card_lots"`)
	press(tab, enter)
	tab.Wait(`document.querySelector("#confirm[open]")`)
	tab.Screenshot("review-new")
	tab.Accessible()
	if got := tab.Focused(); got != "Back" {
		t.Errorf("a second Enter would take %q", got)
	}
	decisions(t, tab, q, 1)
	tab.Keys(kb.Tab)
	press(tab, enter) // Add the new label
	shows(tab, "three")
	if got := decisions(t, tab, q, 2); got["two"] != "card_lots by Ada" {
		t.Errorf("a new label decides %v", got)
	}

	tab.Keys("?")
	tab.Wait(`document.querySelector("#help[open]")`)
	tab.Keys("1") // is not meant for the case behind
	tab.Accessible()
	tab.Keys(kb.Escape)
	tab.Wait(`!document.querySelector("dialog[open]")`)
	decisions(t, tab, q, 2)

	// Another person, at another page: each sees the other's decisions.
	other := Open(t, address)
	shows(other, "three")
	Eval[bool](other, `((name) => { name.value = "Ben"; return name.dispatchEvent(new Event("change")); })(document.getElementById("reviewer"))`)
	other.Keys("s")
	shows(other, "four")
	other.Keys(kb.Enter) // the first suggestion
	if got := decisions(t, tab, q, 3); got["four"] != "card_lost by Ben" {
		t.Errorf("Ben decides %v", got)
	}
	tab.Keys(kb.Enter)
	tab.Wait(`document.querySelector("#case .done")`)
	decisions(t, other, q, 4)
	tab.Screenshot("review-done")
	tab.Accessible()
	other.Quiet(base + "api/")
	Eval[bool](tab, `([...document.querySelectorAll("#case button")].find((b) => b.textContent === "Finish").click(), true)`)
	tab.Wait(`document.querySelector("#notices").textContent.includes("Finished")`)
	tab.Quiet(base + "api/")
}

// TestReviewOfSets: where rows have sets of labels, the answer's are checked, others are checked by key or
// by search, and Enter accepts all that are checked; if none is, that no label of the answer fits.
func TestReviewOfSets(t *testing.T) {
	one, two := item("1", "one"), item("2", "two")
	three := item("3", "three")
	three.Answer = ""
	one.Answer, one.Suggestions = "card_lost; order_status", []string{"order_status", "card_lost", "card_stolen"}
	q, address := reviewed(t, []review.Case{one, two, three}, sdk.LabelForm{Many: true})
	tab := Open(t, address)
	shows(tab, "one")
	checked := func(want string) {
		t.Helper()
		tab.Wait(fmt.Sprintf(`[...document.querySelectorAll("#suggestions input:checked")].map((e) => e.closest("label").querySelector("bdi").textContent).join(" ") === %q`, want))
	}
	checked("order_status card_lost")
	tab.Screenshot("review-sets")
	tab.Accessible()
	tab.Keys("3")
	tab.Keys("1")
	checked("card_lost card_stolen")
	press(tab, slash)
	tab.Keys("parl")
	tab.Wait(`document.querySelector("[role=option][aria-selected=true]")?.textContent === "parcel_lost"`)
	press(tab, enter)
	checked("card_lost card_stolen parcel_lost")
	press(tab, enter)
	shows(tab, "two")
	if got := decisions(t, tab, q, 1); got["one"] != "card_lost; card_stolen; parcel_lost by Ada" {
		t.Errorf("Enter decides %v", got)
	}
	tab.Keys("1") // nothing is checked any more
	checked("")
	press(tab, enter)
	shows(tab, "three")
	if got := decisions(t, tab, q, 2); got["two"] != "[] by Ada" {
		t.Errorf("Enter decides %v", got)
	}
	press(tab, enter)
	tab.Wait(`document.getElementById("notices").textContent.includes("No label is checked")`)
	decisions(t, tab, q, 2)
	tab.Keys("u")
	shows(tab, "two")
	tab.Keys("u")
	shows(tab, "one")
	checked("order_status card_lost")
	decisions(t, tab, q, 0)
}

// TestReviewOnPhone: the decision comes before the evidence, what moves on stays in sight, and nothing
// makes the page wider than the window.
func TestReviewOnPhone(t *testing.T) {
	one, two := item("1", "one"), item("2", "two")
	one.Suggestions = append(one.Suggestions, longLabel)
	_, address := reviewed(t, []review.Case{one, two}, sdk.LabelForm{})
	tab := Open(t, address)
	shows(tab, "one")
	Eval[bool](tab, `document.getElementById("all").open = true`)
	tab.Wait(`document.querySelector("#list .opener")`)
	tab.Fits()
	tab.Width(390)
	if at := Eval[[]float64](tab, `[document.getElementById("choose-title"), ...document.querySelectorAll(".item section")].map((e) => e.getBoundingClientRect().top)`); at[0] > 600 || at[0] > min(at[1], at[2]) {
		t.Errorf("the decision and the evidence begin at %v", at)
	}
	voters := func() string {
		return Eval[string](tab, `[...document.querySelectorAll(".item section:first-of-type td:first-child")].filter((e) => e.checkVisibility()).map((e) => e.textContent).join(" ")`)
	}
	if got := voters(); got != "knn linear" {
		t.Errorf("votes of %q are shown", got)
	}
	tab.Focus(".item section details summary")
	tab.Keys(kb.Enter)
	if got := voters(); got != "knn linear idle" {
		t.Errorf("unfolded, votes of %q are shown", got)
	}
	for _, to := range []string{"0", "document.body.scrollHeight"} {
		if hidden := Eval[string](tab, `(scrollTo({ top: `+to+`, behavior: "instant" }), [...document.querySelectorAll("#actions button")].filter((e) => {
			const at = e.getBoundingClientRect();
			return !e.contains(document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2));
		}).map((e) => e.textContent).join(", "))`); hidden != "" {
			t.Errorf("scrolled to %s, %s cannot be pressed", to, hidden)
		}
	}
	press(tab, slash)
	tab.Wait(`document.querySelectorAll("[role=option]").length === 5`)
	if got := Eval[int](tab, `document.documentElement.scrollWidth`); got > 390 {
		t.Errorf("with the labels the page is %d wide", got)
	}
	tab.Keys(kb.Escape)
	tab.Accessible()
	Eval[bool](tab, `(scrollTo({ top: document.body.scrollHeight, behavior: "instant" }), document.querySelector("#actions button").click(), true)`)
	shows(tab, "two")
	tab.Wait(`document.getElementById("case-title").getBoundingClientRect().top >= 0`)
}

// TestReviewOfFindings: rows of a knowledge are dropped and given back.
func TestReviewOfFindings(t *testing.T) {
	q, address := reviewed(t, []review.Case{{Text: hostile, Row: "r7", File: "/home/ada/k.tsv", Line: 8, Why: []string{hostile}, Answer: "card_lost", Suggestions: []string{"card_stolen", "card_lost"}}}, sdk.LabelForm{})
	tab := Open(t, address)
	tab.Wait(`document.querySelector("#case .said")`)
	if got := Eval[string](tab, `document.querySelector("#case .said").textContent`); !strings.Contains(got, `</script><script>document.title = "owned"</script>`) {
		t.Errorf("the text is shown as %q", got)
	}
	tab.Screenshot("review-findings")
	tab.Accessible()
	tab.Keys("d")
	tab.Wait(`document.querySelector("#case .done")`)
	text, err := os.ReadFile(q.Path())
	if err != nil || !strings.Contains(string(text), `"label":null`) || !strings.Contains(string(text), `"replaces":"r7"`) {
		t.Errorf("the row is dropped: %s, %v", text, err)
	}
	tab.Keys("u")
	tab.Wait(`document.querySelector("#case .said") && document.getElementById("progress").value === 0`)
	if text, err := os.ReadFile(q.Path()); err != nil || len(text) > 0 {
		t.Errorf("the row is back: %s, %v", text, err)
	}
	if title := Eval[string](tab, `document.title`); title == "owned" {
		t.Error("a text of the row was run")
	}
	base, _, _ := strings.Cut(address, "#")
	tab.Quiet(base + "api/")
}

// TestReviewWithoutToken: who opens the address without its token sees no data, and why.
func TestReviewWithoutToken(t *testing.T) {
	_, address := reviewed(t, []review.Case{item("1", "a secret text")}, sdk.LabelForm{})
	base, _, _ := strings.Cut(address, "#")
	tab := Open(t, base)
	tab.Wait(`document.getElementById("notices").textContent.includes("lacks the token")`)
	if text := Eval[string](tab, `document.body.textContent`); strings.Contains(text, "secret text") {
		t.Error("the page shows data")
	}
	tab.Accessible()
}
