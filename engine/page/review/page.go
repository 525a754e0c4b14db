package review

import (
	"bytes"
	_ "embed" // of the assets
	"html/template"

	"github.com/racflow/racflow/engine/page"
)

var (
	//go:embed assets/labels.js
	labels string
	//go:embed assets/server.js
	server string
	//go:embed assets/review.js
	code string
	//go:embed assets/review.css
	style string
	//go:embed assets/review.html
	body template.HTML
)

// write writes the page. Data is not in it: who has the token gets that from the server.
func write(title string) ([]byte, error) {
	var b bytes.Buffer
	err := page.Page{
		Title: title, Brand: "racflow review", Body: body, Live: true,
		Modules: []string{page.Table, page.Item, labels, server, code}, Styles: []string{style},
	}.Write(&b)
	return b.Bytes(), err
}
