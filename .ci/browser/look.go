package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

// Screenshot writes a picture of the whole page in both themes into the folder that
// RACFLOW_TEST_SHOTS names, as NAME-light.png and NAME-dark.png. Without one it does nothing.
func (tab *Tab) Screenshot(name string) {
	tab.t.Helper()
	folder := os.Getenv("RACFLOW_TEST_SHOTS")
	if folder == "" {
		return
	}
	Eval[bool](tab, `(scrollTo({ top: 0, behavior: "instant" }), true)`)
	for _, theme := range []string{"light", "dark"} {
		tab.Theme(theme)
		picture, err := chromedp.Run(tab.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			tab.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+"-"+theme+".png"), picture, 0o600); err != nil {
			tab.t.Fatal(err)
		}
	}
}

// Accessible has axe-core look at the page as it stands, and at its contrast in the dark, too,
// and fails the test where it finds a violation of any of its rules.
func (tab *Tab) Accessible() {
	tab.t.Helper()
	axe, err := os.ReadFile(os.Getenv("RACFLOW_TEST_AXE"))
	if err != nil {
		tab.t.Fatal(err)
	}
	for theme, rules := range map[string]string{"light": `resultTypes: ["violations"]`, "dark": `resultTypes: ["violations"], runOnly: ["color-contrast"]`} {
		tab.Theme(theme)
		Eval[bool](tab, string(axe)+"; true")
		found := Eval[[]struct {
			ID, Help string
			Nodes    []struct {
				HTML           string
				FailureSummary string
			}
		}](tab, `axe.run(document, { `+rules+` }).then((r) => r.violations.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.map((n) => ({ html: n.html, failureSummary: n.failureSummary })) })))`)
		for _, v := range found {
			var at []string
			for _, n := range v.Nodes[:min(len(v.Nodes), 5)] {
				at = append(at, fmt.Sprintf("%.200s\n    %s", n.HTML, n.FailureSummary))
			}
			tab.t.Errorf("%s: %s: %s, %d times:\n  %s", theme, v.ID, v.Help, len(v.Nodes), strings.Join(at, "\n  "))
		}
	}
}

// Fits fails the test where the page does not fit a window of a desk or a phone: where it scrolls
// sideways, where a row of tiles has a gap, and at the desk where a table hides a column.
func (tab *Tab) Fits() {
	tab.t.Helper()
	for _, width := range []int64{1280, 390} {
		tab.Width(width)
		if got := Eval[int64](tab, `document.documentElement.scrollWidth`); got > width {
			tab.t.Errorf("at %d pixels the page is %d wide: %s", width, got, Eval[string](tab, `[...document.querySelectorAll("main *, header *")]
				.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll *")).map((e) => e.outerHTML.slice(0, 80)).slice(0, 5).join("\n")`))
		}
		if got := Eval[string](tab, `[...document.querySelectorAll(".cards")].flatMap((grid) => {
			const ends = new Map();
			for (const card of grid.children) ends.set(card.offsetTop, card.getBoundingClientRect().right);
			return [...ends].filter(([, right]) => Math.abs(right - grid.getBoundingClientRect().right) > 1);
		}).join("; ")`); got != "" {
			tab.t.Errorf("at %d pixels rows of tiles have gaps (top, right end): %s", width, got)
		}
		if got := Eval[string](tab, `[...document.querySelectorAll(".scroll")].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth)
			.map((e) => e.getAttribute("aria-label") + " by " + (e.scrollWidth - e.clientWidth)).join("; ")`); got != "" && width == 1280 {
			tab.t.Errorf("tables are cut: %s", got)
		}
		tab.Screenshot(fmt.Sprint(tab.t.Name(), "-", width))
	}
	tab.Width(1360)
}

// Quiet fails the test where the page asked for anything, itself and addresses that begin with
// one of allowed aside, or something went wrong in it.
func (tab *Tab) Quiet(allowed ...string) {
	tab.t.Helper()
requests:
	for _, address := range tab.Requests() {
		for _, prefix := range allowed {
			if strings.HasPrefix(address, prefix) {
				continue requests
			}
		}
		tab.t.Errorf("the page asked for %.200s", address)
	}
	for _, problem := range tab.Problems() {
		tab.t.Errorf("the page complained: %.500s", problem)
	}
}
