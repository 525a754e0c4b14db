package page

import (
	"bytes"
	"compress/gzip"
	_ "embed" // of the assets
	"encoding/json"
	"io"
	"strings"
	"sync"
)

// This file makes the page that shows the HTTP interface of racflow serve.

var (
	//go:embed assets/vendor/openapi-explorer-2.4.820.min.js.gz
	packedExplorer []byte
	//go:embed assets/docs.css
	docsStyle string
	//go:embed assets/docs.js
	docsCode string
)

// explorer returns the library that defines the element openapi-explorer.
var explorer = sync.OnceValue(func() string {
	var text strings.Builder
	z, err := gzip.NewReader(bytes.NewReader(packedExplorer))
	if err == nil {
		_, err = io.Copy(&text, z)
	}
	if err != nil {
		panic(err) // an asset of this program
	}
	return text.String()
})

// Docs returns a page that shows an OpenAPI description, which is JSON, and may call the server
// that it came from. The library writes its own styles, so the policy allows styles.
func Docs(title string, description []byte) Page {
	return Page{
		Title: title, Brand: "racflow serve", Data: json.RawMessage(description), Live: true, explorer: true,
		Body:    `<openapi-explorer id="docs" render-style="read" hide-server-selection="true" nav-bg-color="#eef0f5" nav-text-color="#181d27" primary-color="#3446b8" secondary-color="#3446b8"></openapi-explorer>`,
		Modules: []string{docsCode},
		Styles:  []string{docsStyle},
	}
}
