package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With the file that init writes for documents, renaming a file or folder costs no vector: neither
// the path nor a title from the name is embedded. Both are searched by words.
func TestInitRename(t *testing.T) {
	dir := folder(t, map[string]string{
		"docs/guide/cards.md": "# Cards\n\nA lost card is blocked at once.\n\n## Fees\n\nA new card costs ten francs.\n",
		"docs/guide/hours.md": "No heading says that the desk closes at five.\n",
		"docs/notes.txt":      "The water of the pond is changed on Mondays.\n",
		"docs/page.html":      "<title>Ponds</title><h1>Fish</h1><p>They are fed in the morning.",
		"docs/feed.go":        "package pond\n\n// Feed feeds the fish.\nfunc Feed() {}\n",
		"0.1.0/empty":         "",
	})
	linkPlugin(t, filepath.Join(dir, "0.1.0"), "mine")
	must(t, racflow(t, dir, "init", "docs"))
	ask := func(question, want string) {
		t.Helper()
		if said := must(t, racflow(t, dir, "ask", "--plugins", "0.1.0", "-var", "embedder=mine/embed", "pipeline.hcl", question)); !strings.Contains(said, want) {
			t.Errorf("there is no %q in\n%s", want, said)
		}
	}
	ask("fees", "5 entries, 5 embedded with mine/embed")
	for from, to := range map[string]string{"docs/guide": "docs/handbook", "docs/notes.txt": "docs/aquarium.txt", "docs/page.html": "docs/handbook-page.html"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	ask("aquarium", "5 entries, 0 embedded with mine/embed, 4 with vectors of earlier builds, 4 removed")
	ask("aquarium", "aquarium.txt")
}

// A build reports a table of contents that it left out.
func TestContentsAreReported(t *testing.T) {
	content := "BT /F1 10 Tf 12 TL 50 700 Td (Cards ........ 1) Tj T* (Fees ........ 1) Tj T* (Water ........ 1) Tj T* (It is changed on Mondays.) Tj ET"
	pdf, table := "%PDF-1.4\n", ""
	for i, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(content), content), "<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding>>",
	} {
		table += fmt.Sprintf("%010d 00000 n \n", len(pdf))
		pdf += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	pdf += fmt.Sprintf("xref\n0 6\n0000000000 65535 f \n%strailer\n<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF\n", table, len(pdf))
	dir := folder(t, map[string]string{"docs/a.pdf": pdf, "docs/b.md": "Cards ........ 1\nFees ........ 1\nWater ........ 1\n"})
	must(t, racflow(t, dir, "init", "docs"))
	said := must(t, racflow(t, dir, "ask", "-var", "embedder=hashing", "pipeline.hcl", "water"))
	if want := "2 entries, 2 embedded with hashing, not read: 1 table of contents"; !strings.Contains(said, want) {
		t.Errorf("there is no %q in\n%s", want, said)
	}
}
